package scenario

import (
	"flag"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	. "github.com/pvbind/pvbind/binding/internal/testkit"
)

var updateScenarios = flag.Bool("update", false, "rewrite the expected parts of binding/internal/scenario/testdata")

const scenarioDir = "testdata"

// TestScenario runs the scenarios in binding/internal/scenario/testdata and compares every write, read and event
// with what the files say. The README.md there explains how to read and write one. With -update the
// files are rewritten; the invariants are checked all the same.
func TestScenario(t *testing.T) {
	for _, path := range scenarioFiles(t) {
		name := strings.TrimSuffix(strings.TrimPrefix(filepath.ToSlash(path), scenarioDir+"/"), ".txt")
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			content, err := os.ReadFile(path)
			require.NoError(t, err)
			script, err := parseScript(path, string(content))
			require.NoError(t, err)
			told, violations, err := run(t.Context(), script)
			require.NoError(t, err)
			assert.Empty(t, violations)
			if *updateScenarios {
				require.NoError(t, os.WriteFile(path, []byte(told), 0o644))
				return
			}
			assert.Equal(t, string(content), told, "%s reads otherwise; if that is right, run: go test ./binding/internal/scenario -update", path)
		})
	}
}

// scenarioFiles returns the scenarios, in order.
func scenarioFiles(t *testing.T) []string {
	t.Helper()
	var paths []string
	err := filepath.WalkDir(scenarioDir, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && filepath.Ext(path) == ".txt" {
			paths = append(paths, path)
		}
		return err
	})
	require.NoError(t, err)
	require.GreaterOrEqual(t, len(paths), 40, "scenarios in %s", scenarioDir)
	return paths
}

const firstLine = "# C1: a scenario.\n\n"

func TestAMistakeInAScenarioIsNamedByFileAndLine(t *testing.T) {
	for _, test := range []struct{ name, scenario, want string }{
		{"no header", "> settle\n", "scenario.txt:1: the first line must be like"},
		{"no rule in the header", "# A scenario.\n", "scenario.txt:1: the first line must be like"},
		{"output of nothing", firstLine + "  update pv/a\n", "scenario.txt:3: an indented line"},
		{"unknown command", firstLine + "> dance\n", `scenario.txt:3: unknown command "dance"`},
		{"unknown controller's command", firstLine + "> old: dance\n", `scenario.txt:3: unknown command "dance"`},
		{"neither table nor command", firstLine + "settle\n", `scenario.txt:3: "settle" begins neither a table nor a command`},
		{"unknown column", firstLine + "PV   COLOUR\na    red\n", `scenario.txt:3: a PV has no column "COLOUR"`},
		{"too few cells", firstLine + "PV   CAPACITY\na\n", "scenario.txt:4: the row has 1 cells, the table 2 columns"},
		{"no quantity", firstLine + "PV   CAPACITY\na    big\n", "scenario.txt:4: CAPACITY: "},
		{"unknown mode", firstLine + "PV   MODES\na    RWA\n", `scenario.txt:4: MODES: unknown access mode "RWA"`},
		{"no namespace", firstLine + "PVC    REQUEST\ndata   1Gi\n", `scenario.txt:4: "pvc/data" has no namespace`},
		{"refused by the server", firstLine + "PV   CAPACITY\na    -1Gi\n", `scenario.txt:4: PersistentVolume "a" is invalid`},
		{"unknown kind", firstLine + "> delete job/a\n", `scenario.txt:3: "job/a" is not an object`},
		{"kind to hold", firstLine + "> hold jobs\n", `scenario.txt:3: unknown kind "jobs"`},
		{"unknown fault", firstLine + "> eat write 1\n", `scenario.txt:3: unknown fault "eat"`},
		{"number of a fault", firstLine + "> conflict on write x\n", `scenario.txt:3: "x" is not the number of a write`},
		{"rules too late", firstLine + "> settle\n> rules protection=On\n", "scenario.txt:4: a controller has started"},
		{"unknown rule", firstLine + "> rules gravity=Off\n", `scenario.txt:3: unknown rule "gravity=Off"`},
		{"unknown hooks", firstLine + "> hooks plumber=own\n", `scenario.txt:3: "plumber=own" is not provisioner=`},
		{"unknown fault of a hook", firstLine + "> eat hook 1\n", `scenario.txt:3: unknown fault "eat"`},
		{"before a hook, nothing", firstLine + "> before hook 1\n", `scenario.txt:3: unknown fault "before"`},
		{"set what", firstLine + "PV   CAPACITY\na    1Gi\n\n> set pv/a COLOUR=red\n", `scenario.txt:6: "COLOUR=red" is not COLUMN=value`},
		{"nothing to deliver", firstLine + "> deliver pv\n", "scenario.txt:3: no change of a pv is left"},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, _, err := Run(t, test.scenario)
			require.Error(t, err)
			assert.Contains(t, err.Error(), test.want)
		})
	}
}

