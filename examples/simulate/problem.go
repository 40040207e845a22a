package main

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// place is where in the input something was found.
type place struct {
	file   string
	number int    // of the document in the file, from 1; documents that hold nothing do not count
	item   string // such as "items[3]"; empty if the document is not a list
}

func (p place) String() string {
	text := fmt.Sprintf("%s: document %d", p.file, p.number)
	if p.item != "" {
		text += " " + p.item
	}
	return text
}

// problem is what is wrong with one document or object of the input, in one line.
type problem struct {
	place
	object string // such as "pvc/default/data"; empty if the document is not known to be an object
	field  string // such as "spec.accessModes[0]"; empty if it concerns the whole
	text   string
}

func (p *problem) Error() string {
	parts := []string{p.place.String()}
	for _, part := range []string{p.object, p.field, p.text} {
		if part != "" {
			parts = append(parts, part)
		}
	}
	return oneLine(strings.Join(parts, ": "))
}

// invalid turns what validation says of one object into one problem.
func invalid(at place, object string, errs field.ErrorList) *problem {
	var texts []string
	for _, err := range errs {
		texts = append(texts, err.Error())
	}
	return &problem{place: at, object: object, text: strings.Join(texts, "; ")}
}

var lineBreak = regexp.MustCompile(`\s*[\r\n]\s*`)

const longestLine = 600

// oneLine makes text fit to be one line on a terminal: input may hold line breaks, control
// characters and values of any length.
func oneLine(text string) string {
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

// lines are the errors that err joins, one a line.
func lines(err error) []string {
	var all []string
	for _, one := range unjoin(err) {
		all = append(all, oneLine(one.Error()))
	}
	return all
}

// unjoin takes apart what errors.Join made, however deep.
func unjoin(err error) []error {
	if err == nil {
		return nil
	}
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok {
		return []error{err}
	}
	var all []error
	for _, one := range joined.Unwrap() {
		all = append(all, unjoin(one)...)
	}
	return all
}

// inOrder sorts the problems of one file by document.
func inOrder(errs []error) {
	number := func(err error) int {
		var p *problem
		if errors.As(err, &p) {
			return p.number
		}
		return 0
	}
	slices.SortStableFunc(errs, func(a, b error) int { return number(a) - number(b) })
}

// usageError is a mistake on the command line.
type usageError struct{ error }

func (e *usageError) Unwrap() error { return e.error }
