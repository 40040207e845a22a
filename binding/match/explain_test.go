package match_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	. "github.com/pvbind/pvbind/binding/internal/testkit"
	"github.com/pvbind/pvbind/binding/match"
	"github.com/pvbind/pvbind/binding/obj"
	"github.com/pvbind/pvbind/phase"
)

func explain(t *testing.T, terms match.Terms, volumes ...*corev1.PersistentVolume) match.Report {
	t.Helper()
	report, err := match.Explain(match.Request{Claim: FitClaim(), Volumes: volumes, Terms: terms})
	require.NoError(t, err)
	return report
}

// several are n like volumes.
func several(n int, prefix string, edits ...VolumeEdit) []*corev1.PersistentVolume {
	var volumes []*corev1.PersistentVolume
	for i := range n {
		volumes = append(volumes, FitVolume(fmt.Sprintf("%s-%d", prefix, i), edits...))
	}
	return volumes
}

func concat(lists ...[]*corev1.PersistentVolume) []*corev1.PersistentVolume {
	var all []*corev1.PersistentVolume
	for _, list := range lists {
		all = append(all, list...)
	}
	return all
}

func TestExplainEveryVolume(t *testing.T) {
	report := explain(t, match.Terms{},
		FitVolume("pv-d"),
		FitVolume("pv-c", Sized("5Gi"), OfClass("slow")),
		FitVolume("pv-b", Sized("20Gi")),
		FitVolume("pv-a", RefersTo("default", "data", "uid-0")),
		FitVolume("pv-e", PreBound, Sized("1Gi")),
	)
	assert.Equal(t, obj.ClaimKey("default", "data"), report.Claim)
	assert.Equal(t, "pv-d", report.Chosen)
	require.Len(t, report.Verdicts, 5)
	type line struct {
		name       string
		link       phase.ClaimRefState
		mismatches string
		fits       bool
		chosen     bool
	}
	var lines []line
	for _, v := range report.Verdicts {
		lines = append(lines, line{v.Volume.Name, v.ClaimRef, v.Mismatches.String(), v.Fits(), v.Chosen})
	}
	assert.Equal(t, []line{
		{"pv-a", phase.ClaimRefStale, "BoundToAnotherClaim: requested an unclaimed volume, actual claimRef to pvc/default/data with uid uid-0, an earlier claim of that name", false, false},
		{"pv-b", phase.ClaimRefNone, "", true, false},
		{"pv-c", phase.ClaimRefNone, "TooSmall: requested 10Gi, actual 5Gi; StorageClass: requested fast, actual slow", false, false},
		{"pv-d", phase.ClaimRefNone, "", true, true},
		{"pv-e", phase.ClaimRefPreBound, "TooSmall: requested 10Gi, actual 1Gi", false, false},
	}, lines, "E1, in name order")
}

