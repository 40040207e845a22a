package binding_test

import (
	"bufio"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// allRules are the rules that tests must cite, as ranges. N and Rh have no number. S7 is not built yet.
const allRules = "L1-L5, M1-M14, C1-C12, B1-B6, V1-V5, G1-G2, R1-R8, Rh, F1-F3, P1-P3, S1-S6, S8-S10, E1-E3, X1-X10, W1-W9, N, A1-A6"

var (
	// citation is a rule, or a range of rules, at the beginning of what is left of a text.
	citation = regexp.MustCompile(`^([LMCBVGRFPSEXWNA])(\d*)(?:(?:-| to )([LMCBVGRFPSEXWNA]?)(\d+))?\b[,: ]*`)
	// hookRule is Rh, which has a letter in place of a number.
	hookRule = regexp.MustCompile(`^Rh\b[,: ]*`)
	// testName is the part of a test's name that cites: TestB6ABindIsFourWrites.
	testName = regexp.MustCompile(`^(?:Test|Example|Fuzz)_?(Rh|[LMCBVGRFPSEXWNA]\d+)`)
)

// citedIn are the rules that a text begins with: "C1, B1-B4: …", "M8 X7 malformed selector", "N one line".
func citedIn(text string) []string {
	var rules []string
	for {
		if cited := hookRule.FindString(text); cited != "" {
			rules, text = append(rules, "Rh"), text[len(cited):]
			continue
		}
		found := citation.FindStringSubmatch(text)
		if found == nil || found[2] == "" && (found[1] != "N" || found[3] != "" || found[4] != "") {
			return rules
		}
		text = text[len(found[0]):]
		first, _ := strconv.Atoi(found[2])
		last := first
		if found[4] != "" && (found[3] == "" || found[3] == found[1]) {
			last, _ = strconv.Atoi(found[4])
		}
		for number := first; number <= last; number++ {
			rules = append(rules, strings.TrimSuffix(fmt.Sprintf("%s%d", found[1], number), "0"))
			if number == 10 { // TrimSuffix took a digit
				rules[len(rules)-1] = found[1] + "10"
			}
		}
	}
}

func TestCitedIn(t *testing.T) {
	for text, want := range map[string]string{
		"C1, B1-B4: a claim":       "C1 B1 B2 B3 B4",
		"M8 X7 malformed selector": "M8 X7",
		"N one line":               "N",
		"P2, Rh: once":             "P2 Rh",
		"Rh R3 in use":             "Rh R3",
		"Rhythm":                   "",
		"N, X8: once":              "N X8",
		"C9 to C11 by name":        "C9 C10 C11",
		"C10-12: all":              "C10 C11 C12",
		"C12: being deleted":       "C12",
		"":                         "",
		"A claim":                  "",
		"Never":                    "",
		"NFS":                      "",
		"a C1":                     "",
	} {
		assert.Equal(t, want, strings.Join(citedIn(text), " "), "%q", text)
	}
}

func TestEveryRuleIsCitedByATest(t *testing.T) {
	cited := map[string]bool{}
	for _, text := range append(citingTexts(t), citingHeaders(t)...) {
		for _, rule := range citedIn(text) {
			cited[rule] = true
		}
	}
	var missing []string
	for _, group := range strings.Split(allRules, ", ") {
		for _, rule := range citedIn(group) {
			if !cited[rule] {
				missing = append(missing, rule)
			}
		}
	}
	assert.Empty(t, missing, "rules that no test's name and no story's first line cites")
}

// citingTexts are the names of the tests in the repository, and the strings in them: names of subtests and
// messages of assertions.
func citingTexts(t *testing.T) []string {
	t.Helper()
	var texts []string
	require.NoError(t, filepath.WalkDir("..", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !isTest(path) || filepath.Base(path) == "coverage_test.go" {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		ast.Inspect(file, func(node ast.Node) bool {
			switch node := node.(type) {
			case *ast.FuncDecl:
				if name := testName.FindStringSubmatch(node.Name.Name); name != nil {
					texts = append(texts, name[1])
				}
			case *ast.BasicLit:
				if text, err := strconv.Unquote(node.Value); err == nil && node.Kind == token.STRING {
					texts = append(texts, text)
				}
			}
			return true
		})
		return nil
	}))
	return slices.Clip(texts)
}

// isTest tells a file of tests. Those of package conformance are called by others.
func isTest(path string) bool {
	return strings.HasSuffix(path, "_test.go") || filepath.Base(filepath.Dir(path)) == "conformance"
}

// citingHeaders are the first lines of the stories.
func citingHeaders(t *testing.T) []string {
	t.Helper()
	var headers []string
	stories, err := filepath.Glob("internal/scenario/testdata/*/*.txt")
	require.NoError(t, err)
	require.GreaterOrEqual(t, len(stories), 40)
	for _, path := range stories {
		file, err := os.Open(path)
		require.NoError(t, err)
		lines := bufio.NewScanner(file)
		require.True(t, lines.Scan(), path)
		headers = append(headers, strings.TrimPrefix(lines.Text(), "# "))
		require.NoError(t, file.Close())
	}
	return headers
}
