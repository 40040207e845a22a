// Package oneline makes what users chose, such as names and labels, fit for messages of one line.
package oneline

import (
	"cmp"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Text returns the text with spaces in place of control characters, cut to at most limit bytes.
func Text(text string, limit int) string {
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

// Join joins the texts of all parts, with the separator between them.
func Join[T any](parts []T, separator string, text func(T) string) string {
	texts := make([]string, len(parts))
	for i, part := range parts {
		texts[i] = text(part)
	}
	return strings.Join(texts, separator)
}
