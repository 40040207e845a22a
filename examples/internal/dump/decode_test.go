package dump

import (
	"encoding/json"
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/util/yaml"
)

func TestItemsOfAList(t *testing.T) {
	of := func(text string) (parts []string) {
		for _, item := range (chunk{text: []byte(text), line: 3}).items() {
			parts = append(parts, string(item))
		}
		return parts
	}
	assert.Equal(t, []string{`{"a":1}`, `{"b":2}`}, of(`{"kind":"List","items":[{"a":1},{"b":2}],"apiVersion":"v1"}`))
	for name, text := range map[string]string{
		"YAML":              "apiVersion: v1\nitems:\n- a: b\nkind: List\n",
		"JSON that is none": `{"kind":"List","apiVersion":"v1","items":[{]}`,
		"another kind":      `{"kind":"PodList","apiVersion":"v1","items":[{}]}`,
		"another version":   `{"kind":"List","apiVersion":"v2","items":[{}]}`,
		"two values":        `{"kind":"List","apiVersion":"v1","items":[{}]}{}`,
	} {
		assert.Empty(t, of(text), name)
	}
}

// A List is read alike, whether its items are read one by one or it is read as a whole.
func TestItemsAreThoseOfTheWhole(t *testing.T) {
	data, err := os.ReadFile("../../simulate/testdata/dump.yaml")
	require.NoError(t, err)
	whole, err := decode(data)
	require.NoError(t, err)
	data, err = yaml.ToJSON(data)
	require.NoError(t, err)
	cut, err := decode(data)
	require.NoError(t, err)
	require.NotEmpty(t, whole)
	require.Equal(t, len(whole), len(cut))
	for i := range whole {
		assert.Equal(t, whole[i].Place, cut[i].Place)
		wantJSON, _ := json.Marshal(whole[i].content)
		gotJSON, _ := json.Marshal(cut[i].content)
		assert.JSONEq(t, string(wantJSON), string(gotJSON))
	}
}

func TestItemsThatAreNoObjects(t *testing.T) {
	documents, err := decode([]byte(`{"apiVersion":"v1","kind":"List","items":[7,null,"x",{"apiVersion":"v1","kind":"A"}]}`))
	assert.EqualError(t, err, "f: document 1 items[0]: is not an object but a number\n"+
		"f: document 1 items[1]: is not an object but null\nf: document 1 items[2]: is not an object but a string")
	assert.Len(t, documents, 1)
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
