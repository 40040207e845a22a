package binding_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/pvbind/pvbind/binding/match"
	"github.com/pvbind/pvbind/binding/obj"
)

// find asks for a volume with the volumes in every rotation of their order and back to front, and
// requires the same answer each time.
func find(t *testing.T, request match.Request) match.Match {
	t.Helper()
	first, err := match.Find(request)
	require.NoError(t, err)
	for range request.Volumes {
		request.Volumes = append(slices.Clone(request.Volumes[1:]), request.Volumes[0])
		for range 2 {
			request.Volumes = slices.Clone(request.Volumes)
			slices.Reverse(request.Volumes)
			again, err := match.Find(request)
			require.NoError(t, err)
			require.Equal(t, first, again, "M14: the order of the volumes does not matter")
		}
	}
	return first
}

func nameOf(volume *corev1.PersistentVolume) string {
	if volume == nil {
		return ""
	}
	return volume.Name
}

func TestFindWhichOne(t *testing.T) {
	const rwo, rox, rwx = corev1.ReadWriteOnce, corev1.ReadOnlyMany, corev1.ReadWriteMany
	nodeA := onNode(match.Terms{}, nodeIn("a"))
	type volumes = []*corev1.PersistentVolume
	cases := []struct {
		rule    string
		claim   claimEdit
		volumes volumes
		terms   match.Terms
		want    string
	}{
		{rule: "M13 no volumes", want: ""},
		{rule: "M13 none fits", volumes: volumes{fitVolume("a", sized("1Gi"))}, want: ""},
		{rule: "M13 smallest capacity", want: "b",
			volumes: volumes{fitVolume("a", sized("30Gi")), fitVolume("b", sized("20Gi")), fitVolume("c", sized("5Gi"))}},
		{rule: "M13 fewest modes before capacity, without a node", want: "b",
			volumes: volumes{fitVolume("a", offering(rwo, rwx)), fitVolume("b", sized("30Gi"))}},
		{rule: "M13 a mode listed twice is one mode", want: "b",
			volumes: volumes{fitVolume("a", offering(rwo, rox)), fitVolume("b", offering(rwo, rwo, rwo), sized("30Gi"))}},
		{rule: "M13 capacity before fewest modes, with a node", terms: nodeA, want: "a",
			volumes: volumes{fitVolume("a", offering(rwo, rwx)), fitVolume("b", sized("30Gi"))}},
		{rule: "M13 fewest modes among equal capacities, with a node", terms: nodeA, want: "b",
			volumes: volumes{fitVolume("a", offering(rwo, rwx)), fitVolume("b"), fitVolume("c", offering(rwo, rox))}},
		{rule: "M13 name among equals", want: "a",
			volumes: volumes{fitVolume("c"), fitVolume("b"), fitVolume("a"), fitVolume("d")}},
		{rule: "M13 name among equals, with a node", terms: nodeA, want: "a",
			volumes: volumes{fitVolume("c"), fitVolume("b"), fitVolume("a"), fitVolume("d")}},
		{rule: "M13 equal capacities in different units", want: "a",
			volumes: volumes{fitVolume("b", sized("16Gi")), fitVolume("a", sized("16384Mi"))}},
		{rule: "M13 Reserved before free, whatever its size and modes", want: "c",
			volumes: volumes{fitVolume("a"), fitVolume("b"), fitVolume("c", reserved, sized("1Ti"), offering(rwo, rox, rwx))}},
		{rule: "M13 B5 Held before Reserved: the bind that was begun goes on", want: "c",
			volumes: volumes{fitVolume("a", reserved), fitVolume("b"), fitVolume("c", held, sized("1Ti"))}},
		{rule: "M13 least waste among Reserved", want: "b",
			volumes: volumes{fitVolume("a", reserved, sized("30Gi")), fitVolume("b", reserved, sized("20Gi"))}},
		{rule: "M12 class, selector and phase are the reserver's choice", claim: askingLabel("tier", "gold"), want: "a",
			volumes: volumes{fitVolume("a", reserved, ofClass("slow"), inPhase(corev1.VolumeReleased))}},
		{rule: "M12 delay is the reserver's choice", terms: waiting(), want: "b",
			volumes: volumes{fitVolume("a"), fitVolume("b", reserved)}},
		{rule: "M11 a delayed claim takes no free volume without a node", terms: waiting(), want: "",
			volumes: volumes{fitVolume("a")}},
		{rule: "M11 a delayed claim takes one on a node", terms: onNode(waiting(), nodeIn("a")), want: "a",
			volumes: volumes{fitVolume("a")}},
		{rule: "M2 L3 the Held volume is the claim's own", want: "a", terms: ownedBy(obj.ClaimKey("default", "logs")),
			volumes: volumes{fitVolume("a", held), fitVolume("b")}},
		{rule: "M9 a volume still Pending is as good as any", want: "a",
			volumes: volumes{fitVolume("a", inPhase(corev1.VolumePending)), fitVolume("b", sized("20Gi"))}},
		{rule: "M10 the volume of the node", terms: nodeA, want: "b",
			volumes: volumes{fitVolume("a", onlyIn("b")), fitVolume("b", onlyIn("a"), sized("20Gi"))}},
		{rule: "M3 X7 a malformed volume does not keep the claim from another", want: "b",
			volumes: volumes{fitVolume("a", sized("-1")), fitVolume("b"), fitVolume("c", offering("WriteNever"))}},
	}
	for _, c := range cases {
		t.Run(c.rule, func(t *testing.T) {
			claim := fitClaim()
			if c.claim != nil {
				c.claim(claim)
			}
			got := find(t, match.Request{Claim: claim, Volumes: c.volumes, Terms: c.terms})
			assert.Equal(t, c.want, nameOf(got.Volume))
			assert.Empty(t, got.Refused)
		})
	}
}

