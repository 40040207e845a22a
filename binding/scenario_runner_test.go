package binding_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
)

const firstLine = "# C1: a story.\n\n"

// told plays a story that is written down here.
func told(t *testing.T, story string) (text string, violations []string, err error) {
	t.Helper()
	script, err := parseScript("story.txt", story)
	if err != nil {
		return "", nil, err
	}
	return tell(t.Context(), script)
}

func TestAMistakeInAStoryIsNamedByFileAndLine(t *testing.T) {
	for _, test := range []struct{ name, story, want string }{
		{"no header", "> settle\n", "story.txt:1: the first line must be like"},
		{"no rule in the header", "# A story.\n", "story.txt:1: the first line must be like"},
		{"output of nothing", firstLine + "  update pv/a\n", "story.txt:3: an indented line"},
		{"unknown command", firstLine + "> dance\n", `story.txt:3: unknown command "dance"`},
		{"unknown controller's command", firstLine + "> old: dance\n", `story.txt:3: unknown command "dance"`},
		{"neither table nor command", firstLine + "settle\n", `story.txt:3: "settle" begins neither a table nor a command`},
		{"unknown column", firstLine + "PV   COLOUR\na    red\n", `story.txt:3: a PV has no column "COLOUR"`},
		{"too few cells", firstLine + "PV   CAPACITY\na\n", "story.txt:4: the row has 1 cells, the table 2 columns"},
		{"no quantity", firstLine + "PV   CAPACITY\na    big\n", "story.txt:4: CAPACITY: "},
		{"unknown mode", firstLine + "PV   MODES\na    RWA\n", `story.txt:4: MODES: unknown access mode "RWA"`},
		{"no namespace", firstLine + "PVC    REQUEST\ndata   1Gi\n", `story.txt:4: "pvc/data" has no namespace`},
		{"refused by the server", firstLine + "PV   CAPACITY\na    -1Gi\n", `story.txt:4: PersistentVolume "a" is invalid`},
		{"unknown kind", firstLine + "> delete job/a\n", `story.txt:3: "job/a" is not an object`},
		{"kind to hold", firstLine + "> hold jobs\n", `story.txt:3: unknown kind "jobs"`},
		{"unknown fault", firstLine + "> eat write 1\n", `story.txt:3: unknown fault "eat"`},
		{"number of a fault", firstLine + "> conflict on write x\n", `story.txt:3: "x" is not the number of a write`},
		{"rules too late", firstLine + "> settle\n> rules protection=On\n", "story.txt:4: a controller has started"},
		{"unknown rule", firstLine + "> rules gravity=Off\n", `story.txt:3: unknown rule "gravity=Off"`},
		{"unknown hooks", firstLine + "> hooks plumber=own\n", `story.txt:3: "plumber=own" is not provisioner=`},
		{"unknown fault of a hook", firstLine + "> eat hook 1\n", `story.txt:3: unknown fault "eat"`},
		{"before a hook, nothing", firstLine + "> before hook 1\n", `story.txt:3: unknown fault "before"`},
		{"set what", firstLine + "PV   CAPACITY\na    1Gi\n\n> set pv/a COLOUR=red\n", `story.txt:6: "COLOUR=red" is not COLUMN=value`},
		{"nothing to deliver", firstLine + "> deliver pv\n", "story.txt:3: no change of a pv is left"},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, _, err := told(t, test.story)
			require.Error(t, err)
			assert.Contains(t, err.Error(), test.want)
		})
	}
}

func TestARefusalByTheServerIsPartOfTheStory(t *testing.T) {
	text, violations, err := told(t, firstLine+"PV   CAPACITY\na    1Gi\n\n> set pv/a MODE=Block\n> delete pv/b\n")
	require.NoError(t, err)
	assert.Empty(t, violations)
	assert.Contains(t, text, "> set pv/a MODE=Block\n  refused Invalid\n> delete pv/b\n  refused NotFound\n")
}

const bindOne = firstLine + "PV   CAPACITY\na    1Gi\n\nPVC        REQUEST\ndefault/b  1Gi\n\n"

func TestWhatAStoryViolatesIsNamed(t *testing.T) {
	for _, test := range []struct{ name, story, want string }{
		{"X8 it ends before the controller does", bindOne + "> settle\n> set pv/a CLAIM=-\n", "X8: a second pass: update pv/a"},
		{"X8 it ends in a crash", bindOne + "> crash after write 1\n> settle\n", "the story ends in a crash"},
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
			_, violations, err := told(t, test.story)
			require.NoError(t, err)
			assert.Contains(t, strings.Join(violations, "\n"), test.want)
		})
	}
}

func TestX6AModifiedInputIsNoticed(t *testing.T) {
	script, err := parseScript("story.txt", bindOne)
	require.NoError(t, err)
	stage := newStage(t.Context())
	for _, block := range script.blocks {
		if block.kind == table {
			require.NoError(t, stage.createAll(&script, block))
		}
	}
	a := stage.actor(defaultActor)
	stage.settle(a)
	require.Empty(t, stage.violations)
	for _, known := range a.Controller.Known() {
		if claim, ok := known.(*corev1.PersistentVolumeClaim); ok {
			claim.Annotations["scribbled"] = "on"
		}
	}
	stage.checkInputs(a)
	require.Len(t, stage.violations, 1)
	assert.Contains(t, stage.violations[0], "X6: *v1.PersistentVolumeClaim default/b")
	assert.Contains(t, stage.violations[0], "+annotation scribbled=on")
}

// Every story must be told twice alike, or its file would change from run to run.
func TestAStoryIsToldTheSameWayTwice(t *testing.T) {
	for range 20 {
		content, err := os.ReadFile(filepath.Join(scenarioDir, "bind", "like_volumes_and_claims.txt"))
		require.NoError(t, err)
		text, _, err := told(t, string(content))
		require.NoError(t, err)
		require.Equal(t, string(content), text)
	}
}
