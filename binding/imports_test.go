package binding_test

import (
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const module = "github.com/pvbind/pvbind/"

// rooms lists the packages of the library, each with those of ours that it may import: the layers of CONTRIBUTING.md.
var rooms = map[string][]string{
	"accessmode":                    {},
	"storageclass":                  {"binding/obj"},
	"phase":                         {},
	"binding/obj":                   {},
	"binding/internal/oneline":      {},
	"binding/internal/zeromap":      {},
	"binding/internal/quantities":   {"binding/internal/oneline"},
	"binding/internal/requirements": {},
	"binding/match":                 belowMatch,
	"binding/index":                 join(belowMatch, "binding/internal/zeromap", "binding/match"),
	"reclaim":                       join(belowMatch, "binding/match"),
	"binding/hooks":                 {},
	"binding/decision":              belowDecision,
	"binding/scheduling":            join(belowDecision, "binding/decision"),
	"binding/scheduling/executor":   join(belowDecision, "binding/decision", "binding/scheduling"),
	"binding/internal/engine":       join(belowDecision, "binding/decision"),
	"binding/internal/hookrun":      belowController,
	"binding":                       join(belowController, "binding/internal/hookrun"),
	"binding/bindingtest":           join(belowController, "binding/scheduling", "binding/internal/hookrun", "binding"),
	"binding/preview":               join(belowController, "binding/scheduling", "binding/internal/hookrun", "binding", "binding/bindingtest"),
}

var (
	belowMatch      = []string{"accessmode", "storageclass", "phase", "binding/obj", "binding/internal/oneline", "binding/internal/quantities", "binding/internal/requirements"}
	belowDecision   = join(belowMatch, "binding/internal/zeromap", "binding/match", "binding/index", "reclaim", "binding/hooks")
	belowController = join(belowDecision, "binding/decision", "binding/internal/engine")
)

func join(rooms []string, more ...string) []string { return slices.Concat(rooms, more) }

// dependencies returns the import closure of each package of this module, itself left out, without its tests.
var dependencies = sync.OnceValues(func() (map[string][]string, error) {
	out, err := exec.Command("go", "list", "-f", `{{.ImportPath}}: {{join .Deps " "}}`, module+"...").Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w", err)
	}
	closures := map[string][]string{}
	for line := range strings.Lines(string(out)) {
		path, deps, _ := strings.Cut(line, ":")
		closures[strings.TrimPrefix(path, module)] = strings.Fields(deps)
	}
	return closures, nil
})

func dependenciesOf(t *testing.T, room string) []string {
	t.Helper()
	closures, err := dependencies()
	require.NoError(t, err)
	require.Contains(t, closures, room)
	return closures[room]
}

func TestTheCoreImportsNoClientGo(t *testing.T) {
	t.Parallel()
	for _, room := range append(slices.Collect(maps.Keys(rooms)), forTests...) {
		for _, dep := range dependenciesOf(t, room) {
			assert.False(t, strings.HasPrefix(dep, "k8s.io/client-go"), "%s imports %s", room, dep)
			assert.NotEqual(t, "k8s.io/component-helpers/storage/volume", dep, "%s: an oracle for tests only", room)
		}
	}
}

func TestRoomsImportOnlyRoomsAboveThem(t *testing.T) {
	t.Parallel()
	for room, allowed := range rooms {
		for _, dep := range dependenciesOf(t, room) {
			if ours, ok := strings.CutPrefix(dep, module); ok {
				assert.Contains(t, allowed, ours, "%s imports %s", room, ours)
			}
		}
	}
}

// A package that is in no room could import what it likes.
func TestEveryPackageIsARoom(t *testing.T) {
	t.Parallel()
	closures, err := dependencies()
	require.NoError(t, err)
	for room := range closures {
		if _, listed := rooms[room]; !listed && !strings.HasPrefix(room, "examples/") {
			assert.Contains(t, forTests, room, "list it among the rooms")
		}
	}
}

// forTests lists the packages that only tests import. They may stand on all others.
var forTests = []string{"binding/internal/testkit", "binding/internal/judge", "binding/internal/history", "binding/internal/scenario",
	"binding/internal/engine/model", "binding/internal/settling", "binding/bindingtest/conformance", "binding/bindingtest/internal/must"}

// Nothing that users build imports them.
func TestOnlyTestsImportWhatIsForTests(t *testing.T) {
	t.Parallel()
	for room := range rooms {
		for _, dep := range dependenciesOf(t, room) {
			assert.NotContains(t, forTests, strings.TrimPrefix(dep, module), room)
		}
	}
}

// The map in CONTRIBUTING.md must lead somewhere.
func TestTheMapNamesFilesThatExist(t *testing.T) {
	text, err := os.ReadFile("../.github/CONTRIBUTING.md")
	require.NoError(t, err)
	links := regexp.MustCompile(`\]\((\.\./[^)#]*)`).FindAllStringSubmatch(string(text), -1)
	require.Greater(t, len(links), 10)
	for _, link := range links {
		assert.FileExists(t, filepath.Join("../.github", link[1]))
	}
}
