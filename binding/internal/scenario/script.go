package scenario

import (
	"context"
	"fmt"
	"regexp"
	"strings"
	"testing"
)

// script is a scenario file taken apart.
type script struct {
	path   string
	blocks []block
}

// block is a run of lines that belong together. What a command is expected to print is not kept.
type block struct {
	kind  blockKind
	line  int // of the first line, counted from 1
	lines []string
}

type blockKind string

const (
	prose   blockKind = "Prose"   // comments and empty lines
	table   blockKind = "Table"   // objects
	command blockKind = "Command" // what is done
)

const (
	Prompt = "> "
	Indent = "  "
)

// header is what the first line of a scenario must look like: the rules it is about, and what it says of them.
var header = regexp.MustCompile(`^# ((?:(?:Rh|[A-Z][0-9]*)(?:-[A-Z]?[0-9]+)?(?:, )?)+): \S`)

// parseScript takes a file apart. It knows commands and tables by their shape only.
func parseScript(path, content string) (script, error) {
	s := script{path: path}
	lines := strings.Split(strings.TrimSuffix(content, "\n"), "\n")
	if !header.MatchString(lines[0]) {
		return s, s.fault(1, "the first line must be like %q", "# C1, B1-B4: what happens")
	}
	for i, line := range lines {
		if err := s.add(i+1, line); err != nil {
			return s, err
		}
	}
	return s, nil
}

// add puts a line into the block that it belongs to.
func (s *script) add(number int, line string) error {
	switch {
	case strings.TrimSpace(line) == "" || strings.HasPrefix(line, "#"):
		s.blocks = append(s.blocks, block{prose, number, []string{line}})
	case strings.HasPrefix(line, Prompt):
		s.blocks = append(s.blocks, block{command, number, []string{line}})
	case strings.HasPrefix(line, Indent):
		if len(s.blocks) == 0 || s.last().kind != command {
			return s.fault(number, "an indented line is what a command prints, and there is no command above it")
		}
	case s.last().kind == table:
		s.last().lines = append(s.last().lines, line)
	default:
		s.blocks = append(s.blocks, block{table, number, []string{line}})
	}
	return nil
}

func (s *script) last() *block { return &s.blocks[len(s.blocks)-1] }

func (s *script) fault(line int, format string, args ...any) error {
	return fmt.Errorf("%s:%d: %s", s.path, line, fmt.Sprintf(format, args...))
}

// run carries out a script and returns the file as it should read, and every invariant that did not hold. An
// error is about the script itself.
func run(ctx context.Context, script script) (text string, violations []string, err error) {
	runner := NewRunner(ctx)
	var written strings.Builder
	for _, block := range script.blocks {
		for _, line := range block.lines {
			written.WriteString(line + "\n")
		}
		wrong := 0
		switch block.kind {
		case table:
			wrong, err = runner.CreateTable(block.lines)
		case command:
			var printed []string
			printed, err = runner.Do(strings.TrimPrefix(block.lines[0], Prompt))
			for _, line := range printed {
				written.WriteString(strings.TrimRight(Indent+line, " ") + "\n")
			}
		}
		if err != nil {
			return written.String(), runner.violations, script.fault(block.line+wrong, "%v", err)
		}
	}
	runner.checkEnd()
	return written.String(), runner.violations, nil
}

// CreateTable makes the objects of a table, its first line the header: creates them, or takes them over as they stand. An
// error comes with the number of its line, counted from 0.
func (s *Runner) CreateTable(lines []string) (wrong int, err error) {
	kind, columns, err := HeaderOf(lines[0])
	if err != nil {
		return 0, err
	}
	for i, row := range lines[1:] {
		object, err := kind.Object(columns, strings.Fields(row))
		if err == nil && kind.verbatim(columns) {
			err = s.Server.Load(object)
		} else if err == nil {
			_, err = s.Server.Create(s.Ctx, object)
		}
		if err != nil {
			return i + 1, err
		}
	}
	s.Printed = len(s.Server.Calls())
	return 0, nil
}

// Run runs a scenario that is given as text.
func Run(t *testing.T, scenario string) (text string, violations []string, err error) {
	t.Helper()
	script, err := parseScript("scenario.txt", scenario)
	if err != nil {
		return "", nil, err
	}
	return run(t.Context(), script)
}
