package extender_test

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"
	schedulerv1 "k8s.io/kube-scheduler/extender/v1"
)

const somePod = `{"metadata":{"namespace":"default","name":"web"}}`

// What is no proper request gets one line that says why, and the next request is answered as if nothing had been.
func TestMalformedRequests(t *testing.T) {
	c := newCluster(t)
	for name, r := range map[string]struct {
		method, path, body string
		code               int
		text               string
	}{
		"not JSON":                {path: "/filter", body: "nodes: [n1]", code: 400, text: "not the JSON"},
		"nothing":                 {path: "/filter", code: 400, text: "EOF"},
		"half of it":              {path: "/filter", body: `{"Pod":{"metadata":`, code: 400, text: "unexpected EOF"},
		"null":                    {path: "/filter", body: "null", code: 400, text: "Pod is missing"},
		"a list":                  {path: "/filter", body: "[]", code: 400, text: "cannot unmarshal array"},
		"a field of another type": {path: "/filter", body: `{"Pod":7}`, code: 400, text: "cannot unmarshal number"},
		"a bad quantity":          {path: "/filter", body: `{"Pod":{"metadata":{"name":"web"},"spec":{"overhead":{"cpu":"lots"}}}}`, code: 400, text: "quantities must match"},
		"two values":              {path: "/filter", body: `{} {}`, code: 400, text: "more than one JSON value"},
		"garbage behind":          {path: "/filter", body: `{"NodeNames":[]} }`, code: 400, text: "after the JSON value"},
		"deep":                    {path: "/filter", body: strings.Repeat("[", 1<<20), code: 400, text: "exceeded max depth"},
		"no pod":                  {path: "/filter", body: `{"NodeNames":["n1"]}`, code: 400, text: "Pod is missing"},
		"a pod without a name":    {path: "/filter", body: `{"Pod":{},"NodeNames":["n1"]}`, code: 400, text: "no metadata.name"},
		"no nodes":                {path: "/filter", body: `{"Pod":` + somePod + `}`, code: 400, text: "Nodes and NodeNames are both missing"},
		"no pod to prioritize":    {path: "/prioritize", body: `{}`, code: 400, text: "Pod is missing"},
		"no pod to bind":          {path: "/bind", body: `{"Node":"n1"}`, code: 400, text: "PodName is missing"},
		"no namespace to bind":    {path: "/bind", body: `{"Node":"n1","PodName":"web"}`, code: 400, text: "PodNamespace is missing"},
		"no UID to bind":          {path: "/bind", body: `{"Node":"n1","PodName":"web","PodNamespace":"default"}`, code: 400, text: "PodUID is missing"},
		"no node to bind":         {path: "/bind", body: `{"PodUID":"u","PodName":"web","PodNamespace":"default"}`, code: 400, text: "Node is missing"},
		"10 MB":                   {path: "/filter", body: `{"Pod":"` + strings.Repeat("x", 10<<20) + `"}`, code: 413, text: "more than 4194304 bytes"},
		"10 MB behind":            {path: "/bind", body: `{}` + strings.Repeat(" ", 10<<20), code: 413, text: "more than 4194304 bytes"},
		"another method":          {method: "GET", path: "/filter", code: 405, text: "Method Not Allowed"},
		"another path":            {path: "/preempt", body: "{}", code: 404, text: "not found"},
	} {
		t.Run(name, func(t *testing.T) {
			method := r.method
			if method == "" {
				method = "POST"
			}
			request, err := http.NewRequestWithContext(t.Context(), method, c.url+r.path, strings.NewReader(r.body))
			require.NoError(t, err)
			response, err := http.DefaultClient.Do(request)
			require.NoError(t, err)
			defer response.Body.Close()
			text, err := io.ReadAll(response.Body)
			require.NoError(t, err)
			assert.Equal(t, r.code, response.StatusCode)
			assert.Contains(t, string(text), r.text)
			assert.LessOrEqual(t, len(text), 500)
			assert.Equal(t, 1, strings.Count(string(text), "\n"), "one line")
			assert.Contains(t, response.Header.Get("Content-Type"), "text/plain")

			assert.Equal(t, []string{"n1"}, *c.filter(pod("web"), "n1").NodeNames, "it goes on")
		})
	}
}

func TestBindOfWhatDoesNotExist(t *testing.T) {
	c := newCluster(t, pod("web"))
	for name, r := range map[string]struct {
		uid             types.UID
		pod, node, text string
	}{
		"unknown node": {c.Pod("default", "web").UID, "web", "n9", "node n9: the node is not known to the extender"},
		"unknown pod":  {"u", "other", "n1", "the pod does not exist any more"},
		"pod of old":   {"u", "web", "n1", "the pod does not exist any more"},
	} {
		args := schedulerv1.ExtenderBindingArgs{PodName: r.pod, PodNamespace: "default", PodUID: r.uid, Node: r.node}
		assert.Equal(t, r.text, ask[schedulerv1.ExtenderBindingResult](c, "/bind", args).Error, name)
	}
	assert.Empty(t, c.bind(pod("web"), "n1"), "it goes on")
	assert.Equal(t, "n1", c.Pod("default", "web").Spec.NodeName)
}
