package binding_test

import (
	"fmt"
	"regexp"
	"strings"
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
	prompt = "> "
	indent = "  "
)

// header is what the first line of a story must look like: the rules it is about, and what it says of them.
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
	case strings.HasPrefix(line, prompt):
		s.blocks = append(s.blocks, block{command, number, []string{line}})
	case strings.HasPrefix(line, indent):
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
