package match_test

import (
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/pvbind/pvbind/binding/index"
	. "github.com/pvbind/pvbind/binding/internal/testkit"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/pvbind/pvbind/binding/match"
	"github.com/pvbind/pvbind/binding/obj"
)

// find calls Find with the volumes in every rotation of their order and back to front, and
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

func TestFindWhichOne(t *testing.T) {
	const rwo, rox, rwx = corev1.ReadWriteOnce, corev1.ReadOnlyMany, corev1.ReadWriteMany
	nodeA := OnNode(match.Terms{}, NodeIn("a"))
	type volumes = []*corev1.PersistentVolume
	cases := []struct {
		rule    string
		claim   ClaimEdit
		volumes volumes
		terms   match.Terms
		want    string
	}{
		{rule: "M13 no volumes", want: ""},
		{rule: "M13 none fits", volumes: volumes{FitVolume("a", Sized("1Gi"))}, want: ""},
		{rule: "M13 smallest capacity", want: "b",
			volumes: volumes{FitVolume("a", Sized("30Gi")), FitVolume("b", Sized("20Gi")), FitVolume("c", Sized("5Gi"))}},
		{rule: "M13 fewest modes before capacity, without a node", want: "b",
			volumes: volumes{FitVolume("a", Offering(rwo, rwx)), FitVolume("b", Sized("30Gi"))}},
		{rule: "M13 a mode listed twice is one mode", want: "b",
			volumes: volumes{FitVolume("a", Offering(rwo, rox)), FitVolume("b", Offering(rwo, rwo, rwo), Sized("30Gi"))}},
		{rule: "M13 capacity before fewest modes, with a node", terms: nodeA, want: "a",
			volumes: volumes{FitVolume("a", Offering(rwo, rwx)), FitVolume("b", Sized("30Gi"))}},
		{rule: "M13 fewest modes among equal capacities, with a node", terms: nodeA, want: "b",
			volumes: volumes{FitVolume("a", Offering(rwo, rwx)), FitVolume("b"), FitVolume("c", Offering(rwo, rox))}},
		{rule: "M13 name among equals", want: "a",
			volumes: volumes{FitVolume("c"), FitVolume("b"), FitVolume("a"), FitVolume("d")}},
		{rule: "M13 name among equals, with a node", terms: nodeA, want: "a",
			volumes: volumes{FitVolume("c"), FitVolume("b"), FitVolume("a"), FitVolume("d")}},
		{rule: "M13 equal capacities in different units", want: "a",
			volumes: volumes{FitVolume("b", Sized("16Gi")), FitVolume("a", Sized("16384Mi"))}},
		{rule: "M13 pre-bound before unclaimed, whatever its size and modes", want: "c",
			volumes: volumes{FitVolume("a"), FitVolume("b"), FitVolume("c", PreBound, Sized("1Ti"), Offering(rwo, rox, rwx))}},
		{rule: "M13 B5 bound before pre-bound: the bind that was begun goes on", want: "c",
			volumes: volumes{FitVolume("a", PreBound), FitVolume("b"), FitVolume("c", BoundToClaim, Sized("1Ti"))}},
		{rule: "M13 least waste among pre-bound ones", want: "b",
			volumes: volumes{FitVolume("a", PreBound, Sized("30Gi")), FitVolume("b", PreBound, Sized("20Gi"))}},
		{rule: "M12 class, selector and phase are the reserver's choice", claim: RequestingLabel("tier", "gold"), want: "a",
			volumes: volumes{FitVolume("a", PreBound, OfClass("slow"), InPhase(corev1.VolumeReleased))}},
		{rule: "M12 a pre-bound volume does not wait", terms: Waiting(), want: "b",
			volumes: volumes{FitVolume("a"), FitVolume("b", PreBound)}},
		{rule: "M11 a claim of a WaitForFirstConsumer class takes no free volume without a node", terms: Waiting(), want: "",
			volumes: volumes{FitVolume("a")}},
		{rule: "M11 and takes one on a node", terms: OnNode(Waiting(), NodeIn("a")), want: "a",
			volumes: volumes{FitVolume("a")}},
		{rule: "M2 L3 the bound volume is the claim's own", want: "a", terms: OwnedBy(obj.ClaimKey("default", "logs")),
			volumes: volumes{FitVolume("a", BoundToClaim), FitVolume("b")}},
		{rule: "M9 a volume still Pending is as good as any", want: "a",
			volumes: volumes{FitVolume("a", InPhase(corev1.VolumePending)), FitVolume("b", Sized("20Gi"))}},
		{rule: "M10 the volume of the node", terms: nodeA, want: "b",
			volumes: volumes{FitVolume("a", OnlyIn("b")), FitVolume("b", OnlyIn("a"), Sized("20Gi"))}},
		{rule: "M3 X7 a malformed volume does not keep the claim from another", want: "b",
			volumes: volumes{FitVolume("a", Sized("-1")), FitVolume("b"), FitVolume("c", Offering("WriteNever"))}},
	}
	for _, c := range cases {
		t.Run(c.rule, func(t *testing.T) {
			claim := FitClaim()
			if c.claim != nil {
				c.claim(claim)
			}
			got := find(t, match.Request{Claim: claim, Volumes: c.volumes, Terms: c.terms})
			assert.Equal(t, c.want, NameOf(got.Volume))
			assert.Empty(t, got.Rejected)
		})
	}
}

