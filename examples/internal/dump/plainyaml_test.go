package dump

import (
	"encoding/json"
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/util/yaml"
)

// requireSameAsParser holds plainYAML to the parser: what it reads it reads alike.
func requireSameAsParser(t *testing.T, text string) (read bool) {
	t.Helper()
	got, ok := plainYAML([]byte(text))
	if !ok {
		return false
	}
	var want any
	require.NoError(t, yaml.UnmarshalStrict([]byte(text), &want), "%q", text)
	wantJSON, err := json.Marshal(want)
	require.NoError(t, err)
	gotJSON, err := json.Marshal(got)
	require.NoError(t, err)
	require.Equal(t, string(wantJSON), string(gotJSON), "%q", text)
	return true
}

var plainTexts = []string{
	"a: b\n", "a:\n  b: c\n  d: e\nf: g\n", "a:\n- b\n- c\nd: e\n", "a:\n  - b\n  - c: d\n    e: f\n", "a:\n- b: c\n  d:\n  - e\n- f: g\n", "a:\nb:\n", "a:\n",
	"a: {}\nb: []\nc: null\nd: true\ne: false\n", "a: \"\"\nb: ''\nc: \"x y\"\nd: 'say \"x\"'\n", "a: 0\nb: 17\nc: 123456789012345\n", "a: 10Gi\nb: 100m\nc: 5G\n", "a: 10.0.1.17\nb: 10.0.0.0/24\n",
	"a: 6b4cb242-4a23-4596-a217-beaddbc496cb\nb: 12345678-1234-1234-1234-123456789012\n", "a: 1676374219123-8081-ebs.csi.aws.com\n", "a: pvc-1\nb: ebs.csi.aws.com\nc: /mnt/a\nd: a:b\n",
	"a: |\n  x\n    y\n  z\nb: c\n", "metadata:\n  annotations:\n    pv.kubernetes.io/bound-by-controller: \"yes\"\n    a/b: x, y (z)\n", "  a: b\n  c:\n  - d\n",
}

func TestPlainYAMLReadsWhatKubectlWrites(t *testing.T) {
	for _, text := range plainTexts {
		assert.True(t, requireSameAsParser(t, text), "%q is not read", text)
	}
	data, err := os.ReadFile("../../simulate/testdata/dump.yaml")
	require.NoError(t, err)
	items := chunk{text: data, line: 1}.items()
	require.Len(t, items, strings.Count("\n"+string(data), "\n- "))
	for _, item := range items {
		read := requireSameAsParser(t, string(item.text))
		assert.True(t, read || !strings.Contains(string(item.text), "kind: P"), "not read: %s", item.text)
	}
}

// Lines are left out, doubled, swapped, indented otherwise, cut and joined, and still both read alike whatever plainYAML
// reads.
func TestPlainYAMLOfMangledText(t *testing.T) {
	data, err := os.ReadFile("../../simulate/testdata/dump.yaml")
	require.NoError(t, err)
	items := chunk{text: data, line: 1}.items()
	random, read := rand.New(rand.NewPCG(1, 1)), 0
	for range 5_000 {
		lines := strings.SplitAfter(string(items[random.IntN(len(items))].text), "\n")
		for range 1 + random.IntN(3) {
			i, j := random.IntN(len(lines)), random.IntN(len(lines))
			switch random.IntN(6) {
			case 0:
				lines[i] = ""
			case 1:
				lines[i] += lines[j]
			case 2:
				lines[i], lines[j] = lines[j], lines[i]
			case 3:
				lines[i] = strings.Repeat(" ", random.IntN(4)) + lines[i]
			case 4:
				lines[i] = strings.TrimPrefix(lines[i], "  ")
			case 5:
				at := random.IntN(len(lines[i]) + 1)
				lines[i] = lines[i][:at] + string(" :-'\"0ex_|#\n"[random.IntN(12)]) + lines[i][at:]
			}
		}
		if requireSameAsParser(t, strings.Join(lines, "")) {
			read++
		}
	}
	assert.Greater(t, read, 500)
}

func TestPlainYAMLLeavesTheRestToTheParser(t *testing.T) {
	for _, text := range []string{
		"", "a", "a: b", "a: |\n b", "- a\n", "a: b\n\nc: d\n", "# a\n", "a: b # c\n", "a: &x b\n", "a: *x\n", "a: !!str b\n", "a: [b]\n", "a: {b: c}\n", "a: >\n  b\n", "a: |-\n  b\n", "a: |\nb: c\n", "a: |\n", "a: ~\n",
		"a: b\na: c\n", "yes: a\n", "a: Yes\n", "a: off\n", "a: .inf\n", "a: -1\n", "a: +1\n", "a: 1.5\n", "a: 1e3\n", "a: 0x1f\n", "a: 017\n", "a: 1_000\n", "a: 12:30\n", "a: 2026-01-02\n", "a: 1e-3\n",
		"a: \"b\\n\"\n", "a: 'it''s'\n", "a: \"b\n  c\"\n", "a: b\n  c\n", "a: b\n  c: d\n", "a:\n    b: c\n  d: e\n", "a:\n\tb: c\n", "a: b\r\n", "a: é\n", "? a\n: b\n", "a: b: c\n", "a: -\n", "a: - b\n", "a: b #c\n",
		"- - a\n", "a:\n- - b\n", "a:\n-\n", "a: @b\n", "a: `b`\n", "a: %b\n", "---\na: b\n", "a: b\n c: d\n", "1: a\n", "<<: a\n", "a:\n- b\n  c\n", "a:\n  b: c\n- d\n",
	} {
		_, ok := plainYAML([]byte(text))
		assert.False(t, ok, "%q", text)
	}
}

