package dump

import (
	"bytes"
	"strings"
)

// plainYAML reads the YAML that kubectl writes, block style with simple scalars, some ten times as fast as the parser
// does. Of whatever it does not know it says so, and then it is for the parser: what both read they read alike.
func plainYAML(text []byte) (value map[string]any, ok bool) {
	p := plainParser{}
	if !p.split(text) || len(p.lines) == 0 {
		return nil, false
	}
	value, ok = p.mapping(p.lines[0].indent)
	return value, ok && p.at == len(p.lines)
}

// plainParser goes through lines from top to bottom.
type plainParser struct {
	lines []plainLine
	at    int
}

type plainLine struct {
	indent int
	text   string
}

// split knows only lines of printable ASCII, none of them empty.
func (p *plainParser) split(text []byte) bool {
	if !bytes.HasSuffix(text, []byte("\n")) {
		return false
	}
	p.lines = make([]plainLine, 0, bytes.Count(text, []byte("\n")))
	for line := range strings.Lines(string(text)) {
		line = line[:len(line)-1]
		rest := strings.TrimLeft(line, " ")
		if rest == "" || rest[0] == '#' || !printable(rest) {
			return false
		}
		p.lines = append(p.lines, plainLine{len(line) - len(rest), rest})
	}
	return true
}

func printable(text string) bool {
	for i := range len(text) {
		if text[i] < ' ' || text[i] > '~' {
			return false
		}
	}
	return true
}

// next is the line to read, if it is indented so.
func (p *plainParser) next(indent int) (line plainLine, ok bool) {
	if p.at == len(p.lines) || p.lines[p.at].indent != indent {
		return plainLine{}, false
	}
	return p.lines[p.at], true
}

func (l plainLine) isItem() bool { return strings.HasPrefix(l.text, "- ") }

func (p *plainParser) mapping(indent int) (value map[string]any, ok bool) {
	value = map[string]any{}
	for line, more := p.next(indent); more && !line.isItem(); line, more = p.next(indent) {
		key, rest, isPair := pair(line.text)
		if _, twice := value[key]; !isPair || twice {
			return nil, false
		}
		p.at++
		if value[key], ok = p.below(indent, rest); !ok {
			return nil, false
		}
	}
	return value, len(value) > 0
}

// below is the value of a key: what follows it in its line or, if that is nothing, in the lines below it.
func (p *plainParser) below(indent int, rest string) (value any, ok bool) {
	switch {
	case rest == "|":
		return p.literal(indent)
	case rest != "":
		return scalar(rest)
	case p.at == len(p.lines):
		return nil, true
	}
	switch line := p.lines[p.at]; {
	case line.isItem() && line.indent >= indent:
		return p.sequence(line.indent)
	case line.indent > indent:
		return p.mapping(line.indent)
	}
	return nil, true
}

func (p *plainParser) sequence(indent int) (items []any, ok bool) {
	for line, more := p.next(indent); more && line.isItem(); line, more = p.next(indent) {
		rest := strings.TrimLeft(line.text[1:], " ")
		var item any
		if _, _, isPair := pair(rest); isPair {
			inner := indent + len(line.text) - len(rest)
			p.lines[p.at] = plainLine{inner, rest}
			item, ok = p.mapping(inner)
		} else {
			p.at++
			item, ok = scalar(rest)
		}
		if !ok {
			return nil, false
		}
		items = append(items, item)
	}
	return items, true
}

// literal is the text of the lines that are indented more than the key is.
func (p *plainParser) literal(indent int) (text string, ok bool) {
	if p.at == len(p.lines) || p.lines[p.at].indent <= indent {
		return "", false
	}
	block := p.lines[p.at].indent
	var lines strings.Builder
	for ; p.at < len(p.lines) && p.lines[p.at].indent > indent; p.at++ {
		line := p.lines[p.at]
		if line.indent < block {
			return "", false
		}
		lines.WriteString(strings.Repeat(" ", line.indent-block) + line.text + "\n")
	}
	return lines.String(), true
}

// longestKey is more than a label's or annotation's key can have; YAML itself has a limit at 1,024 characters.
const longestKey = 512

// pair cuts "key: value" and "key:".
func pair(text string) (key, rest string, ok bool) {
	key, rest, ok = strings.Cut(text, ": ")
	if !ok {
		key, ok = strings.CutSuffix(text, ":")
	}
	return key, strings.Trim(rest, " "), ok && len(key) <= longestKey && plainWord(key)
}
