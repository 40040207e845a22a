package dump

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/util/yaml"

	"github.com/pvbind/pvbind/binding/bindingtest"
)

// reading reads text as standard input and returns it with the lines of the error.
func reading(text string) (Input, []string) {
	in, err := Read([]string{"-"}, strings.NewReader(text), nil)
	if err != nil {
		return in, Lines(err)
	}
	return in, nil
}

// inList returns the text, an object in YAML, as the only item of a list, as kubectl prints one in JSON.
func inList(t *testing.T, text string) string {
	t.Helper()
	item, err := yaml.ToJSON([]byte(text))
	require.NoError(t, err)
	return `{"apiVersion":"v1","kind":"List","items":[` + string(item) + "]}"
}

// names of the objects as kubectl would name them.
func names(t *testing.T, in Input) []string {
	t.Helper()
	var all []string
	for _, e := range in.Entries {
		key, err := bindingtest.KeyOf(e.Object)
		require.NoError(t, err)
		all = append(all, key.String())
	}
	return all
}

const goodVolume = `
apiVersion: v1
kind: PersistentVolume
metadata: {name: a}
spec:
  capacity: {storage: 1Gi}
  accessModes: [ReadWriteOnce]
  hostPath: {path: /a}
`

const goodClaim = `
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: data}
spec:
  accessModes: [ReadWriteOnce]
  resources: {requests: {storage: 1Gi}}
`

func TestReadTakesItsKinds(t *testing.T) {
	in, problems := reading(goodVolume + "---" + goodClaim + `---
apiVersion: v1
kind: Pod
metadata: {name: web, namespace: shop}
spec: {containers: [{name: main, image: x}]}
---
apiVersion: v1
kind: Node
metadata: {name: one}
---
apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata: {name: fast}
provisioner: example.com/fast
---
apiVersion: storage.k8s.io/v1
kind: CSINode
metadata: {name: one}
spec: {drivers: []}
---
apiVersion: storage.k8s.io/v1
kind: VolumeAttachment
metadata: {name: csi-1}
spec: {attacher: csi.example.com, nodeName: one, source: {persistentVolumeName: a}}
`)
	require.Empty(t, problems)
	assert.Empty(t, in.Notes)
	assert.Equal(t, []string{"pv/a", "pvc/default/data", "pod/shop/web", "node/one", "storageclass/fast", "csinode/one", "volumeattachment/csi-1"}, names(t, in))
}

func TestReadPassesOverOtherKinds(t *testing.T) {
	in, problems := reading(goodVolume + `---
{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x"}}
{"apiVersion": "v1", "kind": "ConfigMap", "data": 7}
{"apiVersion": "storage.k8s.io/v1beta1", "kind": "StorageClass"}
`)
	require.Empty(t, problems)
	assert.Equal(t, []string{"-: passed over storage.k8s.io/v1beta1 StorageClass (1)", "-: passed over v1 ConfigMap (2)"}, in.Notes)
	assert.Equal(t, []string{"pv/a"}, names(t, in))
}

func TestReadNotesUnknownFields(t *testing.T) {
	in, problems := reading(strings.Replace(goodClaim, "spec:", "spec:\n  storageclassName: fast\n  inventedInKubernetes2: {a: 1}", 1))
	require.Empty(t, problems)
	assert.Equal(t, []string{"pvc/default/data"}, names(t, in))
	assert.ElementsMatch(t, []string{
		`-: document 1: pvc/default/data: passed over unknown field "spec.storageclassName"`,
		`-: document 1: pvc/default/data: passed over unknown field "spec.inventedInKubernetes2"`,
	}, in.Notes)
}

