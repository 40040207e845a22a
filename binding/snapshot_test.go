package binding_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	corev1 "k8s.io/api/core/v1"

	"github.com/pvbind/pvbind/binding"
	"github.com/pvbind/pvbind/binding/obj"
)

func TestSnapshotEvidence(t *testing.T) {
	volume, claim := knownVolume("a"), knownClaim()
	known := knowing(volume, claim, podUsing("web-0"))
	proof := proving(known, obj.VolumeKey("a"), obj.VolumeKey("none"), dataKey, obj.ClaimKey("default", "none"), obj.PodsKey("default"))
	type answer struct {
		found    bool
		evidence binding.Evidence
	}
	ask := func(s binding.Snapshot, kind, name string) answer {
		switch kind {
		case "volume":
			found, evidence := s.Volume(name)
			return answer{found != nil, evidence}
		case "claim":
			found, evidence := s.Claim("default", name)
			return answer{found != nil, evidence}
		}
		found, evidence := s.PodsOf("default", name)
		return answer{found != nil, evidence}
	}
	for _, test := range []struct {
		name, kind, of string
		from           binding.Snapshot
		want           answer
	}{
		{"V3 a volume in the lists", "volume", "a", known, answer{true, binding.Cached}},
		{"V3 a volume that is not", "volume", "none", known, answer{false, binding.Unknown}},
		{"V3 a volume read live", "volume", "a", proof, answer{true, binding.Live}},
		{"V3 a volume read live and not there", "volume", "none", proof, answer{false, binding.Absent}},
		{"V3 a claim in the lists", "claim", "data", known, answer{true, binding.Cached}},
		{"V3 a claim that is not", "claim", "none", known, answer{false, binding.Unknown}},
		{"V3 a claim read live", "claim", "data", proof, answer{true, binding.Live}},
		{"V3 a claim read live and not there", "claim", "none", proof, answer{false, binding.Absent}},
		{"V3 a claim in another namespace", "claim", "a", proof, answer{false, binding.Unknown}},
		{"F2 pods in the lists", "pods", "data", known, answer{true, binding.Cached}},
		{"F2 pods of a claim that has none", "pods", "none", known, answer{false, binding.Cached}},
		{"F2 no pod at all", "pods", "data", knowing(claim), answer{false, binding.Unknown}},
		{"F2 pods listed live", "pods", "data", proof, answer{true, binding.Live}},
		{"F2 none listed live", "pods", "data", proving(knowing(claim), obj.PodsKey("default")), answer{false, binding.Live}},
	} {
		t.Run(test.name, func(t *testing.T) {
			assert.Equal(t, test.want, ask(test.from, test.kind, test.of))
		})
	}
	assert.False(t, binding.Cached.Proven())
	assert.False(t, binding.Unknown.Proven())
	assert.True(t, binding.Live.Proven())
	assert.True(t, binding.Absent.Proven())
}

func TestSnapshotOwners(t *testing.T) {
	owners := func(claims ...obj.Object) []obj.Key { return knowing(claims...).Owners("a") }

	assert.Empty(t, owners(), "M2 nobody")
	assert.Empty(t, owners(knownClaim(naming("a"))), "M2 one that was never bound")
	assert.Empty(t, owners(knownClaim(boundTo("b"))), "M2 one of another volume")
	assert.Equal(t, []obj.Key{dataKey}, owners(knownClaim(boundTo("a"))), "M2")
	assert.Equal(t, []obj.Key{dataKey}, owners(knownClaim(boundTo("a"), withoutNote(completed))), "M2 its tenant took the annotation off")
	assert.Empty(t, owners(knownClaim(boundTo("a"), claimPhase(corev1.ClaimLost))), "M2 a Lost one")
	assert.Empty(t, owners(knownClaim(naming("a"), claimNote(completed, "yes"), claimNote(boundBy, "yes"))), "M2 a forged one")
	assert.Equal(t, []obj.Key{obj.ClaimKey("default", "b"), obj.ClaimKey("default", "c")},
		owners(knownClaim(boundTo("a"), named("c")), knownClaim(boundTo("a"), named("b"))), "M2 both of two")
}