func TestExplainInOneLine(t *testing.T) {
	nodeA := OnNode(match.Terms{}, NodeIn("a"))
	other := RefersTo("other", "x", "uid-9")
	cases := []struct {
		rule    string
		terms   match.Terms
		volumes []*corev1.PersistentVolume
		want    string
	}{
		{rule: "E2 no volumes", want: "0/0 volumes fit: there are none"},
		{rule: "E2 counts by number, then M order, and the nearest miss",
			volumes: concat(several(7, "slow", OfClass("slow")), several(2, "bound", other), several(2, "going", BeingDeleted),
				several(2, "small", Sized("3Gi")), several(1, "bigger", Sized("5Gi"))),
			want: "0/14 volumes fit: 7 StorageClass, 3 TooSmall (largest 5Gi), 2 Deleting, 2 BoundToAnotherClaim; " +
				"slow-0 would fit but for its class: \"slow\", the claim requests \"fast\""},
		{rule: "E2 of too small ones the largest is nearest, then the first by name",
			volumes: concat(several(2, "b", Sized("5Gi")), several(2, "a", Sized("3Gi"))),
			want:    "0/4 volumes fit: 4 TooSmall (largest 5Gi); b-0 would fit but for its size: 5Gi, the claim requests 10Gi"},
		{rule: "E2 of others the smallest is nearest, then the first by name",
			volumes: concat(several(2, "b", OfClass("slow")), several(1, "a", OfClass("slow"), Sized("11Gi"))),
			want:    "0/3 volumes fit: 3 StorageClass; b-0 would fit but for its class: \"slow\", the claim requests \"fast\""},
		{rule: "E2 what is claimed by others or goes is no near miss",
			volumes: concat(several(1, "bound", other), several(2, "going", BeingDeleted)),
			want:    "0/3 volumes fit: 2 Deleting, 1 BoundToAnotherClaim"},
		{rule: "E2 M2 what belongs to another claim is no near miss", terms: OwnedBy(obj.ClaimKey("other", "x")),
			volumes: several(1, "a"), want: "0/1 volumes fit: 1 BoundToAnotherClaim"},
		{rule: "E2 L4 a volume of an earlier claim of that name is",
			volumes: concat(several(1, "a", other), several(1, "b", RefersTo("default", "data", "uid-0"))),
			want:    "0/2 volumes fit: 2 BoundToAnotherClaim; b-0 would fit but for its owner: claimRef to pvc/default/data with uid uid-0, an earlier claim of that name, the claim requests an unclaimed volume"},
		{rule: "E2 M12 not one that is pre-bound and goes",
			volumes: several(1, "mine", PreBound, BeingDeleted),
			want:    "0/1 volumes fit: 1 Deleting"},
		{rule: "E2 each volume once, under its first reason",
			volumes: several(2, "pv", Sized("5Gi"), OfClass("slow")),
			want: "0/2 volumes fit: 2 TooSmall (largest 5Gi); " +
				"pv-0 would fit but for its size: 5Gi, the claim requests 10Gi; its class: \"slow\", the claim requests \"fast\""},
		{rule: "E2 largest only of those that are counted as too small",
			volumes: concat(several(1, "small", Sized("1Gi")), several(1, "bound", other, Sized("9Gi"))),
			want:    "0/2 volumes fit: 1 BoundToAnotherClaim, 1 TooSmall (largest 1Gi); small-0 would fit but for its size: 1Gi, the claim requests 10Gi"},
		{rule: "E2 the nearest miss can be mended, if any can",
			volumes: concat(several(1, "a", other), several(1, "b", OfClass("slow"), Sized("5Gi"))),
			want: "0/2 volumes fit: 1 BoundToAnotherClaim, 1 TooSmall (largest 5Gi); " +
				"b-0 would fit but for its size: 5Gi, the claim requests 10Gi; its class: \"slow\", the claim requests \"fast\""},
		{rule: "E2 the nearest miss has the fewest reasons",
			volumes: concat(several(1, "a", OfClass("slow"), Sized("5Gi")), several(1, "b", OfClass("slow"))),
			want:    "0/2 volumes fit: 1 TooSmall (largest 5Gi), 1 StorageClass; b-0 would fit but for its class: \"slow\", the claim requests \"fast\""},
		{rule: "E2 the nearest miss where nothing can be mended",
			volumes: concat(several(2, "b", InPhase(corev1.VolumeReleased)), several(1, "a", InPhase(corev1.VolumeReleased), BeingDeleted)),
			want:    "0/3 volumes fit: 2 NotAvailable, 1 Deleting; b-0 would fit but for its state: phase Released, the claim requests phase Available"},
		{rule: "E2 M9 a phase is not mended by hand",
			volumes: concat(several(1, "a", InPhase(corev1.VolumeReleased)), several(1, "b", OfClass("slow"), Sized("5Gi"))),
			want: "0/2 volumes fit: 1 TooSmall (largest 5Gi), 1 NotAvailable; " +
				"b-0 would fit but for its size: 5Gi, the claim requests 10Gi; its class: \"slow\", the claim requests \"fast\""},
		{rule: "E2 M11 a wait for a pod is not mended by hand", terms: Waiting(),
			volumes: concat(several(1, "a"), several(1, "b", PreBound, Offering(), Sized("5Gi"))),
			want: "0/2 volumes fit: 1 TooSmall (largest 5Gi), 1 WaitForFirstConsumer; " +
				"b-0 would fit but for its size: 5Gi, the claim requests 10Gi; its access modes: none, the claim requests RWO"},
		{rule: "E2 malformed volumes are named", volumes: several(1, "odd", Sized("-1Gi")),
			want: "0/1 volumes fit: 1 Malformed; odd-0 would fit but for its malformed spec: -1Gi, the claim requests a storage capacity"},
		{rule: "M11 E2 all wait for a node", terms: Waiting(), volumes: several(2, "pv"),
			want: "0/2 volumes fit: 2 WaitForFirstConsumer; pv-0 would fit but for the wait for its first consumer: no node yet, the claim requests a node first, as class fast is WaitForFirstConsumer"},
		{rule: "E2 M14 one fits", volumes: several(1, "pv"), want: "1/1 volumes fit: pv-0 chosen"},
		{rule: "E2 M14 some fit", volumes: concat(several(3, "pv"), several(2, "slow", OfClass("slow")), several(1, "bound", other)),
			want: "3/6 volumes fit: pv-0 chosen; 2 StorageClass, 1 BoundToAnotherClaim"},
		{rule: "M13 E2 pre-bound on another node", terms: nodeA,
			volumes: concat(several(2, "pv"), several(1, "mine", PreBound, OnlyIn("b"))),
			want: "2/3 volumes fit: none chosen; 1 NodeAffinity; " +
				"mine-0 is pre-bound to the claim, and would fit but for its node affinity: zone In [b], the claim requests node node-a"},
		{rule: "M13 E2 the first by name of those pre-bound on another node", terms: nodeA,
			volumes: concat(several(1, "b", PreBound, OnlyIn("b")), several(1, "a", PreBound, OnlyIn("c")), several(1, "c", PreBound, OnlyIn("d"))),
			want: "0/3 volumes fit: 3 NodeAffinity; " +
				"a-0 is pre-bound to the claim, and would fit but for its node affinity: zone In [c], the claim requests node node-a"},
	}
	for _, c := range cases {
		t.Run(c.rule, func(t *testing.T) {
			assert.Equal(t, c.want, explain(t, c.terms, c.volumes...).String())
		})
	}
}

