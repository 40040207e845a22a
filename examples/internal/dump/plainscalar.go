package dump

import (
	"strconv"
	"strings"
)

// scalar is a text, a number, a boolean, null, or an empty list or object.
func scalar(text string) (value any, ok bool) {
	text = strings.TrimRight(text, " ")
	switch text {
	case "":
		return nil, false
	case "{}":
		return map[string]any{}, true
	case "[]":
		return []any{}, true
	case "null":
		return nil, true
	case "true", "false":
		return text == "true", true
	}
	switch first := text[0]; {
	case first == '"' || first == '\'':
		return quotedText(text)
	case '0' <= first && first <= '9':
		return number(text)
	}
	return text, plainText(text)
}

// quotedText knows no escapes.
func quotedText(text string) (string, bool) {
	quote := text[:1]
	inner, ok := strings.CutSuffix(text[1:], quote)
	return inner, ok && !strings.Contains(inner, quote) && (quote == "'" || !strings.Contains(inner, `\`))
}

// number is what begins with a digit: a number of up to 15 digits, or a word with something in it that is in no
// number of any notation.
func number(text string) (value any, ok bool) {
	digits := len(text) - len(strings.TrimLeft(text, "0123456789"))
	if digits == len(text) {
		whole, err := strconv.ParseInt(text, 10, 64)
		return whole, err == nil && digits <= 15 && (text == "0" || text[0] != '0')
	}
	switch text[digits:] {
	case "Ki", "Mi", "Gi", "Ti", "Pi", "k", "m", "M", "G", "T", "P":
		return text, true
	}
	isTime := digits == 4 && text[4] == '-'
	return text, !isTime && (hasInnerDash(text) || strings.Count(text, ".") > 1) && wordLike(text)
}

// hasInnerDash reports whether there is a dash that is not the sign of an exponent: no number has one.
func hasInnerDash(text string) bool {
	for i := 1; i < len(text); i++ {
		if text[i] == '-' && text[i-1] != 'e' && text[i-1] != 'E' {
			return true
		}
	}
	return false
}
