package dump

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/yaml"
)

// piece is a part of the input that can be read by itself: a value, or an item of a v1 List in JSON.
type piece struct {
	Place
	item  json.RawMessage // to be read
	value any             // or what was read
	err   error           // or why it could not be
}

// piecesOf cuts a file into pieces. All but the items of a JSON List is read at once, to know how many values there are.
func piecesOf(name string, data []byte) []piece {
	var pieces []piece
	at := Place{file: name}
	for _, c := range split(toUTF8(data)) {
		if items := c.items(); len(items) > 0 {
			at.number++
			for i, item := range items {
				pieces = append(pieces, piece{Place: at.in(i), item: item})
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

// open reads the piece, and returns the object that it is or the objects of the list that it is.
func (p piece) open() ([]document, error) {
	switch {
	case p.err != nil:
		return nil, p.err
	case p.item == nil:
		return open(p.Place, p.value)
	}
	var value any
	decoder := json.NewDecoder(bytes.NewReader(p.item))
	decoder.UseNumber()
	if err := decoder.Decode(&value); err != nil {
		return nil, &Problem{Place: p.Place, Text: err.Error()}
	}
	return open(p.Place, value)
}

// items returns those of a v1 List in JSON, unread, so that a large one can be read in parallel; none if the chunk is
// anything else.
func (c chunk) items() []json.RawMessage {
	var list struct {
		APIVersion, Kind string
		Items            []json.RawMessage
	}
	if !c.inBraces() || json.Unmarshal(c.text, &list) != nil || list.APIVersion != "v1" || list.Kind != "List" {
		return nil
	}
	return list.Items
}

func (c chunk) inBraces() bool { return bytes.HasPrefix(bytes.TrimSpace(c.text), []byte("{")) }

// values returns the values in a chunk: of JSON any number, of YAML one, or none if all is comment. With an error they
// are those before it.
func (c chunk) values() ([]any, error) {
	if !c.inBraces() {
		return c.yaml(c.text)
	}
	values, jsonErr := c.json()
	if jsonErr == nil || len(values) > 0 {
		return values, jsonErr
	}
	// It may be YAML in braces. Of that the parser reads the first and silently drops what follows;
	// below a key it does not.
	values, err := c.yaml(append([]byte("root: "), bytes.ReplaceAll(bytes.TrimSpace(c.text), []byte("\n"), []byte("\n "))...))
	if err != nil {
		return nil, jsonErr
	}
	return []any{values[0].(map[string]any)["root"]}, nil
}

func (c chunk) json() ([]any, error) {
	var values []any
	decoder := json.NewDecoder(bytes.NewReader(c.text))
	decoder.UseNumber()
	for {
		var value any
		err := decoder.Decode(&value)
		if err == io.EOF {
			return values, nil
		}
		if err != nil {
			offset := decoder.InputOffset()
			if syntax := (*json.SyntaxError)(nil); errors.As(err, &syntax) {
				offset = syntax.Offset
			}
			if errors.Is(err, io.ErrUnexpectedEOF) {
				offset = int64(len(bytes.TrimRight(c.text, "\n")))
			}
			offset = min(offset, int64(len(c.text)))
			return values, fmt.Errorf("json: line %d: %w", c.line+bytes.Count(c.text[:offset], []byte("\n")), err)
		}
		values = append(values, value)
	}
}

func (c chunk) yaml(text []byte) ([]any, error) {
	var value any
	if err := yaml.UnmarshalStrict(text, &value); err != nil {
		return nil, errors.New(c.inFile(err.Error()))
	}
	if value == nil {
		return nil, nil
	}
	return []any{value}, nil
}

var lineNumber = regexp.MustCompile(`\bline \d+\b`)

// inFile makes line numbers count from the beginning of the file.
func (c chunk) inFile(message string) string {
	message = strings.TrimPrefix(message, "error converting YAML to JSON: ")
	return lineNumber.ReplaceAllStringFunc(message, func(match string) string {
		n, err := strconv.Atoi(strings.TrimPrefix(match, "line "))
		if err != nil {
			return match
		}
		return "line " + strconv.Itoa(c.line-1+n)
	})
}