func TestReadNamesFileDocumentObjectAndField(t *testing.T) {
	volume := func(old, new string) string { return strings.Replace(goodVolume, old, new, 1) }
	claim := func(old, new string) string { return strings.Replace(goodClaim, old, new, 1) }
	for name, c := range map[string]struct {
		text string
		want string // the beginning of the only line
	}{
		"negative capacity":     {volume("1Gi", `"-1Gi"`), "-: document 1: pv/a: spec.capacity[storage]: Invalid value"},
		"no capacity":           {volume("storage: 1Gi", ""), "-: document 1: pv/a: spec.capacity: Required value"},
		"no number":             {volume("1Gi", "1GiB"), "-: document 1: pv/a: spec.capacity.storage: quantities must match"},
		"unknown access mode":   {volume("ReadWriteOnce", "ReadWriteTwice"), "-: document 1: pv/a: spec.accessModes: Unsupported value"},
		"unknown mode in claim": {claim("ReadWriteOnce", "RWO"), "-: document 1: pvc/default/data: spec.accessModes: Unsupported value"},
		"unknown volume mode":   {claim("spec:", "spec:\n  volumeMode: Tape"), "-: document 1: pvc/default/data: spec.volumeMode: Unsupported value"},
		"unknown policy":        {volume("spec:", "spec:\n  persistentVolumeReclaimPolicy: Burn"), "-: document 1: pv/a: spec.persistentVolumeReclaimPolicy: Unsupported value"},
		"bad selector":          {claim("spec:", "spec:\n  selector: {matchExpressions: [{key: a, operator: Near}]}"), "-: document 1: pvc/default/data: spec.selector.matchExpressions[0].operator: Invalid value"},
		"no name":               {volume("name: a", ""), "-: document 1: pv/(no name): metadata.name: Required value"},
		"no metadata":           {volume("metadata: {name: a}", ""), "-: document 1: pv/(no name): metadata.name: Required value"},
		"generateName only":     {claim("name: data", "generateName: data-"), "-: document 1: pvc/default/(no name): metadata.name: Required value"},
		"a name of wrong type":  {volume("name: a", "name: 7"), "-: document 1: pv/(no name): metadata.name: has the wrong type: number"},
		"a bad name":            {volume("name: a", "name: A_b"), "-: document 1: pv/A_b: metadata.name: Invalid value"},
		"modes of wrong type":   {volume("[ReadWriteOnce]", "ReadWriteOnce"), "-: document 1: pv/a: spec.accessModes: has the wrong type: string"},
		"a mode of wrong type":  {volume("[ReadWriteOnce]", "[ReadWriteOnce, {a: b}]"), "-: document 1: pv/a: spec.accessModes[1]: has the wrong type: object"},
		"a label of wrong type": {volume("name: a", "name: a, labels: {x: y, example.com/z: 7}"), "-: document 1: pv/a: metadata.labels[example.com/z]: has the wrong type: number"},
		"a time that is none":   {volume("name: a", "name: a, creationTimestamp: yesterday"), "-: document 1: pv/a: metadata.creationTimestamp: parsing time"},
		"spec of wrong type":    {"apiVersion: v1\nkind: PersistentVolume\nmetadata: {name: a}\nspec: 7\n", "-: document 1: pv/a: spec: has the wrong type: number"},
		"an empty object":       {"apiVersion: v1\nkind: PersistentVolume\nmetadata: {name: a}\nspec: {accessModes: [ReadWriteOnce], capacity: {storage: 1Gi}}\n", "-: document 1: pv/a: spec: Required value"},
		"a bad class mode":      {"apiVersion: storage.k8s.io/v1\nkind: StorageClass\nmetadata: {name: s}\nprovisioner: p\nvolumeBindingMode: Later\n", "-: document 1: sc/s: volumeBindingMode: Unsupported value"},
		"the same name twice":   {goodClaim + "---" + claim("name: data", "name: data, namespace: default"), "-: document 2: pvc/default/data: metadata.name: is already in -: document 1"},
		"the same uid twice":    {claim("name: data", "name: data, uid: x") + "---" + volume("name: a", "name: a, uid: x"), "-: document 2: pv/a: metadata.uid: is already in -: document 1"},
		"an item":               {"apiVersion: v1\nkind: List\nitems:\n- {apiVersion: v1, kind: Node, metadata: {name: one}}\n- {apiVersion: v1, kind: Node, metadata: {name: Two}}", "-: document 1 items[1]: node/Two: metadata.name: Invalid value"},
	} {
		t.Run(name, func(t *testing.T) {
			_, problems := reading(c.text)
			require.Len(t, problems, 1)
			assert.True(t, strings.HasPrefix(problems[0], c.want), "%s\nwant %s", problems[0], c.want)
			if strings.Contains(c.text, "---") || strings.Contains(c.text, "items:") {
				return
			}
			_, listed := reading(inList(t, c.text))
			require.Len(t, listed, 1)
			assert.Equal(t, problems[0], strings.Replace(listed[0], "document 1 items[0]:", "document 1:", 1))
		})
	}
}

// Items of a list that say at once what they are, are read by a shorter way than all else, to the same end.
func TestReadItemsOfAList(t *testing.T) {
	for _, text := range []string{
		goodVolume, goodClaim, strings.Replace(goodClaim, "spec:", "spec:\n  storageclassName: fast", 1),
		strings.Replace(goodClaim, "1Gi", "1.5e-3", 1), strings.Replace(goodVolume, "name: a", "name: a, namespace: shop, labels: {e-1000: \"1e-1000\"}", 1),
	} {
		alone, problems := reading(text)
		listed, listedProblems := reading(inList(t, text))
		require.Len(t, listedProblems, len(problems))
		require.Len(t, listed.Notes, len(alone.Notes))
		require.Equal(t, alone.Objects(), listed.Objects())
	}
	// Of a field that is there twice the last counts, also where the object begins with another.
	for again, want := range map[string]string{`"kind":"Node"`: "node/data", `"spec":{}`: "pvc/default/data", `"metadata":{"name":"other"}`: "pvc/default/other"} {
		in, problems := reading(strings.Replace(inList(t, goodClaim), `"spec"`, again+`,"spec"`, 1))
		require.Empty(t, problems)
		assert.Equal(t, []string{want}, names(t, in))
	}
}

func TestReadTellsTwoNamespacesApart(t *testing.T) {
	in, problems := reading(goodClaim + "---" + strings.Replace(goodClaim, "name: data", "name: data, namespace: other", 1))
	require.Empty(t, problems)
	assert.Equal(t, []string{"pvc/default/data", "pvc/other/data"}, names(t, in))
}

func TestReadReportsEveryProblemOfEveryFile(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "bad.yaml")
	require.NoError(t, os.WriteFile(file, []byte("a: [\n---\nkind: 7\n---"+goodVolume), 0o600))
	missing := filepath.Join(dir, "missing.yaml")
	_, err := Read([]string{missing, file, dir, "-"}, strings.NewReader(goodVolume), nil)
	require.Error(t, err)
	lines := Lines(err)
	require.Len(t, lines, 5)
	assert.Contains(t, lines[0], missing)
	assert.Contains(t, lines[1], file+": document 1: yaml: ")
	assert.Contains(t, lines[2], file+": document 2: (no kind)/(no name): kind: ")
	assert.Contains(t, lines[3], dir)
	assert.Contains(t, lines[4], "-: document 1: pv/a: metadata.name: is already in "+file+": document 3")
}

func TestProblemsAreOneLine(t *testing.T) {
	_, problems := reading(strings.Replace(goodClaim, "1Gi", `"x\ny\u001b[31m`+strings.Repeat("z", 5000)+`"`, 1))
	require.Len(t, problems, 1)
	assert.Less(t, len(problems[0]), 1000)
	assert.NotContains(t, problems[0], "\x1b")
}
