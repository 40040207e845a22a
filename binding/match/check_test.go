package match_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	. "github.com/pvbind/pvbind/binding/internal/testkit"
	"github.com/pvbind/pvbind/binding/match"
	"github.com/pvbind/pvbind/binding/obj"
	"github.com/pvbind/pvbind/phase"
	"github.com/pvbind/pvbind/storageclass"
)

func mismatch(reason match.Reason, requested, actual string) match.Mismatch {
	return match.Mismatch{Reason: reason, Requested: requested, Actual: actual}
}

type checkCase struct {
	rule   string
	claim  ClaimEdit
	volume VolumeEdit
	terms  match.Terms
	want   match.Mismatches // nil: it fits
}

func one(reason match.Reason, requested, actual string) match.Mismatches {
	return match.Mismatches{mismatch(reason, requested, actual)}
}

func runChecks(t *testing.T, cases []checkCase) {
	t.Helper()
	for _, c := range cases {
		t.Run(c.rule, func(t *testing.T) {
			claim, volume := FitClaim(), FitVolume("pv-a")
			if c.claim != nil {
				c.claim(claim)
			}
			if c.volume != nil {
				c.volume(volume)
			}
			claimBefore, volumeBefore := claim.DeepCopy(), volume.DeepCopy()
			got, err := match.Check(claim, volume, c.terms)
			require.NoError(t, err)
			assert.Equal(t, c.want, got)
			assert.Equal(t, claimBefore, claim, "X6")
			assert.Equal(t, volumeBefore, volume, "X6")
		})
	}
}

func TestCheckWhetherTheVolumeCanBeHad(t *testing.T) {
	released := InPhase(corev1.VolumeReleased)
	runChecks(t, []checkCase{
		{rule: "M1 a volume that stays fits"},
		{rule: "M1 a volume being deleted", volume: BeingDeleted,
			want: one(match.Deleting, "a volume that stays", "deletionTimestamp 2023-11-14T22:13:20Z")},
		{rule: "M2 L4 claimRef to an earlier claim of the name", volume: RefersTo("default", "data", "uid-0"),
			want: one(match.BoundToAnotherClaim, "an unclaimed volume",
				"claimRef to pvc/default/data with uid uid-0, an earlier claim of that name")},
		{rule: "M2 L5 claimRef to another claim", volume: RefersTo("other", "data", "uid-1"),
			want: one(match.BoundToAnotherClaim, "an unclaimed volume", "claimRef to pvc/other/data")},
		{rule: "M2 L5 reserved for another claim", volume: RefersTo("default", "logs", ""),
			want: one(match.BoundToAnotherClaim, "an unclaimed volume", "claimRef to pvc/default/logs")},
		{rule: "M2 unclaimed, but another claim names it", terms: OwnedBy(obj.ClaimKey("default", "logs")),
			want: one(match.BoundToAnotherClaim, "an unclaimed volume", "the owner pvc/default/logs")},
		{rule: "M2 unclaimed, and this claim names it", terms: OwnedBy(obj.ClaimKey("default", "data"))},
		{rule: "M2 unclaimed, and nobody names it", terms: OwnedBy()},
		{rule: "M2 unclaimed, and this claim and another are bound to it", terms: OwnedBy(obj.ClaimKey("default", "data"), obj.ClaimKey("default", "logs")),
			want: one(match.BoundToAnotherClaim, "an unclaimed volume", "the owners pvc/default/data, pvc/default/logs")},
		{rule: "M2 the owner of a pre-bound volume does not matter", volume: PreBound,
			terms: OwnedBy(obj.ClaimKey("default", "logs"))},
		{rule: "M9 phase empty", volume: InPhase("")},
		{rule: "M9 phase Pending", volume: InPhase(corev1.VolumePending)},
		{rule: "M9 phase Released", volume: released, want: one(match.NotAvailable, "phase Available", "phase Released")},
		{rule: "M9 phase Failed", volume: InPhase(corev1.VolumeFailed),
			want: one(match.NotAvailable, "phase Available", "phase Failed")},
		{rule: "M9 phase Bound", volume: InPhase(corev1.VolumeBound),
			want: one(match.NotAvailable, "phase Available", "phase Bound")},
		{rule: "M9 R8 it is announced that its storage is destroyed", volume: VolumeNote(phase.AnnouncementAnnotation, "{}"),
			want: one(match.NotAvailable, "phase Available and storage that stays", "phase Available and annotation pvbind.github.io/reclaiming (see the volume's events)")},
		{rule: "M9 M12 R8 the same of one that is pre-bound to the claim", volume: func(v *corev1.PersistentVolume) {
			PreBound(v)
			VolumeNote(phase.AnnouncementAnnotation, "{}")(v)
		}},
		{rule: "M11 WaitForFirstConsumer, no node", terms: Waiting(),
			want: one(match.WaitForFirstConsumer, "a node first, as class fast is WaitForFirstConsumer", "no node yet")},
		{rule: "M11 S4 WaitForFirstConsumer, a node chosen", terms: Waiting(), claim: ClaimNote(storageclass.SelectedNodeAnnotation, "node-a"),
			want: one(match.WaitForFirstConsumer, "a volume provisioned for node node-a (selected-node)", "an existing volume")},
		{rule: "M11 WaitForFirstConsumer, node given", terms: OnNode(Waiting(), NodeIn("a"))},
		{rule: "M11 immediate class", terms: match.Terms{Class: ClassWith(new(storagev1.VolumeBindingImmediate))}},
		{rule: "M11 WaitForFirstConsumer, claimed volume: only an unclaimed one can wait", terms: Waiting(),
			volume: RefersTo("other", "data", "uid-1"),
			want:   one(match.BoundToAnotherClaim, "an unclaimed volume", "claimRef to pvc/other/data")},
	})
}

