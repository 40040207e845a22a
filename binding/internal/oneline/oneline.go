// Package oneline writes what users chose, such as names and labels, into messages of one line.
package oneline

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

const ellipsis = "…"

// Text makes text fit for a one-line message of at most limit bytes: it puts spaces in place of
// control characters and cuts what is too long.
func Text(text string, limit int) string {
	text = strings.Map(spaceForControl, text)
	if len(text) <= limit {
		return text
	}
	end := max(0, limit-len(ellipsis))
	for end > 0 && !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end] + ellipsis
}

func spaceForControl(r rune) rune {
	if unicode.IsControl(r) {
		return ' '
	}
	return r
}

// None is the word for an empty value.
const None = "none"

// OrNone returns text, or None if it is empty.
func OrNone(text string) string {
	if text == "" {
		return None
	}
	return text
}
