package dump

import (
	"encoding/binary"
	"errors"
	"strings"
	"testing"
	"unicode/utf16"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// decode reads a file whole: the objects in it, those of lists one by one, and a *Problem for each bad document.
func decode(data []byte) ([]document, error) {
	var documents []document
	var problems []error
	for _, p := range piecesOf("f", data) {
		found, err := p.open()
		documents = append(documents, found...)
		problems = append(problems, err)
	}
	return documents, errors.Join(problems...)
}

// kinds decodes text and names what is in it.
func kinds(t *testing.T, text string) []string {
	t.Helper()
	documents, err := decode([]byte(text))
	require.NoError(t, err)
	names := []string{}
	for _, d := range documents {
		names = append(names, d.String()+" "+d.kind)
	}
	return names
}

func TestDecodeFindsEveryDocument(t *testing.T) {
	const a, b = "apiVersion: v1\nkind: A\n", "apiVersion: v1\nkind: B\n"
	two := []string{"f: document 1 A", "f: document 2 B"}
	for name, c := range map[string]struct {
		text string
		want []string
	}{
		"nothing":                           {"", []string{}},
		"white space":                       {" \n\t\n", []string{}},
		"only a comment":                    {"# nothing\n", []string{}},
		"only null":                         {"null\n---\n~\n", []string{}},
		"one":                               {a, two[:1]},
		"two":                               {a + "---\n" + b, two},
		"no line break at the end":          {a + "---\n" + strings.TrimSuffix(b, "\n"), two},
		"a marker first and last":           {"---\n" + a + "---\n" + b + "---\n", two},
		"a marker without line break":       {a + "---\n" + b + "---", two},
		"empty documents between":           {a + "---\n---\n\n---\n" + b, two},
		"a comment alone between":           {a + "---\n# Source: chart/x.yaml\n---\n" + b, two},
		"a comment behind the marker":       {"--- # first\n" + a + "---\t# second\n" + b, two},
		"blanks behind the marker":          {a + "---  \n" + b, two},
		"content behind the marker":         {"--- {apiVersion: v1, kind: A}\n--- {apiVersion: v1, kind: B}\n", two},
		"document end":                      {a + "...\n---\n" + b + "...\n", two},
		"document end, no marker":           {a + "...\n" + b, two},
		"a directive":                       {"%YAML 1.2\n---\n" + a + "...\n%YAML 1.1\n---\n" + b, two},
		"CRLF":                              {strings.ReplaceAll("---\n"+a+"---\n"+b+"...\n", "\n", "\r\n"), two},
		"a byte order mark":                 {"\uFEFF" + a + "---\n" + b, two},
		"a byte order mark, marker, JSON":   {"\uFEFF---\n" + `{"apiVersion":"v1","kind":"A"}`, two[:1]},
		"three dashes in a text":            {a + "data: |\n  ---\n  x\n---\n" + b, two},
		"three dashes and more":             {a + "---x: y\n", two[:1]},
		"JSON":                              {`{"apiVersion":"v1","kind":"A"}`, two[:1]},
		"JSON with tabs":                    {"{\n\t\"apiVersion\": \"v1\",\n\t\"kind\": \"A\"\n}", two[:1]},
		"a stream of JSON":                  {`{"apiVersion":"v1","kind":"A"}{"apiVersion":"v1","kind":"B"}`, two},
		"a stream of JSON, a line each":     {"{\"apiVersion\":\"v1\",\"kind\":\"A\"}\n\n{\"apiVersion\":\"v1\",\"kind\":\"B\"}\n", two},
		"JSON between markers":              {`{"apiVersion":"v1","kind":"A"}` + "\n---\n" + `{"apiVersion":"v1","kind":"B"}`, two},
		"JSON, then YAML":                   {`{"apiVersion":"v1","kind":"A"}` + "\n---\n" + b, two},
		"YAML in braces":                    {"{apiVersion: v1,\n kind: A}\n---\n{'apiVersion': 'v1',\n'kind': B}", two},
		"YAML in braces, comment behind it": {"{apiVersion: v1, kind: A} # it\n", two[:1]},
		"an anchor":                         {"apiVersion: &v v1\nkind: A\nother: *v\n", two[:1]},
	} {
		t.Run(name, func(t *testing.T) { assert.Equal(t, c.want, kinds(t, c.text)) })
	}
}

func TestDecodeReadsUTF16(t *testing.T) {
	for _, order := range []binary.AppendByteOrder{binary.LittleEndian, binary.BigEndian} {
		var text []byte
		for _, unit := range utf16.Encode([]rune("\uFEFFapiVersion: v1\r\nkind: Ä\r\n")) {
			text = order.AppendUint16(text, unit)
		}
		assert.Equal(t, []string{"f: document 1 Ä"}, kinds(t, string(text)))
	}
}

func TestDecodeOpensLists(t *testing.T) {
	for name, c := range map[string]struct {
		text string
		want []string
	}{
		"a List": {"apiVersion: v1\nkind: List\nitems:\n- {apiVersion: v1, kind: A}\n- {apiVersion: v1, kind: B}\n",
			[]string{"f: document 1 items[0] A", "f: document 1 items[1] B"}},
		"an empty List":          {"apiVersion: v1\nkind: List\nitems: []\n", []string{}},
		"a List without items":   {"apiVersion: v1\nkind: List\n", []string{}},
		"a List with null items": {"apiVersion: v1\nkind: List\nitems: null\n", []string{}},
		"a typed list": {"apiVersion: v1\nkind: PersistentVolumeList\nitems:\n- metadata: {name: a}\n",
			[]string{"f: document 1 items[0] PersistentVolume"}},
		"a typed list whose items say what they are": {"apiVersion: v1\nkind: PodList\nitems:\n- {apiVersion: v1, kind: Pod}\n",
			[]string{"f: document 1 items[0] Pod"}},
		"a List in a List": {"apiVersion: v1\nkind: List\nitems:\n- {apiVersion: v1, kind: List, items: [{apiVersion: v1, kind: A}]}\n",
			[]string{"f: document 1 items[0].items[0] A"}},
		"lists and others": {"{\"apiVersion\":\"v1\",\"kind\":\"AList\",\"items\":[{}]}\n---\napiVersion: v1\nkind: B\n",
			[]string{"f: document 1 items[0] A", "f: document 2 B"}},
	} {
		t.Run(name, func(t *testing.T) { assert.Equal(t, c.want, kinds(t, c.text)) })
	}
}

func TestDecodeNamesWhatIsWrong(t *testing.T) {
	const good = "apiVersion: v1\nkind: A\n"
	for name, c := range map[string]struct {
		text string
		want string // a line that must be among the errors
		left int    // objects that are read all the same
	}{
		"no YAML":              {good + "---\na: [\n---\n" + good, "f: document 2: yaml: line 4: did not find expected node content", 2},
		"no YAML in a List":    {"apiVersion: v1\nitems:\n- a: b\n- c: [\nkind: List\n", "f: document 1: yaml: line 5: did not find expected ',' or ']'", 0},
		"a tab":                {"a:\n\tb: 1\n", "f: document 1: yaml: line 2: found character that cannot start any token", 0},
		"a key twice":          {good + "kind: B\n", `f: document 1: yaml: unmarshal errors: line 3: key "kind" already set in map`, 0},
		"no JSON":              {"---\n{\n \"a\": ]", "f: document 1: json: line 3: invalid character ']' looking for beginning of value", 0},
		"JSON cut off":         {`{"apiVersion":"v1","kind":"A"}{"kind":`, "f: document 2: json: line 1: unexpected EOF", 1},
		"JSON of many lines":   {"{\n \"apiVersion\": \"v1\",\n \"kind\":\n", "f: document 1: json: line 3: unexpected EOF", 0},
		"two in braces":        {"{apiVersion: v1, kind: A}\n{apiVersion: v1, kind: B}", "f: document 1: json: line 1: invalid character 'a' looking for beginning of object key string", 0},
		"a string":             {"hello", "f: document 1: is not an object but a string", 0},
		"a number":             {"7", "f: document 1: is not an object but a number", 0},
		"a boolean":            {"true", "f: document 1: is not an object but a boolean", 0},
		"a list":               {"- a\n", "f: document 1: is not an object but a list", 0},
		"no kind":              {"apiVersion: v1\nmetadata: {name: x}\n", "f: document 1: (no kind)/x: kind: Required value", 0},
		"no apiVersion":        {"kind: PersistentVolume\nmetadata: {name: x}\n", "f: document 1: PersistentVolume/x: apiVersion: Required value", 0},
		"a kind of wrong type": {"apiVersion: v1\nkind: 7\n", "f: document 1: (no kind)/(no name): kind: is not a string but a number", 0},
		"an item":              {"apiVersion: v1\nkind: List\nitems: [7, {apiVersion: v1, kind: A}]", "f: document 1 items[0]: is not an object but a number", 1},
		"null as an item":      {"apiVersion: v1\nkind: List\nitems: [null]", "f: document 1 items[0]: is not an object but null", 0},
		"an item of no kind":   {"apiVersion: v1\nkind: List\nitems: [{apiVersion: v1}]", "f: document 1 items[0]: (no kind)/(no name): kind: Required value", 0},
		"items of wrong type":  {"apiVersion: v1\nkind: List\nitems: x\n", "f: document 1: List: items: is not a list but a string", 0},
		"not a number":         {good + "x: .nan\n", "f: document 1: json: unsupported value: NaN", 0},
		"binary":               {good + "x: \x00\n", "f: document 1: yaml: control characters are not allowed", 0},
	} {
		t.Run(name, func(t *testing.T) {
			documents, err := decode([]byte(c.text))
			require.Error(t, err)
			assert.Contains(t, strings.Split(err.Error(), "\n"), c.want)
			assert.Len(t, documents, c.left)
		})
	}
}
