package binding_test

import (
	"bytes"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestMutantsCompile holds the list to the code as TestMutants does, which takes far longer.
func TestMutantsCompile(t *testing.T) {
	if testing.Short() {
		t.Skip("it looks for what the compiler left of all that is imported")
	}
	checker := newChecker(t)
	for _, m := range readMutants(t) {
		for _, problem := range checker.problems(t, m.file, m.source(t)) {
			assert.Fail(t, "it does not compile", "%s: %v", m.title, problem)
		}
	}
	original, err := os.ReadFile("decision/bind.go")
	require.NoError(t, err)
	assert.Empty(t, checker.problems(t, "decision/bind.go", string(original)))
	assert.NotEmpty(t, checker.problems(t, "decision/bind.go", strings.Replace(string(original), ") (Action, error) {", ") (Action, error, error) {", 1)), "it notices")
}

// checker finds what the compiler would not take of one file among the others of its package.
type checker struct {
	files    *token.FileSet
	importer types.Importer
}

func newChecker(t *testing.T) checker {
	list, err := exec.Command("go", "list", "-export", "-deps", "-f", "{{.ImportPath}} {{.Export}}", "./...").Output()
	require.NoError(t, err)
	compiled := map[string]string{}
	for line := range strings.Lines(string(list)) {
		path, file, _ := strings.Cut(strings.TrimSpace(line), " ")
		compiled[path] = file
	}
	c := checker{files: token.NewFileSet()}
	c.importer = importer.ForCompiler(c.files, "gc", func(path string) (io.ReadCloser, error) { return os.Open(compiled[path]) })
	return c
}

func (c checker) problems(t *testing.T, name, source string) (problems []error) {
	changed, err := parser.ParseFile(c.files, name, source, parser.SkipObjectResolution)
	if err != nil {
		return []error{err}
	}
	parsed := []*ast.File{changed}
	others, err := filepath.Glob(filepath.Join(filepath.Dir(name), "*.go"))
	require.NoError(t, err)
	for _, other := range others {
		if other != filepath.Clean(name) && !strings.HasSuffix(other, "_test.go") {
			parsed = append(parsed, c.declarations(t, other))
		}
	}
	config := types.Config{Importer: c.importer, Error: func(err error) {
		if e := err.(types.Error); c.files.Position(e.Pos).Filename == name {
			problems = append(problems, err)
		}
	}}
	_, _ = config.Check(changed.Name.Name, c.files, parsed, nil) // it returns the first of the problems
	return problems
}

// declarations is a file without the bodies of its functions, which nobody asks about.
func (c checker) declarations(t *testing.T, name string) *ast.File {
	source, err := os.ReadFile(name)
	require.NoError(t, err)
	file, err := parser.ParseFile(c.files, name, bytes.NewReader(source), parser.SkipObjectResolution)
	require.NoError(t, err)
	for _, declaration := range file.Decls {
		if function, ok := declaration.(*ast.FuncDecl); ok {
			function.Body = nil
		}
	}
	return file
}