func TestFindRefusesWhatIsSetAsideButDoesNotFit(t *testing.T) {
	nodeA := onNode(match.Terms{}, nodeIn("a"))
	small := func(name string, link volumeEdit) *corev1.PersistentVolume {
		return fitVolume(name, link, sized("5Gi"))
	}
	type volumes = []*corev1.PersistentVolume
	cases := []struct {
		rule    string
		volumes volumes
		terms   match.Terms
		want    string
		refused map[string]string
	}{
		{rule: "M12 the search goes on among the others", want: "c",
			volumes: volumes{small("b", reserved), small("a", held), fitVolume("c")},
			refused: map[string]string{"a": "TooSmall: asks 10Gi, has 5Gi", "b": "TooSmall: asks 10Gi, has 5Gi"}},
		{rule: "M12 refused beside one that is chosen", want: "b",
			volumes: volumes{small("a", reserved), fitVolume("b", reserved)},
			refused: map[string]string{"a": "TooSmall: asks 10Gi, has 5Gi"}},
		{rule: "M12 one that wastes more than the chosen and does not fit is still listed", want: "a",
			volumes: volumes{fitVolume("a", reserved), fitVolume("b", reserved, sized("20Gi"), beingDeleted)},
			refused: map[string]string{"b": "Deleting: asks a volume that stays, has deletionTimestamp 2023-11-14T22:13:20Z"}},
		{rule: "M12 somebody else's reservation is not listed", want: "",
			volumes: volumes{fitVolume("a", refersTo("other", "data", ""))}},
		{rule: "M13 Reserved on another node: no free volume on this one", terms: nodeA, want: "",
			volumes: volumes{fitVolume("a"), fitVolume("b", reserved, onlyIn("b"))},
			refused: map[string]string{"b": "NodeAffinity: asks node node-a, has zone In [b]"}},
		{rule: "M13 Held on another node: no free volume on this one", terms: nodeA, want: "",
			volumes: volumes{fitVolume("a"), fitVolume("b", held, onlyIn("b"))},
			refused: map[string]string{"b": "NodeAffinity: asks node node-a, has zone In [b]"}},
		{rule: "M13 Reserved on another node and on this one", terms: nodeA, want: "c",
			volumes: volumes{fitVolume("a"), fitVolume("b", reserved, onlyIn("b")), fitVolume("c", reserved, onlyIn("a"))},
			refused: map[string]string{"b": "NodeAffinity: asks node node-a, has zone In [b]"}},
		{rule: "M13 Reserved on another node and too small: the search goes on", terms: nodeA, want: "a",
			volumes: volumes{fitVolume("a"), small("b", func(v *corev1.PersistentVolume) { reserved(v); onlyIn("b")(v) })},
			refused: map[string]string{"b": "TooSmall: asks 10Gi, has 5Gi; NodeAffinity: asks node node-a, has zone In [b]"}},
	}
	for _, c := range cases {
		t.Run(c.rule, func(t *testing.T) {
			got := find(t, match.Request{Claim: fitClaim(), Volumes: c.volumes, Terms: c.terms})
			assert.Equal(t, c.want, nameOf(got.Volume))
			assert.Len(t, got.Refused, len(c.refused))
			for _, refusal := range got.Refused {
				assert.Equal(t, c.refused[refusal.Volume.Name], refusal.Mismatches.String(), refusal.Volume.Name)
			}
			assert.True(t, slices.IsSortedFunc(got.Refused, func(a, b match.Refusal) int {
				return slices.Compare([]byte(a.Volume.Name), []byte(b.Volume.Name))
			}))
		})
	}
}
