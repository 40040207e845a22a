package dump

import "strings"

// plainWord reports whether the text is a word that begins with a letter and means itself.
func plainWord(text string) bool {
	return text != "" && isLetter(text[0]) && wordLike(text) && !reserved(text)
}

// wordLike reports whether the text has nothing but letters, digits, and what names have between them.
func wordLike(text string) bool {
	for i := range len(text) {
		if c := text[i]; !isLetter(c) && (c < '0' || c > '9') && strings.IndexByte("_./-", c) < 0 {
			return false
		}
	}
	return true
}

// plainText is words, with blanks and a few signs between them that mean nothing in such a place.
func plainText(text string) bool {
	if !isLetter(text[0]) && text[0] != '/' || reserved(text) {
		return false
	}
	for i := range len(text) {
		c := text[i]
		switch {
		case isLetter(c), '0' <= c && c <= '9', strings.IndexByte("_./-@+=,()", c) >= 0:
		case c == ':' && i+1 < len(text) && text[i+1] != ' ':
		case c == ' ' && text[i+1] != '#':
		default:
			return false
		}
	}
	return true
}

func isLetter(c byte) bool { return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' }

// reserved reports whether some version of YAML takes the word for a boolean or null.
func reserved(text string) bool {
	if len(text) > len("false") {
		return false
	}
	switch strings.ToLower(text) {
	case "y", "n", "yes", "no", "on", "off", "true", "false", "null":
		return true
	}
	return false
}
