package decision_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	corev1 "k8s.io/api/core/v1"

	"github.com/pvbind/pvbind/binding/decision"
	. "github.com/pvbind/pvbind/binding/internal/testkit"
	"github.com/pvbind/pvbind/binding/obj"
)

func TestSnapshotEvidence(t *testing.T) {
	volume, claim := KnownVolume("a"), KnownClaim()
	known := Knowing(volume, claim, PodUsing("web-0", Scheduled))
	proof := Proving(known, obj.VolumeKey("a"), obj.VolumeKey("none"), DataKey, obj.ClaimKey("default", "none"), obj.PodsKey("default"))
	type answer struct {
		found  bool
		source decision.Source
	}
	ask := func(s decision.Snapshot, kind, name string) answer {
		switch kind {
		case "volume":
			found, source := s.Volume(name)
			return answer{found != nil, source}
		case "claim":
			found, source := s.Claim("default", name)
			return answer{found != nil, source}
		}
		users, source := s.UsersOf(KnownClaim(Named(name)), 1)
		return answer{len(users) > 0, source}
	}
	for _, test := range []struct {
		name, kind, of string
		from           decision.Snapshot
		expected       answer
	}{
		{"V3 a volume in the lists", "volume", "a", known, answer{true, decision.FromCache}},
		{"V3 a volume that is not", "volume", "none", known, answer{false, decision.NotInCache}},
		{"V3 a volume read live", "volume", "a", proof, answer{true, decision.FromLiveRead}},
		{"V3 a volume read live and not there", "volume", "none", proof, answer{false, decision.AbsentInLiveRead}},
		{"V3 a claim in the lists", "claim", "data", known, answer{true, decision.FromCache}},
		{"V3 a claim that is not", "claim", "none", known, answer{false, decision.NotInCache}},
		{"V3 a claim read live", "claim", "data", proof, answer{true, decision.FromLiveRead}},
		{"V3 a claim read live and not there", "claim", "none", proof, answer{false, decision.AbsentInLiveRead}},
		{"V3 a claim in another namespace", "claim", "a", proof, answer{false, decision.NotInCache}},
		{"F2 pods in the lists", "pods", "data", known, answer{true, decision.FromCache}},
		{"F2 pods of a claim that has none", "pods", "none", known, answer{false, decision.FromCache}},
		{"F2 no pod at all", "pods", "data", Knowing(claim), answer{false, decision.NotInCache}},
		{"F2 pods listed live", "pods", "data", proof, answer{true, decision.FromLiveRead}},
		{"F2 none listed live", "pods", "data", Proving(Knowing(claim), obj.PodsKey("default")), answer{false, decision.FromLiveRead}},
	} {
		t.Run(test.name, func(t *testing.T) {
			assert.Equal(t, test.expected, ask(test.from, test.kind, test.of))
		})
	}
	assert.False(t, decision.FromCache.IsLive())
	assert.False(t, decision.NotInCache.IsLive())
	assert.True(t, decision.FromLiveRead.IsLive())
	assert.True(t, decision.AbsentInLiveRead.IsLive())
}

func TestSnapshotOwners(t *testing.T) {
	owners := func(claims ...obj.Object) []obj.Key { return Knowing(claims...).Owners("a") }

	assert.Empty(t, owners(), "M2 nobody")
	assert.Empty(t, owners(KnownClaim(Naming("a"))), "M2 one that was never bound")
	assert.Empty(t, owners(KnownClaim(BoundTo("b"))), "M2 one of another volume")
	assert.Equal(t, []obj.Key{DataKey}, owners(KnownClaim(BoundTo("a"))), "M2")
	assert.Equal(t, []obj.Key{DataKey}, owners(KnownClaim(BoundTo("a"), WithoutNote(Completed))), "M2 its tenant took the annotation off")
	assert.Empty(t, owners(KnownClaim(BoundTo("a"), ClaimPhase(corev1.ClaimLost))), "M2 a Lost one")
	assert.Empty(t, owners(KnownClaim(Naming("a"), ClaimNote(Completed, "yes"), ClaimNote(BoundBy, "yes"))), "M2 a forged one")
	assert.Equal(t, []obj.Key{obj.ClaimKey("default", "b"), obj.ClaimKey("default", "c")},
		owners(KnownClaim(BoundTo("a"), Named("c")), KnownClaim(BoundTo("a"), Named("b"))), "M2 both of two")
}
