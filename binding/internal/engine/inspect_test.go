package engine

import (
	"reflect"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/pvbind/pvbind/binding/decision"
)

// TestModelDescribesAllOfAState names every field of what a Controller remembers: a new one has to be described to the
// model (see Describe), or it takes moments for one that will go different ways.
func TestModelDescribesAllOfAState(t *testing.T) {
	for _, test := range []struct {
		of     any
		fields []string
	}{
		{State{}, []string{"store", "options", "tasks", "locks", "waiters", "inDoubt", "leftInDoubt", "offers", "hooks", "workers", "lastEvents", "rejected", "refused", "failures", "restore", "unclaimed", "deleted", "announced", "now"}},
		{store{}, []string{"objects", "claimsByVolume", "volumesByClaim", "claimsByUID", "podsByClaim", "largePods", "attachmentsByVolume", "parsedClaims", "podClaims", "index", "waiting", "notified", "gone", "gonePods", "goneVolumes", "lostOwners", "formerClaims", "displaced", "stored", "usedBefore", "reservedFor", "goesOn", "startedOver", "hadBefore", "begun"}},
		{lastVolume{}, []string{"uid", "version", "wentBack", "owners", "claimRef", "policy", "announcement", "chosen"}},
		{refusal{}, []string{"write", "err", "again"}},
		{task{}, []string{"key", "volume", "version", "pending", "written", "before", "outdated", "contradicted", "live", "answers", "provided", "publish", "next", "steps"}},
		{Reply{}, []string{"Object", "Err", "Claims", "Pods", "Attachments", "parsed", "owners", "podsByClaim", "podClaims"}},
		{restore{}, []string{"unread", "held", "made", "gone", "unsaid", "calls", "former"}},
		{contradiction{}, []string{"uid", "agrees", "missing", "dated", "early", "version"}},
		{offers{}, []string{"made", "pendingFor", "pendingOn", "order"}},
		{offer{}, []string{"version", "claims"}},
		{slots{}, []string{"limit", "running", "promised", "held", "waiting", "turns"}},
		{namespaceQueues{}, []string{"keys", "queued"}},
		{sighting{}, []string{"text", "since", "version", "halted"}},
		{rejection{}, []string{"claimVersion", "volume", "volumeVersion"}},
		{decision.Answer{}, []string{"Of", "Hook", "For", "Token", "Version", "Standing", "Volume", "Err", "Unsettled"}},
		{told{}, []string{"events", "at"}},
		{decision.Event{}, []string{"Type", "Reason", "Message", "On", "UID", "Hook", "Tenant", "same"}},
	} {
		var fields []string
		for i := range reflect.TypeOf(test.of).NumField() {
			fields = append(fields, reflect.TypeOf(test.of).Field(i).Name)
		}
		assert.ElementsMatch(t, test.fields, fields, "%T", test.of)
	}
}
