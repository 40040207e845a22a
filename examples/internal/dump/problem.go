package dump

import (
	"fmt"
	"regexp"
	"strings"
	"unicode"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Place is a place in the input.
type Place struct {
	file   string
	number int    // of the document in the file, from 1; documents that hold nothing do not count
	item   string // such as "items[3]"; empty if the document is not a list
}

func (p Place) in(item int) Place {
	p.item = fmt.Sprintf("items[%d]", item)
	return p
}

func (p Place) String() string {
	text := fmt.Sprintf("%s: document %d", p.file, p.number)
	if p.item != "" {
		text += " " + p.item
	}
	return text
}

// Problem is a thing that is wrong with one document or object of the input, in one line.
type Problem struct {
	Place
	Object string // such as "pvc/default/data"; empty if the document is not known to be an object
	Field  string // such as "spec.accessModes[0]"; empty if it concerns the whole
	Text   string
}

func (p *Problem) Error() string {
	parts := []string{p.Place.String()}
	for _, part := range []string{p.Object, p.Field, p.Text} {
		if part != "" {
			parts = append(parts, part)
		}
	}
	return OneLine(strings.Join(parts, ": "))
}

// invalid turns what validation says of one object into one problem.
func invalid(at Place, object string, errs field.ErrorList) *Problem {
	var texts []string
	for _, err := range errs {
		texts = append(texts, err.Error())
	}
	return &Problem{Place: at, Object: object, Text: strings.Join(texts, "; ")}
}

var lineBreak = regexp.MustCompile(`\s*[\r\n]\s*`)

const longestLine = 600

// OneLine makes text fit to be one line on a terminal: input may hold line breaks, control
// characters and values of any length.
func OneLine(text string) string {
	text = lineBreak.ReplaceAllString(text, " ")
	text = strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return '?'
		}
		return r
	}, strings.ToValidUTF8(text, "?"))
	if runes := []rune(text); len(runes) > longestLine {
		return string(runes[:longestLine]) + "…"
	}
	return text
}

// Lines returns the errors that err joins, one a line.
func Lines(err error) []string {
	var all []string
	for _, one := range Unjoin(err) {
		all = append(all, OneLine(one.Error()))
	}
	return all
}

// Unjoin returns the errors that err joins, however deep.
func Unjoin(err error) []error {
	if err == nil {
		return nil
	}
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok {
		return []error{err}
	}
	var all []error
	for _, one := range joined.Unwrap() {
		all = append(all, Unjoin(one)...)
	}
	return all
}

// UsageError is a mistake on the command line.
type UsageError struct{ Err error }

func (e *UsageError) Error() string { return e.Err.Error() }

func (e *UsageError) Unwrap() error { return e.Err }
