package binding

import (
	"reflect"
	"testing"

	"github.com/stretchr/testify/assert"
)

// TestModelDescribesAllOfAState names every field of what a Controller remembers: a new one has to be described to the
// model (see Describe), or it takes moments for one that will go different ways.
func TestModelDescribesAllOfAState(t *testing.T) {
	for _, test := range []struct {
		of     any
		fields []string
	}{
		{state{}, []string{"store", "rules", "tasks", "holders", "waiters", "unsettled", "doubts", "offers", "slots", "said", "refused", "failures"}},
		{store{}, []string{"volumes", "claims", "classes", "pods", "naming", "holding", "using", "index", "waiting", "called", "gone", "gonePods", "attachments", "attached"}},
		{task{}, []string{"key", "volume", "version", "pending", "asked", "contradicted", "live", "pods", "attachments", "answers", "publish", "next", "steps"}},
		{contradiction{}, []string{"uid", "missing"}},
		{offers{}, []string{"made", "pending", "awaited", "calls"}},
		{offer{}, []string{"version", "claims"}},
		{hookSlots{}, []string{"limit", "running", "promised", "waiting", "queued"}},
		{refusal{}, []string{"claimVersion", "volume", "volumeVersion"}},
		{Answer{}, []string{"Of", "Hook", "For", "Volume", "Err"}},
		{Event{}, []string{"Type", "Reason", "Message", "On", "UID", "same"}},
	} {
		var fields []string
		for i := range reflect.TypeOf(test.of).NumField() {
			fields = append(fields, reflect.TypeOf(test.of).Field(i).Name)
		}
		assert.ElementsMatch(t, test.fields, fields, "%T", test.of)
	}
}
