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

// document is one object of the input, not yet typed.
type document struct {
	Place
	apiVersion string
	kind       string
	content    map[string]any
}

// values are the values in a chunk: of JSON any number, of YAML one, or none if all is comment. With an
// error they are those before it.
func (c chunk) values() ([]any, error) {
	text := bytes.TrimSpace(c.text)
	if !bytes.HasPrefix(text, []byte("{")) {
		return c.yaml(c.text)
	}
	values, jsonErr := c.json()
	if jsonErr == nil || len(values) > 0 {
		return values, jsonErr
	}
	// It may be YAML in braces. Of that the parser reads the first and silently drops what follows;
	// below a key it does not.
	values, err := c.yaml(append([]byte("root: "), bytes.ReplaceAll(text, []byte("\n"), []byte("\n "))...))
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
	if value, ok := plainYAML(text); ok {
		return []any{value}, nil
	}
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