// YAML ends a key after 1,024 characters; Kubernetes has none half as long.
func TestPlainYAMLLeavesLongKeysToTheParser(t *testing.T) {
	for _, length := range []int{longestKey, longestKey + 1, 1023, 1024, 1025, 3000} {
		key := strings.Repeat("k", length)
		for _, text := range []string{key + ": v\n", key + ":\n  a: b\n", "a:\n- " + key + ": v\n"} {
			assert.Equal(t, length <= longestKey, requireSameAsParser(t, text), "%d characters", length)
		}
		assert.True(t, requireSameAsParser(t, "a: "+key+"\nb:\n- "+key+"\n"), "a value may have %d", length)
	}
}

// FuzzPlainYAML looks for a text that it reads otherwise than the parser.
func FuzzPlainYAML(f *testing.F) {
	for _, text := range plainTexts {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) { requireSameAsParser(t, text) })
}

func TestItemsOfAList(t *testing.T) {
	of := func(text string) (parts []string) {
		for _, item := range (chunk{text: []byte(text), line: 3}).items() {
			parts = append(parts, strings.ReplaceAll(string(item.text), "\n", "|"))
		}
		return parts
	}
	assert.Equal(t, []string{"  a: b|  c: d|", "  e:|  - f|"}, of("apiVersion: v1\nitems:\n- a: b\n  c: d\n- e:\n  - f\nkind: List\nmetadata:\n  resourceVersion: \"\"\n"))
	assert.Equal(t, []string{`{"a":1}`, `{"b":2}`}, of(`{"kind":"List","items":[{"a":1},{"b":2}],"apiVersion":"v1"}`))
	for name, text := range map[string]string{
		"another kind":       "apiVersion: v1\nitems:\n- a: b\nkind: PodList\n",
		"another key":        "apiVersion: v1\nitems:\n- a: b\nkind: List\nx: y\n",
		"no kind":            "apiVersion: v1\nitems:\n- a: b\n",
		"items twice":        "apiVersion: v1\nitems:\n- a: b\nkind: List\nitems:\n- a: b\n",
		"an anchor":          "apiVersion: v1\nitems:\n- a: &x b\n- a: *x\nkind: List\n",
		"items in a line":    "apiVersion: v1\nitems: [{a: b}]\nkind: List\n",
		"a comment":          "apiVersion: v1\nitems:\n# a\n- a: b\nkind: List\n",
		"a list elsewhere":   "apiVersion: v1\nmetadata:\n- a: b\nitems:\nkind: List\n",
		"JSON that is none":  `{"kind":"List","apiVersion":"v1","items":[{]}`,
		"JSON of other kind": `{"kind":"PodList","apiVersion":"v1","items":[{}]}`,
	} {
		assert.Empty(t, of(text), name)
	}
}

// The items of a list are read alike, whether it is cut or read as a whole.
func TestItemsAreThoseOfTheWhole(t *testing.T) {
	data, err := os.ReadFile("../../simulate/testdata/dump.yaml")
	require.NoError(t, err)
	cut, err := decode(data)
	require.NoError(t, err)
	whole, err := decode(append([]byte("# so that it is not cut\n"), data...))
	require.NoError(t, err)
	require.Equal(t, len(whole), len(cut))
	for i := range whole {
		assert.Equal(t, whole[i].Place, cut[i].Place)
		wantJSON, _ := json.Marshal(whole[i].content)
		gotJSON, _ := json.Marshal(cut[i].content)
		assert.JSONEq(t, string(wantJSON), string(gotJSON))
	}
}

func TestLinesOfItemsCountFromTheBeginningOfTheFile(t *testing.T) {
	_, err := decode([]byte("apiVersion: v1\nitems:\n- a: b\n- c: [\nkind: List\n"))
	assert.ErrorContains(t, err, "f: document 1 items[1]: yaml: line 4: did not find expected node content")
}

func TestInParallelKeepsTheOrder(t *testing.T) {
	numbers := make([]int, 10*batch+7)
	for i := range numbers {
		numbers[i] = i
	}
	var told []int
	doubled := inParallel(numbers, func(n int) int { return 2 * n }, func(done, of int) {
		assert.Equal(t, len(numbers), of)
		told = append(told, done)
	})
	for i, n := range doubled {
		require.Equal(t, 2*i, n)
	}
	assert.IsIncreasing(t, told)
	assert.Equal(t, len(numbers), told[len(told)-1])
	assert.Empty(t, inParallel(nil, func(n int) int { return n }, nil))
}
