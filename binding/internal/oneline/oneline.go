// Package oneline makes what users chose, such as names and labels, fit for messages of one line.
package oneline

import (
	"cmp"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Text returns the text with spaces in place of control characters, cut to at most limit bytes. It looks at no more of a long
// text than it needs (X9).
func Text(text string, limit int) string {
	if enough := 4*limit + utf8.UTFMax; len(text) > enough { // a character of two bytes may become a space
		text = text[:enough]
	}
	text = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, text)
	if len(text) <= limit {
		return text
	}
	const ellipsis = "…"
	end := max(0, limit-len(ellipsis))
	for end > 0 && !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end] + ellipsis
}

// None is the word for an empty value.
const None = "none"

// OrNone returns text, or None if it is empty.
func OrNone(text string) string { return cmp.Or(text, None) }

// Join joins the texts of all parts, with the separator between them. What would make it longer than about four kilobytes is
// left out, for no message is that long (X9).
func Join[T any](parts []T, separator string, text func(T) string) string {
	var joined strings.Builder
	for i := range parts {
		if i > 0 {
			joined.WriteString(separator)
		}
		if joined.Len() > maxJoined {
			joined.WriteString("…")
			break
		}
		joined.WriteString(text(parts[i]))
	}
	return joined.String()
}

const maxJoined = 4 << 10 // bytes