func TestExplainIsBounded(t *testing.T) {
	long := strings.Repeat("n", 253)
	allReasons := []VolumeEdit{RefersTo("default", "data", types.UID(long)), Sized("5Gi"), Offering("Mode\n" + corev1.PersistentVolumeAccessMode(long)),
		OfClass(long), Labelled(long, long), func(v *corev1.PersistentVolume) {
			v.Spec.VolumeAttributesClassName = &long
			v.Spec.VolumeMode = new(corev1.PersistentVolumeMode(long))
		}}
	report := explain(t, OnNode(match.Terms{}, NodeIn("a")), FitVolume(long, allReasons...))
	line := report.String()
	assert.LessOrEqual(t, len(line), 512)
	assert.NotContains(t, line, "\n")
	assert.True(t, strings.HasPrefix(line, "0/1 volumes fit: 1 BoundToAnotherClaim; nnn"), line)

	line = explain(t, match.Terms{}, FitVolume(long)).String()
	assert.LessOrEqual(t, len(line), 100)
	assert.True(t, strings.HasSuffix(line, "n… chosen"), line)
}

// Ten volumes, each with a first reason of its own.
func TestExplainKeepsAllCounts(t *testing.T) {
	volumes := concat(
		several(1, "a", BeingDeleted), several(1, "b", RefersTo("other", "x", "")), several(1, "c", Sized("-1")),
		several(1, "d", Sized("1Gi")), several(1, "e", Offering()), several(1, "g", OfClass("slow")),
		several(1, "j", InPhase(corev1.VolumeFailed)), several(1, "k", OnlyIn("b")),
		several(1, "f", func(v *corev1.PersistentVolume) { v.Spec.VolumeMode = new(corev1.PersistentVolumeBlock) }),
		several(1, "h", func(v *corev1.PersistentVolume) { v.Spec.VolumeAttributesClassName = new("iops") }),
	)
	line := explain(t, OnNode(Waiting(), NodeIn("a")), volumes...).String()
	assert.Contains(t, line, "0/10 volumes fit: 1 Deleting, 1 BoundToAnotherClaim, 1 Malformed, 1 TooSmall (largest 1Gi), "+
		"1 AccessModes, 1 VolumeMode, 1 StorageClass, 1 AttributesClass, 1 NotAvailable, 1 NodeAffinity; c-0 would fit but for ")
}
