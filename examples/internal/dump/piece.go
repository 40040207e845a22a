package dump

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// piece is a part of the input that can be read by itself: a value, or an item of the list that kubectl prints.
type piece struct {
	Place
	chunk chunk // to be read
	value any   // or what was read
	err   error // or why it could not be
}

// piecesOf cuts a file into pieces. What is no such list is read at once, to know how many values there are.
func piecesOf(name string, data []byte) []piece {
	var pieces []piece
	at := Place{file: name}
	for _, c := range split(toUTF8(data)) {
		if items := c.items(); len(items) > 0 {
			at.number++
			for i, item := range items {
				pieces = append(pieces, piece{Place: at.in(i), chunk: item})
			}
			continue
		}
		values, err := c.values()
		for _, value := range values {
			at.number++
			pieces = append(pieces, piece{Place: at, value: value})
		}
		if err != nil {
			at.number++
			pieces = append(pieces, piece{Place: at, err: &Problem{Place: at, Text: err.Error()}})
		}
	}
	return pieces
}

func (p Place) in(item int) Place {
	p.item = fmt.Sprintf("items[%d]", item)
	return p
}

// open reads the piece, and returns the object that it is or the objects of the list that it is.
func (p piece) open() ([]document, error) {
	switch {
	case p.err != nil:
		return nil, p.err
	case p.chunk.text == nil:
		return open(p.Place, p.value)
	}
	values, err := p.chunk.values()
	switch {
	case err != nil:
		return nil, &Problem{Place: p.Place, Text: err.Error()}
	case len(values) == 0:
		return open(p.Place, nil)
	case len(values) > 1:
		return nil, &Problem{Place: p.Place, Text: "is more than one value"}
	}
	return open(p.Place, values[0])
}

// items are those of a v1 List, each a chunk of its own, so that a large one is not read as a whole; none if the
// chunk is anything else.
func (c chunk) items() []chunk {
	if bytes.HasPrefix(bytes.TrimSpace(c.text), []byte("{")) {
		return c.jsonItems()
	}
	return c.yamlItems()
}

func (c chunk) jsonItems() []chunk {
	var list struct {
		APIVersion, Kind string
		Items            []json.RawMessage
	}
	if err := json.Unmarshal(c.text, &list); err != nil || list.APIVersion != "v1" || list.Kind != "List" {
		return nil
	}
	var items []chunk
	for _, item := range list.Items {
		items = append(items, chunk{text: item, line: c.line})
	}
	return items
}

// yamlItems cuts where an item begins in the first column, as kubectl writes it. An anchor may be meant for another
// item, so there must be none.
func (c chunk) yamlItems() []chunk {
	if bytes.Contains(c.text, []byte(": &")) || bytes.Contains(c.text, []byte("- &")) {
		return nil
	}
	var items []chunk
	head := map[string]int{}
	number, offset, inside := c.line-1, 0, false
	for line := range bytes.Lines(c.text) {
		number++
		offset += len(line)
		switch {
		case bytes.HasPrefix(line, []byte("- ")) && inside:
			items = append(items, chunk{text: c.text[offset-len(line) : offset], line: number})
		case bytes.HasPrefix(line, []byte("  ")):
			if inside && len(items) > 0 {
				last := &items[len(items)-1]
				last.text = last.text[:len(last.text)+len(line)]
			}
		default:
			text := string(bytes.TrimRight(line, "\r\n"))
			inside = text == "items:"
			head[text]++
		}
	}
	if head["items:"] != 1 || head["apiVersion: v1"] != 1 || head["kind: List"] != 1 || len(head) != 3+head["metadata:"] {
		return nil
	}
	for i := range items {
		items[i].text = bytes.Clone(items[i].text)
		items[i].text[0] = ' ' // in place of the dash
	}
	return items
}