func TestCheckSizeAndModes(t *testing.T) {
	block, filesystem := corev1.PersistentVolumeBlock, corev1.PersistentVolumeFilesystem
	noRequest := func(c *corev1.PersistentVolumeClaim) { c.Spec.Resources.Requests = nil }
	noCapacity := func(v *corev1.PersistentVolume) { v.Spec.Capacity = nil }
	claimMode := func(m *corev1.PersistentVolumeMode) ClaimEdit {
		return func(c *corev1.PersistentVolumeClaim) { c.Spec.VolumeMode = m }
	}
	volumeMode := func(m *corev1.PersistentVolumeMode) VolumeEdit {
		return func(v *corev1.PersistentVolume) { v.Spec.VolumeMode = m }
	}
	runChecks(t, []checkCase{
		{rule: "M3 larger", volume: Sized("11Gi")},
		{rule: "M3 smaller", volume: Sized("5Gi"), want: one(match.TooSmall, "10Gi", "5Gi")},
		{rule: "M3 smaller by less than a byte", claim: Requesting("1"), volume: Sized("999m"), want: one(match.TooSmall, "1", "999m")},
		{rule: "M3 the same in another unit", claim: Requesting("1000Mi"), volume: Sized("1048576000")},
		{rule: "M3 no request is 0", claim: noRequest, volume: Sized("1")},
		{rule: "M3 no request, capacity 0", claim: noRequest, volume: Sized("0")},
		{rule: "M3 X7 no storage capacity", volume: noCapacity, want: one(match.Malformed, "a storage capacity", "none")},
		{rule: "M3 X7 no storage capacity, no request", claim: noRequest, volume: noCapacity,
			want: one(match.Malformed, "a storage capacity", "none")},
		{rule: "M3 X7 negative capacity", volume: Sized("-5Gi"), want: one(match.Malformed, "a storage capacity", "-5Gi")},
		{rule: "M4 a mode more", volume: Offering(corev1.ReadWriteMany, corev1.ReadWriteOnce)},
		{rule: "M4 a mode missing, without a node", volume: Offering(corev1.ReadOnlyMany, corev1.ReadWriteMany),
			want: one(match.AccessModes, "RWO", "ROX,RWX")},
		{rule: "M4 a mode missing, with a node", volume: Offering(), terms: OnNode(match.Terms{}, NodeIn("a")),
			want: one(match.AccessModes, "RWO", "none")},
		{rule: "M4 no mode requested", claim: RequestingModes(), volume: Offering()},
		{rule: "M4 one of two modes missing", claim: RequestingModes(corev1.ReadWriteOnce, corev1.ReadWriteOncePod),
			want: one(match.AccessModes, "RWO,RWOP", "RWO")},
		{rule: "M4 X7 unknown mode of the volume", volume: Offering(corev1.ReadWriteOnce, "WriteNever"),
			want: one(match.Malformed, "known access modes", `unknown access mode "WriteNever"`)},
		{rule: "M4 X7 unknown mode in place of the one requested", volume: Offering("WriteNever", corev1.ReadOnlyMany),
			want: match.Mismatches{
				mismatch(match.Malformed, "known access modes", `unknown access mode "WriteNever"`),
				mismatch(match.AccessModes, "RWO", "WriteNever,ReadOnlyMany"),
			}},
		{rule: "M5 nil is Filesystem on the claim", volume: volumeMode(&filesystem)},
		{rule: "M5 nil is Filesystem on the volume", claim: claimMode(&filesystem)},
		{rule: "M5 Block and Block", claim: claimMode(&block), volume: volumeMode(&block)},
		{rule: "M5 Block requested", claim: claimMode(&block), want: one(match.VolumeMode, "Block", "Filesystem")},
		{rule: "M5 Block offered", volume: volumeMode(&block), want: one(match.VolumeMode, "Filesystem", "Block")},
	})
}