func TestFindRefusesWhatIsSetAsideButDoesNotFit(t *testing.T) {
	nodeA := OnNode(match.Terms{}, NodeIn("a"))
	small := func(name string, link VolumeEdit) *corev1.PersistentVolume {
		return FitVolume(name, link, Sized("5Gi"))
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
			volumes: volumes{small("b", PreBound), small("a", BoundToClaim), FitVolume("c")},
			refused: map[string]string{"a": "TooSmall: requested 10Gi, actual 5Gi", "b": "TooSmall: requested 10Gi, actual 5Gi"}},
		{rule: "M12 refused beside one that is chosen", want: "b",
			volumes: volumes{small("a", PreBound), FitVolume("b", PreBound)},
			refused: map[string]string{"a": "TooSmall: requested 10Gi, actual 5Gi"}},
		{rule: "M12 one that wastes more than the chosen and does not fit is still listed", want: "a",
			volumes: volumes{FitVolume("a", PreBound), FitVolume("b", PreBound, Sized("20Gi"), BeingDeleted)},
			refused: map[string]string{"b": "Deleting: requested a volume that stays, actual deletionTimestamp 2023-11-14T22:13:20Z"}},
		{rule: "M12 somebody else's reservation is not listed", want: "",
			volumes: volumes{FitVolume("a", RefersTo("other", "data", ""))}},
		{rule: "M13 pre-bound on another node: no free volume on this one", terms: nodeA, want: "",
			volumes: volumes{FitVolume("a"), FitVolume("b", PreBound, OnlyIn("b"))},
			refused: map[string]string{"b": "NodeAffinity: requested node node-a, actual zone In [b]"}},
		{rule: "M13 bound on another node: no free volume on this one", terms: nodeA, want: "",
			volumes: volumes{FitVolume("a"), FitVolume("b", BoundToClaim, OnlyIn("b"))},
			refused: map[string]string{"b": "NodeAffinity: requested node node-a, actual zone In [b]"}},
		{rule: "M13 pre-bound on another node and on this one", terms: nodeA, want: "c",
			volumes: volumes{FitVolume("a"), FitVolume("b", PreBound, OnlyIn("b")), FitVolume("c", PreBound, OnlyIn("a"))},
			refused: map[string]string{"b": "NodeAffinity: requested node node-a, actual zone In [b]"}},
		{rule: "M13 pre-bound on another node and too small: the search goes on", terms: nodeA, want: "a",
			volumes: volumes{FitVolume("a"), small("b", func(v *corev1.PersistentVolume) { PreBound(v); OnlyIn("b")(v) })},
			refused: map[string]string{"b": "TooSmall: requested 10Gi, actual 5Gi; NodeAffinity: requested node node-a, actual zone In [b]"}},
	}
	for _, c := range cases {
		t.Run(c.rule, func(t *testing.T) {
			got := find(t, match.Request{Claim: FitClaim(), Volumes: c.volumes, Terms: c.terms})
			assert.Equal(t, c.want, NameOf(got.Volume))
			assert.Len(t, got.Rejected, len(c.refused))
			for _, refusal := range got.Rejected {
				assert.Equal(t, c.refused[refusal.Volume.Name], refusal.Mismatches.String(), refusal.Volume.Name)
			}
			assert.True(t, slices.IsSortedFunc(got.Rejected, func(a, b match.Verdict) int {
				return slices.Compare([]byte(a.Volume.Name), []byte(b.Volume.Name))
			}))
		})
	}
}

// FuzzFind holds Find to upstream's answer, to that of an Index and to Explain (M13, M14, E3), Explain to reasons that
// are complete (E1), and all to leaving their input alone (X6).
func FuzzFind(f *testing.F) {
	AddSeeds(f, 400)
	f.Fuzz(func(t *testing.T, bytes []byte) {
		w := NewWorld(NewChoices(bytes))
		request := w.Request()
		claim, volumes := request.Claim.DeepCopy(), CopiesOf(request.Volumes)

		found, err := match.Find(request)
		require.NoError(t, err)
		agree(t, request, map[string]int{}, "this world")

		var index index.Index
		index.Load(request.Volumes...)
		for _, volume := range request.Volumes {
			for _, owner := range request.Owners(volume.Name) {
				index.SetClaim(Owning(owner, volume.Name))
			}
		}
		indexed, err := index.Find(request.Claim, match.Terms{Node: request.Node, Class: request.Class})
		require.NoError(t, err)
		assert.Equal(t, NameOf(found.Volume), NameOf(indexed.Volume), "M14")

		report, err := match.Explain(request)
		require.NoError(t, err)
		assert.Equal(t, NameOf(found.Volume), report.Chosen, "M14, E3")
		for _, verdict := range report.Verdicts {
			assert.Equal(t, verdict.Chosen, verdict.Volume == found.Volume, "M14, E3")
			assert.False(t, verdict.Chosen && !verdict.Fits(), "E3")
		}
		summary, err := index.Summary(request.Claim, match.Terms{Node: request.Node, Class: request.Class})
		require.NoError(t, err)
		assert.Equal(t, report.Summary(), summary, "E2, M14")
		requireReasonsComplete(t, w, request, map[match.Reason]int{})
		assert.True(t, equality.Semantic.DeepEqual(claim, request.Claim), "X6")
		assert.True(t, equality.Semantic.DeepEqual(volumes, request.Volumes), "X6")
	})
}
