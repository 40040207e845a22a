package binding_test

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const module = "github.com/pvbind/pvbind/"

// rooms lists the packages of the library, each with those of ours that it may import.
var rooms = map[string][]string{
	"accessmode":                  {},
	"storageclass":                {},
	"phase":                       {},
	"binding/internal/oneline":    {},
	"binding/internal/quantities": {"binding/internal/oneline"},
	"binding/internal/zeromap":    {},
	"binding/obj":                 {},
	"binding/match":               belowMatch,
	"reclaim":                     append([]string{"binding/match"}, belowMatch...),
	"binding/index":               append([]string{"binding/internal/zeromap", "binding/match"}, belowMatch...),
	"binding":                     belowController,
	"binding/bindingtest":         append([]string{"binding"}, belowController...),
	"binding/preview":             append([]string{"binding", "binding/bindingtest"}, belowController...),
}

// belowMatch lists the rooms below match, and belowController those below the Controller.
var (
	belowMatch = []string{"accessmode", "storageclass", "phase", "binding/obj",
		"binding/internal/oneline", "binding/internal/quantities"}
	belowController = append([]string{"binding/internal/zeromap", "binding/match", "binding/index", "reclaim"}, belowMatch...)
)

// dependencies lists the import closure of a package, without itself.
func dependencies(t *testing.T, room string) []string {
	t.Helper()
	out, err := exec.Command("go", "list", "-deps", "-f", "{{if not .Standard}}{{.ImportPath}}{{end}}", module+room).Output()
	require.NoError(t, err, "go list -deps %s", room)
	var deps []string
	for _, dep := range strings.Fields(string(out)) {
		if dep != module+room {
			deps = append(deps, dep)
		}
	}
	return deps
}

func TestTheCoreImportsNoClientGo(t *testing.T) {
	t.Parallel()
	for room := range rooms {
		for _, dep := range dependencies(t, room) {
			assert.False(t, strings.HasPrefix(dep, "k8s.io/client-go"), "%s imports %s", room, dep)
			assert.NotEqual(t, "k8s.io/component-helpers/storage/volume", dep, "%s: an oracle for tests only", room)
		}
	}
}

func TestRoomsImportOnlyRoomsAboveThem(t *testing.T) {
	t.Parallel()
	for room, allowed := range rooms {
		for _, dep := range dependencies(t, room) {
			if ours, ok := strings.CutPrefix(dep, module); ok {
				assert.Contains(t, allowed, ours, "%s imports %s", room, ours)
			}
		}
	}
}