func TestCheckClassesAndLabels(t *testing.T) {
	noClass := func(c *corev1.PersistentVolumeClaim) { c.Spec.StorageClassName = nil }
	emptyClass := func(c *corev1.PersistentVolumeClaim) { c.Spec.StorageClassName = new("") }
	betaClaim := func(c *corev1.PersistentVolumeClaim) {
		c.Annotations = map[string]string{corev1.BetaStorageClassAnnotation: "gold"}
	}
	betaVolume := func(v *corev1.PersistentVolume) {
		v.Annotations = map[string]string{corev1.BetaStorageClassAnnotation: "gold"}
	}
	claimAttributes := func(name string) ClaimEdit {
		return func(c *corev1.PersistentVolumeClaim) { c.Spec.VolumeAttributesClassName = &name }
	}
	volumeAttributes := func(name string) VolumeEdit {
		return func(v *corev1.PersistentVolume) { v.Spec.VolumeAttributesClassName = &name }
	}
	emptySelector := func(c *corev1.PersistentVolumeClaim) { c.Spec.Selector = &metav1.LabelSelector{} }
	runChecks(t, []checkCase{
		{rule: "M6 another class", volume: OfClass("slow"), want: one(match.StorageClass, "fast", "slow")},
		{rule: "M6 a volume without a class", volume: OfClass(""), want: one(match.StorageClass, "fast", "none")},
		{rule: "M6 nil and empty are both no class", claim: noClass, volume: OfClass("")},
		{rule: "M6 empty is no class", claim: emptyClass, volume: OfClass("")},
		{rule: "M6 no class requested", claim: noClass, want: one(match.StorageClass, "none", "fast")},
		{rule: "M6 annotation wins over the field of the claim", claim: betaClaim, volume: OfClass("gold")},
		{rule: "M6 annotation wins over the field of the volume", volume: betaVolume, want: one(match.StorageClass, "fast", "gold")},
		{rule: "M6 annotations on both", claim: betaClaim, volume: betaVolume},
		{rule: "M7 nil and empty are equal on the claim", claim: claimAttributes("")},
		{rule: "M7 nil and empty are equal on the volume", volume: volumeAttributes("")},
		{rule: "M7 the same", claim: claimAttributes("iops"), volume: volumeAttributes("iops")},
		{rule: "M7 requested", claim: claimAttributes("iops"), want: one(match.AttributesClass, "iops", "none")},
		{rule: "M7 offered", volume: volumeAttributes("iops"), want: one(match.AttributesClass, "none", "iops")},
		{rule: "M8 an empty selector selects everything", claim: emptySelector},
		{rule: "M8 labels match", claim: RequestingLabel("tier", "gold"), volume: Labelled("tier", "gold")},
		{rule: "M8 another label", claim: RequestingLabel("tier", "gold"), volume: Labelled("tier", "tin"),
			want: one(match.Selector, "tier=gold", "tier=tin")},
		{rule: "M8 no labels", claim: RequestingLabel("tier", "gold"), want: one(match.Selector, "tier=gold", "none")},
	})
}

func TestCheckNodeAffinity(t *testing.T) {
	onA := OnNode(match.Terms{}, NodeIn("a"))
	malformed := Term(Require1("zone", "Near", "a"))
	byField := corev1.NodeSelectorTerm{MatchFields: []corev1.NodeSelectorRequirement{
		Require1("metadata.name", corev1.NodeSelectorOpIn, "another")}}
	runChecks(t, []checkCase{
		{rule: "M10 no affinity", terms: onA},
		{rule: "M10 affinity without a requirement", terms: onA,
			volume: func(v *corev1.PersistentVolume) { v.Spec.NodeAffinity = &corev1.VolumeNodeAffinity{} }},
		{rule: "M10 no node", volume: OnlyIn("b")},
		{rule: "M10 the node's zone", terms: onA, volume: OnlyIn("a")},
		{rule: "M10 another zone", terms: onA, volume: OnlyIn("b"), want: one(match.NodeAffinity, "node node-a", "zone In [b]")},
		{rule: "M10 a label that the node lacks", terms: onA, volume: Affine(Term(Require1("rack", corev1.NodeSelectorOpIn, "a"))),
			want: one(match.NodeAffinity, "node node-a", "rack In [a]")},
		{rule: "M10 one of two terms", terms: onA, volume: Affine(
			Term(Require1("zone", corev1.NodeSelectorOpIn, "b")), Term(Require1("zone", corev1.NodeSelectorOpExists)))},
		{rule: "M10 neither of two terms", terms: onA, volume: Affine(
			Term(Require1("zone", corev1.NodeSelectorOpNotIn, "a")), Term(Require1("rack", corev1.NodeSelectorOpExists))),
			want: one(match.NodeAffinity, "node node-a", "zone NotIn [a] or rack Exists")},
		{rule: "M10 both requirements of a term", terms: onA, volume: Affine(
			Term(Require1("zone", corev1.NodeSelectorOpExists), Require1("zone", corev1.NodeSelectorOpIn, "b"))),
			want: one(match.NodeAffinity, "node node-a", "zone Exists and zone In [b]")},
		{rule: "M10 no terms accept nothing", terms: onA, volume: Affine(),
			want: one(match.NodeAffinity, "node node-a", "none")},
		{rule: "M10 an empty term accepts nothing", terms: onA, volume: Affine(Term()),
			want: one(match.NodeAffinity, "node node-a", "none")},
		{rule: "M10 a malformed term beside a good one", terms: onA,
			volume: Affine(malformed, Term(Require1("zone", corev1.NodeSelectorOpIn, "a")))},
		{rule: "M10 fields are not looked at, as upstream", terms: onA, volume: Affine(byField)},
	})
}