func TestARefusalByTheServerIsPartOfTheScenario(t *testing.T) {
	text, violations, err := Run(t, firstLine+"PV   CAPACITY\na    1Gi\n\n> set pv/a MODE=block\n> delete pv/b\n")
	require.NoError(t, err)
	assert.Empty(t, violations)
	assert.Contains(t, text, "> set pv/a MODE=block\n  refused Invalid\n> delete pv/b\n  refused NotFound\n")
}

const bindOne = firstLine + "PV   CAPACITY\na    1Gi\n\nPVC        REQUEST\ndefault/b  1Gi\n\n"

func TestWhatAScenarioViolatesIsNamed(t *testing.T) {
	for _, test := range []struct{ name, scenario, want string }{
		{"X8 it ends before the controller does", bindOne + "> settle\n> set pv/a CLAIM=-\n", "X8: a second pass: update pv/a"},
		{"X8 it ends in a crash", bindOne + "> crash after write 1\n> settle\n", "the scenario ends in a crash"},
		{"X1 two claims Bound to one volume", firstLine + "PVC        STATUS   VOLUME\ndefault/a  Bound    data\ndefault/b  Bound    data\n",
			"X1: a and b are Bound to data"},
		{"X1 a claim that holds two volumes", firstLine + "PV   CLAIM\na    default/x:uid-3\nb    default/x:uid-3\n\nPVC        REQUEST\ndefault/x  1Gi\n",
			"X1: x holds 2 volumes"},
		{"X4 Lost beside its volume", firstLine + "PV   CLAIM            STATUS\na    default/x:uid-9  Bound\n\nPVC        STATUS   VOLUME  UID\ndefault/x  Lost     a       uid-9\n",
			"X4: x is Lost, and a is bound to it"},
		{"P2 storage that nothing stands for", firstLine + "> rules protection=On\n> hooks provisioner=own.example.com\n\nSC     PROVISIONER\nfast   own.example.com\n\n" +
			"PVC         REQUEST   CLASS\ndefault/x   1Gi       fast\n\n> lose answer of hook 1\n> settle\n> delete pvc/default/x\n> settle\n", "P2: storage pvc-uid-2 is left behind"},
		{"an impossible meanwhile", bindOne + "> before write 1: delete pv/none\n> settle\n", `"delete pv/none" cannot be done meanwhile`},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, violations, err := Run(t, test.scenario)
			require.NoError(t, err)
			assert.Contains(t, strings.Join(violations, "\n"), test.want)
		})
	}
}

func TestX6AModifiedInputIsNoticed(t *testing.T) {
	script, err := parseScript("scenario.txt", bindOne)
	require.NoError(t, err)
	runner := NewRunner(t.Context())
	for _, block := range script.blocks {
		if block.kind == table {
			_, err := runner.CreateTable(block.lines)
			require.NoError(t, err)
		}
	}
	a := runner.controller(defaultController)
	runner.settle(a)
	require.Empty(t, runner.violations)
	for _, known := range Remembered(a.Controller) {
		if claim, ok := known.(*corev1.PersistentVolumeClaim); ok {
			claim.Annotations["scribbled"] = "on"
		}
	}
	runner.checkInputs(a)
	require.Len(t, runner.violations, 1)
	assert.Contains(t, runner.violations[0], "X6: *v1.PersistentVolumeClaim default/b")
	assert.Contains(t, runner.violations[0], "+annotation scribbled=on")
}

// TestAScenarioRunsTheSameWayTwice runs one again and again: every scenario must run twice alike, or its file would change from run to run.
func TestAScenarioRunsTheSameWayTwice(t *testing.T) {
	for range 20 {
		content, err := os.ReadFile(filepath.Join(scenarioDir, "bind", "like_volumes_and_claims.txt"))
		require.NoError(t, err)
		text, _, err := Run(t, string(content))
		require.NoError(t, err)
		require.Equal(t, string(content), text)
	}
}