func TestCheckSaysThatANodeAffinityIsMalformed(t *testing.T) {
	for name, bad := range map[string]corev1.NodeSelectorRequirement{
		"operator": Require1("zone", "Near", "a"),
		"key":      Require1("no such key!", corev1.NodeSelectorOpExists),
		"values":   Require1("zone", corev1.NodeSelectorOpIn, "a", "not a label value!"),
		"number":   Require1("zone", corev1.NodeSelectorOpGt, "many"),
	} {
		t.Run("M10 X7 "+name, func(t *testing.T) {
			got, err := match.Check(FitClaim(), FitVolume("pv-a", Affine(Term(bad))), OnNode(match.Terms{}, NodeIn("a")))
			require.NoError(t, err)
			require.Equal(t, []match.Reason{match.NodeAffinity}, reasons(got))
			assert.Contains(t, got[0].Actual, "malformed: nodeSelectorTerms[0].matchExpressions[0]")
		})
	}
}

// A volume that is bound or pre-bound to the claim need not match class, selector, phase and binding mode, but all else.
func TestCheckOfAPreBoundVolume(t *testing.T) {
	everything := func(v *corev1.PersistentVolume) {
		BeingDeleted(v)
		Sized("5Gi")(v)
		Offering(corev1.ReadOnlyMany)(v)
		OfClass("slow")(v)
		InPhase(corev1.VolumeReleased)(v)
		OnlyIn("b")(v)
		v.Spec.VolumeMode = new(corev1.PersistentVolumeBlock)
		v.Spec.VolumeAttributesClassName = new("iops")
	}
	excused := func(v *corev1.PersistentVolume) {
		OfClass("slow")(v)
		InPhase(corev1.VolumeReleased)(v)
	}
	claim := FitClaim(RequestingLabel("tier", "gold"))
	for name, claimRef := range map[string]VolumeEdit{"pre-bound": PreBound, "bound": BoundToClaim} {
		t.Run("M12 "+name+": what is excused", func(t *testing.T) {
			got, err := match.Check(claim, FitVolume("pv-a", excused, claimRef), Waiting())
			require.NoError(t, err)
			assert.Empty(t, got)
		})
		t.Run("M12 "+name+": what counts", func(t *testing.T) {
			got, err := match.Check(claim, FitVolume("pv-a", everything, claimRef), OnNode(Waiting(), NodeIn("a")))
			require.NoError(t, err)
			assert.Equal(t, []match.Reason{match.Deleting, match.TooSmall, match.AccessModes,
				match.VolumeMode, match.AttributesClass, match.NodeAffinity}, reasons(got))
		})
	}
	t.Run("E1 all reasons of an unclaimed volume, in M order", func(t *testing.T) {
		got, err := match.Check(claim, FitVolume("pv-a", everything), OnNode(Waiting(), NodeIn("a")))
		require.NoError(t, err)
		assert.Equal(t, []match.Reason{match.Deleting, match.TooSmall, match.AccessModes,
			match.VolumeMode, match.StorageClass, match.AttributesClass, match.Selector,
			match.NotAvailable, match.NodeAffinity}, reasons(got))
	})
	t.Run("E1 all reasons of somebody else's volume", func(t *testing.T) {
		got, err := match.Check(claim, FitVolume("pv-a", everything, RefersTo("other", "x", "")), OnNode(Waiting(), NodeIn("a")))
		require.NoError(t, err)
		assert.Equal(t, []match.Reason{match.Deleting, match.BoundToAnotherClaim, match.TooSmall, match.AccessModes,
			match.VolumeMode, match.StorageClass, match.AttributesClass, match.Selector,
			match.NodeAffinity}, reasons(got))
	})
}

func reasons(mismatches match.Mismatches) []match.Reason {
	var list []match.Reason
	for _, m := range mismatches {
		list = append(list, m.Reason)
	}
	return list
}
