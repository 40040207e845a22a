package decision_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/pvbind/pvbind/binding/decision"
	"github.com/pvbind/pvbind/binding/hooks"
	. "github.com/pvbind/pvbind/binding/internal/testkit"
	"github.com/pvbind/pvbind/binding/obj"
	"github.com/pvbind/pvbind/reclaim"
	"github.com/pvbind/pvbind/storageclass"
)

const (
	runsOwn     = "P2 RunProvisioner pv/pvc-uid-1 by " + Own
	createsOwn  = "P2 CreateVolume pv/pvc-uid-1"
	deletesOwn  = "P2 RunDeleter pv/pvc-uid-1 by " + Own
	readsOwn    = "P2 Read pv/pvc-uid-1"
	leavesNode  = "P2 UpdateClaim pvc/default/data: -annotation " + SelectedNode
	forgetsOwn  = "P2 UpdateClaim pvc/default/data: -finalizer " + ProvisioningFinalizer
	asksOwn     = "+annotation " + BetaProvisioner + "=" + Own + " +annotation " + Provisioner + "=" + Own
	tracesOwn   = "+finalizer " + ProvisioningFinalizer
	cleanupOf   = "Warning ProvisioningCleanupFailed pvc/default/data"
	failedOwn   = "Warning ProvisioningFailed pvc/default/data"
	succeeded   = "Normal ProvisioningSucceeded pvc/default/data"
	pvcDataSets = "P3 UpdateClaim pvc/default/data: "
)

func TestP2BeforeStorageIsMade(t *testing.T) {
	fast := Knowing(ClassOf("fast", Own))
	absent := Proving(fast, OwnKey, DataKey)
	asks := KnownClaim(RequestingClass(new("fast")))
	inTree := Hooked(func(names *hooks.Names) {
		names.Provisioners = sets.New("kubernetes.io/ours", "kubernetes.io/no-provisioner")
	})
	driver := Hooked()
	driver.Migrations = storageclass.Migrations{"kubernetes.io/old": Own}
	gets := func(edits ...VolumeEdit) decision.Snapshot {
		return Proving(Knowing(ClassOf("fast", Own), KnownVolume(OwnKey.Name, append([]VolumeEdit{OfClass("fast")}, edits...)...)), OwnKey)
	}
	delayed := Knowing(ClassOf("fast", Own, WaitsForFirstConsumer))
	runDecisions(t, []decisionTest{
		{name: "P2 P3 first the annotations, and in the same write the finalizer", claim: asks, known: fast, options: Hooked(), expected: pvcDataSets + asksOwn + " " + tracesOwn},
		{name: "P2 no finalizer where nobody could delete what is made", claim: asks, known: fast, options: Hooked(WithoutDeleters), expected: pvcDataSets + asksOwn},
		{name: "P2 annotated by somebody else: the finalizer", claim: ProvisioningClaim(ClaimFinalizers()), known: fast, options: Hooked(), expected: pvcDataSets + tracesOwn},
		{name: "P2 finalizers of others stay", claim: ProvisioningClaim(ClaimFinalizers("theirs")), known: fast, options: Hooked(), expected: pvcDataSets + tracesOwn},
		{name: "P2 then a live read for a volume of that name", claim: ProvisioningClaim(), known: fast, options: Hooked(), expected: readsOwn},
		{name: "P2 without a deleter too", claim: ProvisioningClaim(ClaimFinalizers()), known: fast, options: Hooked(WithoutDeleters), expected: readsOwn},
		{name: "P2 that a cache knows another of that name proves nothing", claim: ProvisioningClaim(), known: Knowing(ClassOf("fast", Own), KnownVolume(OwnKey.Name, RefersToOther)), options: Hooked(), expected: readsOwn},
		{name: "P2 a live read of another volume proves nothing", claim: ProvisioningClaim(), known: Proving(fast, obj.VolumeKey("other")), options: Hooked(), expected: readsOwn},
		{name: "P2 X2 then one of the claim: it may be gone, and what was made for it retained", claim: ProvisioningClaim(), known: Proving(fast, OwnKey), options: Hooked(), expected: "P2 Read pvc/default/data"},
		{name: "P2 there is none: it makes the storage", claim: ProvisioningClaim(), known: absent, options: Hooked(), expected: runsOwn},
		{name: "P2 without a deleter: it makes the storage", claim: ProvisioningClaim(ClaimFinalizers()), known: absent, options: Hooked(WithoutDeleters), expected: runsOwn},
		{name: "P1 P2 an in-tree name that is registered", claim: asks, known: Knowing(ClassOf("fast", "kubernetes.io/ours")), options: inTree,
			expected: pvcDataSets + "+annotation " + BetaProvisioner + "=kubernetes.io/ours +annotation " + Provisioner + "=kubernetes.io/ours"},
		{name: "P1 no-provisioner makes nothing, whatever is registered", claim: asks, known: Knowing(ClassOf("fast", "kubernetes.io/no-provisioner")), options: inTree, expected: "P1 Wait", events: []string{failedOwn}},
		{name: "P2 G1 the driver of a migrated name, if that is registered", claim: ProvisioningClaim(ClaimNote(MigratedTo, Own)), known: Proving(Knowing(ClassOf("fast", "kubernetes.io/old")), OwnKey), options: driver, expected: "G2 UpdateClaim pvc/default/data: -annotation " + MigratedTo},
		{name: "P3 a binder without hooks waits beside one with hooks, and leaves its finalizer", claim: ProvisioningClaim(), known: absent, expected: "P3 Wait", events: []string{"Normal ExternalProvisioning pvc/default/data"}, says: []string{Own}},
		{name: "P3 another provisioner's claim is not run for", claim: asks, known: Knowing(ClassOf("fast", "their.example.com")), options: Hooked(),
			expected: pvcDataSets + "+annotation " + BetaProvisioner + "=their.example.com +annotation " + Provisioner + "=their.example.com"},
		{name: "P2 C1 a volume that fits is better than a new one", claim: ProvisioningClaim(), known: Proving(Knowing(ClassOf("fast", Own), KnownVolume("a", OfClass("fast"))), OwnKey), options: Hooked(),
			expected: "B1 UpdateVolume pv/a: spec.claimRef={default/data uid-1} +annotation " + BoundBy},
		{name: "P2 C3 no node yet: the consumer is awaited", claim: KnownClaim(RequestingClass(new("fast"))), known: delayed, options: Hooked(), expected: "C3 Wait", events: []string{"Normal WaitForFirstConsumer pvc/default/data"}},
		{name: "P2 C3 with a node it is provisioned", claim: ProvisioningClaim(PlacedOn("n1")), known: Proving(delayed, OwnKey, DataKey), options: Hooked(), expected: runsOwn},
		{name: "P2 C12 being deleted: nothing is begun", claim: KnownClaim(RequestingClass(new("fast")), ClaimBeingDeleted), known: fast, options: Hooked(), expected: "C12 Nothing"},
		{name: "P2 C12 being deleted, annotated: nothing is begun", claim: ProvisioningClaim(ClaimFinalizers("theirs"), ClaimBeingDeleted), known: absent, options: Hooked(), expected: "C12 Nothing"},

		{name: "P2 the name is taken by a volume of another claim", claim: ProvisioningClaim(), known: gets(RefersToOther), options: Hooked(), expected: "P2 Wait", events: []string{failedOwn}, says: []string{`"pvc-uid-1"`, "not the claim's"}, retry: decision.RetryBackoff},
		{name: "P2 its volume exists and does not fit", claim: ProvisioningClaim(), known: gets(BoundToClaim, Sized("1Gi")), options: Hooked(), expected: "P2 Wait", events: append(mismatches(), failedOwn), retry: decision.RetryBackoff, fresh: true},
		{name: "P2 its volume exists: the binding goes on", claim: ProvisioningClaim(), known: gets(BoundToClaim, InPhase(corev1.VolumePending)), options: Hooked(), expected: "B2 UpdateVolumeStatus pv/pvc-uid-1: status.phase=Bound", fresh: true},
		{name: "P2 another's answer does not count", claim: ProvisioningClaim(), known: Answering(absent, decision.Answer{Of: decision.RunProvisioner, Hook: Own, For: "uid-9", Volume: MadeVolume()}), options: Hooked(), expected: runsOwn},
		{name: "P2 nor does what another provisioner made", claim: ProvisioningClaim(), known: Answering(absent, decision.Answer{Of: decision.RunProvisioner, Hook: "old.example.com", For: "uid-1", Volume: MadeVolume()}), options: Hooked(), expected: runsOwn},
		{name: "P2 X7 a claim without a UID", claim: ProvisioningClaim(OfUID("")), known: absent, options: Hooked(), fails: "metadata.uid"},
	}, func(row *decisionTest) { row.fresh = true })
}

// mismatches are the events of M12 about pvc-uid-1.
func mismatches() []string {
	return []string{"Warning VolumeMismatch pvc/default/data", "Warning VolumeMismatch pv/pvc-uid-1"}
}

func TestP2WhatAProvisionerIsAskedFor(t *testing.T) {
	class := ClassOf("fast", Own, func(c *storagev1.StorageClass) {
		c.Parameters = map[string]string{"pool": "ssd"}
		c.MountOptions = []string{"noatime"}
		c.ReclaimPolicy = new(corev1.PersistentVolumeReclaimRetain)
		c.AllowedTopologies = []corev1.TopologySelectorTerm{{MatchLabelExpressions: []corev1.TopologySelectorLabelRequirement{{Key: "zone", Values: []string{"a"}}}}}
	})
	claim := ProvisioningClaim(PlacedOn("n1"), func(c *corev1.PersistentVolumeClaim) {
		c.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce, corev1.ReadOnlyMany}
		c.Spec.VolumeMode = new(corev1.PersistentVolumeBlock)
		c.Spec.VolumeAttributesClassName = new("gold")
	})
	action, err := decision.NextForClaim(claim, Proving(Knowing(claim, class), OwnKey, DataKey), Hooked())
	require.NoError(t, err)
	require.Equal(t, decision.RunProvisioner, action.Kind)

	assert.Equal(t, Own, action.Hook)
	assert.Equal(t, claim, action.Request.Claim)
	assert.Equal(t, class, action.Request.Class, "with parameters and allowedTopologies")
	assert.Equal(t, "n1", action.Request.Node, "the selected node")
	expected := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "pvc-uid-1", Annotations: map[string]string{BoundBy: "yes", ProvisionedBy: Own}}}
	expected.Spec = corev1.PersistentVolumeSpec{
		Capacity: Storage("10Gi"), AccessModes: claim.Spec.AccessModes, StorageClassName: "fast", MountOptions: []string{"noatime"},
		PersistentVolumeReclaimPolicy: corev1.PersistentVolumeReclaimRetain, VolumeMode: new(corev1.PersistentVolumeBlock), VolumeAttributesClassName: new("gold"),
		ClaimRef: &corev1.ObjectReference{Kind: "PersistentVolumeClaim", APIVersion: "v1", Namespace: "default", Name: "data", UID: "uid-1", ResourceVersion: "7"},
	}
	assert.Equal(t, expected, action.Request.Volume, "all but a source")
}

// TestP2WhatIsStored has a provisioner change all that it must not, and some that it may.
func TestP2WhatIsStored(t *testing.T) {
	for _, policy := range []corev1.PersistentVolumeReclaimPolicy{"", corev1.PersistentVolumeReclaimDelete, corev1.PersistentVolumeReclaimRetain} {
		t.Run(fmt.Sprintf("P2 R6 policy %q", policy), func(t *testing.T) {
			class := ClassOf("fast", Own, func(c *storagev1.StorageClass) {
				if policy != "" {
					c.ReclaimPolicy = &policy
				}
			})
			answer := MadeVolume(Sized("12Gi"), RefersToOther, OfClass("slow"), WithPolicy("Burn"), Labelled("disk", "ssd"), InPhase(corev1.VolumeFailed),
				VolumeNote("path", "/x"), VolumeNote(ProvisionedBy, "me"),
				VolumeNote(reclaim.AnnouncementAnnotation, `{"done":true}`), VolumeNote(reclaim.TransferAnnotation, "{}"), VolumeNote(MigratedTo, "csi.example.com"), VolumeFinalizers("theirs"), func(v *corev1.PersistentVolume) {
					v.UID, v.ResourceVersion = "mine", "3"
					v.Spec.AccessModes = append(v.Spec.AccessModes, corev1.ReadOnlyMany)
					v.Spec.MountOptions = []string{"ro"}
					v.Spec.VolumeAttributesClassName = new("lead")
				})
			claim := ProvisioningClaim()
			known := Answering(Proving(Knowing(claim, class), OwnKey), Made(answer))

			action, err := decision.NextForClaim(claim, known, Hooked())

			require.NoError(t, err)
			require.Equal(t, decision.CreateVolume, action.Kind)
			expected := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{
				Name: "pvc-uid-1", Labels: map[string]string{"disk": "ssd"}, Finalizers: []string{"theirs", InTreeFinalizer},
				Annotations: map[string]string{BoundBy: "yes", ProvisionedBy: Own, "path": "/x"},
			}}
			expected.Spec = corev1.PersistentVolumeSpec{
				Capacity: Storage("12Gi"), AccessModes: answer.Spec.AccessModes, StorageClassName: "fast", MountOptions: []string{"ro"},
				PersistentVolumeReclaimPolicy: corev1.PersistentVolumeReclaimDelete, PersistentVolumeSource: answer.Spec.PersistentVolumeSource,
				ClaimRef: &corev1.ObjectReference{Kind: "PersistentVolumeClaim", APIVersion: "v1", Namespace: "default", Name: "data", UID: "uid-1", ResourceVersion: "7"},
			}
			if policy == corev1.PersistentVolumeReclaimRetain {
				expected.Finalizers, expected.Spec.PersistentVolumeReclaimPolicy = []string{"theirs"}, policy
			}
			assert.Equal(t, expected, action.Volume)
		})
	}
}

// A provisioner that makes the volume from nothing, and not from the one it was given, does not lose what the class says.
func TestP2MountOptionsOfTheClass(t *testing.T) {
	class := ClassOf("fast", Own, func(c *storagev1.StorageClass) { c.MountOptions = []string{"noatime"} })
	claim := ProvisioningClaim()
	action, err := decision.NextForClaim(claim, Answering(Proving(Knowing(claim, class), OwnKey), Made(MadeVolume())), Hooked())
	require.NoError(t, err)
	require.Equal(t, decision.CreateVolume, action.Kind)
	assert.Equal(t, []string{"noatime"}, action.Volume.Spec.MountOptions)
}

func TestP2WhatItMadeIsStored(t *testing.T) {
	fast := Knowing(ClassOf("fast", Own))
	absent := Proving(fast, OwnKey)
	fails, unsettled := NotStored(ErrBroken), NotStored(ErrBroken)
	unsettled.Unsettled = true
	runDecisions(t, []decisionTest{
		{name: "P2 made", claim: ProvisioningClaim(), known: Answering(absent, Made(MadeVolume())), options: Hooked(), expected: createsOwn, events: []string{succeeded}},
		{name: "P2 X6 what is stored shares nothing with claim and class", claim: ProvisioningClaim(func(c *corev1.PersistentVolumeClaim) { c.Spec.VolumeAttributesClassName = new("gold") }),
			known: Answering(Proving(Knowing(ClassOf("fast", Own, func(c *storagev1.StorageClass) { c.MountOptions = []string{"noatime"} })), OwnKey), Made(MadeVolume())), options: Hooked(), expected: createsOwn, events: []string{succeeded}},
		{name: "P2 made larger", claim: ProvisioningClaim(), known: Answering(absent, Made(MadeVolume(Sized("11Gi")))), options: Hooked(), expected: createsOwn, events: []string{succeeded}},
		{name: "P2 made, and no proof that there is no such volume is needed to try", claim: ProvisioningClaim(), known: Answering(fast, Made(MadeVolume())), options: Hooked(), expected: createsOwn, events: []string{succeeded}},
		{name: "P2 the last answer counts", claim: ProvisioningClaim(), known: Answering(absent, NotMade(ErrBroken), Made(MadeVolume())), options: Hooked(), expected: createsOwn, events: []string{succeeded}},
		{name: "P2 made, and a volume of that name is in the cache: a live read", claim: ProvisioningClaim(), known: Answering(Knowing(ClassOf("fast", Own), KnownVolume(OwnKey.Name, RefersToOther)), Made(MadeVolume())), options: Hooked(), expected: readsOwn},
		{name: "P2 made, and a volume that fits came meanwhile: C1", claim: ProvisioningClaim(), known: Answering(Proving(Knowing(ClassOf("fast", Own), KnownVolume("a", OfClass("fast"))), OwnKey), Made(MadeVolume())), options: Hooked(),
			expected: "B1 UpdateVolume pv/a: spec.claimRef={default/data uid-1} +annotation " + BoundBy},
		{name: "P1 made, and the class is gone", claim: ProvisioningClaim(), known: Answering(Proving(Knowing(), OwnKey), Made(MadeVolume())), options: Hooked(), expected: "P1 Wait", events: []string{failedOwn}},
		{name: "P2 made, and deleted again since, as when the class had another provisioner meanwhile: not stored", claim: ProvisioningClaim(),
			known: Answering(absent, Made(MadeVolume()), DeletedAgain(nil)), options: Hooked(), expected: "P2 Wait", retry: decision.RetryBackoff},
		{name: "P2 not stored once: again", claim: ProvisioningClaim(), known: Answering(absent, Made(MadeVolume()), fails), options: Hooked(), expected: createsOwn, events: []string{succeeded}},
		{name: "P2 not stored twice: again", claim: ProvisioningClaim(), known: Answering(absent, Made(MadeVolume()), fails, fails), options: Hooked(), expected: createsOwn, events: []string{succeeded}},
		{name: "P2 not stored three times: a live read before it is deleted again", claim: ProvisioningClaim(), known: Answering(fast, Made(MadeVolume()), fails, fails, fails), options: Hooked(), expected: readsOwn},
		{name: "P2 not stored three times: deleted again", claim: ProvisioningClaim(), known: Answering(absent, Made(MadeVolume()), fails, fails, fails), options: Hooked(), expected: deletesOwn, says: []string{"could not be stored", "the disk is broken"}},
		{name: "P2 not stored, but there it is: B2", claim: ProvisioningClaim(), known: Answering(Proving(Knowing(ClassOf("fast", Own), KnownVolume(OwnKey.Name, OfClass("fast"), BoundToClaim, InPhase(corev1.VolumePending))), OwnKey), Made(MadeVolume()), fails, fails, fails), options: Hooked(), fresh: true,
			expected: "B2 UpdateVolumeStatus pv/pvc-uid-1: status.phase=Bound"},
		{name: "P2 the outcome of one is unknown: its storage may be needed yet", claim: ProvisioningClaim(), known: Answering(absent, Made(MadeVolume()), fails, unsettled, fails), options: Hooked(), expected: "P2 Wait", events: []string{failedOwn}, says: []string{"could not be stored", "the disk is broken"}, retry: decision.RetryBackoff},
		{name: "P2 W6 deleted again: later", claim: ProvisioningClaim(), known: Answering(absent, Made(MadeVolume()), fails, fails, fails, DeletedAgain(nil)), options: Hooked(), expected: "P2 Wait", events: []string{failedOwn}, says: []string{"could not be stored", "the disk is broken"}, retry: decision.RetryBackoff},
		{name: "P2 W6 it cannot be deleted again", claim: ProvisioningClaim(), known: Answering(absent, Made(MadeVolume()), fails, fails, fails, DeletedAgain(errors.New("busy"))), options: Hooked(), expected: "P2 Wait", events: []string{failedOwn, cleanupOf}, retry: decision.RetryBackoff},
		{name: "P2 the node stays, which is not to blame", claim: ProvisioningClaim(PlacedOn("n1")), known: Answering(absent, Made(MadeVolume()), fails, fails, fails, DeletedAgain(nil)), options: Hooked(), expected: "P2 Wait", events: []string{failedOwn}, retry: decision.RetryBackoff},
	})
}

func TestP2ABadAnswer(t *testing.T) {
	fast := Knowing(ClassOf("fast", Own))
	absent := Proving(fast, OwnKey)
	block := func(v *corev1.PersistentVolume) { v.Spec.VolumeMode = new(corev1.PersistentVolumeBlock) }
	sourceless := func(v *corev1.PersistentVolume) { v.Spec.PersistentVolumeSource = corev1.PersistentVolumeSource{} }
	modes := func(modes ...corev1.PersistentVolumeAccessMode) VolumeEdit {
		return func(v *corev1.PersistentVolume) { v.Spec.AccessModes = modes }
	}
	called := func(name string) VolumeEdit { return func(v *corev1.PersistentVolume) { v.Name = name } }
	for name, bad := range map[string]struct {
		made *corev1.PersistentVolume
		says string
	}{
		"nil":               {nil, "returned no volume"},
		"M3 too small":      {MadeVolume(Sized("9Gi")), "10Gi"},
		"M4 not its modes":  {MadeVolume(modes(corev1.ReadOnlyMany)), "requested RWO, actual ROX"},
		"no modes":          {MadeVolume(modes()), "requested RWO"},
		"M5 volume mode":    {MadeVolume(block), "Block"},
		"another name":      {MadeVolume(called("mine")), `"mine"`},
		"no name":           {MadeVolume(called("")), `named the volume ""`},
		"no source":         {MadeVolume(sourceless), "without a source"},
		"X7 no capacity":    {MadeVolume(unsized), "spec.capacity[storage]"},
		"X7 negative":       {MadeVolume(Sized("-1")), "negative"},
		"X7 unknown mode":   {MadeVolume(modes("RWO")), "spec.accessModes"},
		"X7 unknown volume": {MadeVolume(func(v *corev1.PersistentVolume) { v.Spec.VolumeMode = new(corev1.PersistentVolumeMode("Tape")) }), "Tape"},
	} {
		says := []string{bad.says}
		runDecisions(t, []decisionTest{
			{name: "P2 " + name + ": a live read first", claim: ProvisioningClaim(), known: Answering(fast, Made(bad.made)), options: Hooked(), expected: readsOwn},
			{name: "P2 " + name + ": deleted again", claim: ProvisioningClaim(), known: Answering(absent, Made(bad.made)), options: Hooked(), expected: deletesOwn, says: says},
			{name: "P2 " + name + ": reported", claim: ProvisioningClaim(), known: Answering(absent, Made(bad.made), DeletedAgain(nil)), options: Hooked(), expected: "P2 Wait", events: []string{failedOwn}, says: says, retry: decision.RetryBackoff},
			{name: "P2 " + name + ": the scheduler chooses again", claim: ProvisioningClaim(PlacedOn("n1")), known: Answering(absent, Made(bad.made), DeletedAgain(nil)), options: Hooked(), expected: leavesNode, events: []string{failedOwn}, says: says},
			{name: "P2 " + name + ": cleaning up failed", claim: ProvisioningClaim(), known: Answering(absent, Made(bad.made), DeletedAgain(ErrBroken)), options: Hooked(), expected: "P2 Wait", events: []string{failedOwn, cleanupOf}, retry: decision.RetryBackoff},
			{name: "P2 " + name + ": nobody cleans up", claim: ProvisioningClaim(ClaimFinalizers()), known: Answering(absent, Made(bad.made)), options: Hooked(WithoutDeleters), expected: "P2 Wait", events: []string{failedOwn, cleanupOf}, retry: decision.RetryBackoff},
			{name: "R8 " + name + ": cleaning up would have come too late", claim: ProvisioningClaim(), known: Answering(absent, Made(bad.made), DeletedAgain(Meaning(hooks.TooLate))), options: Hooked(), expected: "P2 Wait", events: []string{failedOwn, cleanupOf}, retry: decision.RetryBackoff},
			{name: "Rh " + name + ": cleaning up is in progress", claim: ProvisioningClaim(), known: Answering(absent, Made(bad.made), DeletedAgain(InProgress(0))), options: Hooked(), expected: "P2 Wait", events: []string{failedOwn}, says: says, retry: decision.RetryBackoff},
		})
	}
}

func TestP2WhoDeletesABadAnswerAgain(t *testing.T) {
	claim := ProvisioningClaim()
	for name, made := range map[string]decision.Answer{
		"nothing":      Made(nil),
		"without name": Made(MadeVolume(func(v *corev1.PersistentVolume) { v.Name = "mine" })),
	} {
		t.Run("P2 "+name, func(t *testing.T) {
			action, err := decisionTest{claim: claim, known: Answering(Proving(Knowing(ClassOf("fast", Own)), OwnKey), made), options: Hooked()}.complete().decide()
			require.NoError(t, err)
			assert.Equal(t, "pvc-uid-1", action.Volume.Name, "the name that it was asked for")
			assert.Equal(t, claim.UID, action.Volume.Spec.ClaimRef.UID)
			assert.Equal(t, Own, action.Volume.Annotations[ProvisionedBy])
			assert.Empty(t, action.Volume.UID, "it was never stored")
			if made.Volume != nil {
				assert.Equal(t, made.Volume.Spec.HostPath, action.Volume.Spec.HostPath, "with its source, if it has one")
			}
		})
	}
}

func TestP2AProvisionerThatFails(t *testing.T) {
	absent := Proving(Knowing(ClassOf("fast", Own)), OwnKey)
	broken := []string{"the disk is broken"}
	plain, placed := ProvisioningClaim(), ProvisioningClaim(PlacedOn("n1"))
	wrapped := fmt.Errorf("in short: %w", Meaning(hooks.Refused))
	runDecisions(t, []decisionTest{
		{name: "P2 W6 it failed", claim: plain, known: Answering(absent, NotMade(ErrBroken)), options: Hooked(), expected: "P2 Wait", events: []string{failedOwn}, says: broken, retry: decision.RetryBackoff},
		{name: "P2 it failed on a node", claim: placed, known: Answering(absent, NotMade(ErrBroken)), options: Hooked(), expected: leavesNode, events: []string{failedOwn}, says: broken},
		{name: "P2 even one without a name", claim: ProvisioningClaim(PlacedOn("")), known: Answering(absent, NotMade(ErrBroken)), options: Hooked(), expected: leavesNode, events: []string{failedOwn}, says: broken},
		{name: "Rh P2 W6 a HookError without a meaning", claim: plain, known: Answering(absent, NotMade(Meaning(hooks.Failed))), options: Hooked(), expected: "P2 Wait", events: []string{failedOwn}, says: broken, retry: decision.RetryBackoff},
		{name: "Rh P2 refused for good", claim: plain, known: Answering(absent, NotMade(Meaning(hooks.Refused))), options: Hooked(), expected: "P2 Wait", events: []string{failedOwn}, says: broken},
		{name: "Rh P2 refused for good, wrapped", claim: plain, known: Answering(absent, NotMade(wrapped)), options: Hooked(), expected: "P2 Wait", events: []string{failedOwn}, says: []string{"in short: the disk is broken"}},
		{name: "R8 P2 the storage has seen a larger token: the node stays, and it is tried again", claim: placed, known: Answering(absent, NotMade(Meaning(hooks.StaleToken))), options: Hooked(), expected: "P2 Wait", events: []string{failedOwn}, says: broken, retry: decision.RetryBackoff},
		{name: "Rh P2 refused for good on a node: it stays, for another would be refused too", claim: placed, known: Answering(absent, NotMade(Meaning(hooks.Refused))), options: Hooked(), expected: "P2 Wait", events: []string{failedOwn}, says: broken},
		{name: "Rh X8 an earlier call has not returned: the node stays, and it is told", claim: placed, known: Answering(absent, NotMade(Meaning(hooks.NotReturned))), options: Hooked(), expected: "P2 Wait", events: []string{failedOwn}, says: broken, retry: decision.RetryBackoff},
		{name: "Rh W6 in progress", claim: plain, known: Answering(absent, NotMade(InProgress(0))), options: Hooked(), expected: "Rh Wait", retry: decision.RetryBackoff},
		{name: "Rh in progress: ask again after d", claim: plain, known: Answering(absent, NotMade(InProgress(time.Minute))), options: Hooked(), expected: "Rh Wait", retry: decision.RetryAfter},
		{name: "Rh in progress on a node: it stays", claim: placed, known: Answering(absent, NotMade(InProgress(time.Minute))), options: Hooked(), expected: "Rh Wait", retry: decision.RetryAfter},
		{name: "Rh in use means nothing to a provisioner", claim: plain, known: Answering(absent, NotMade(Meaning(hooks.InUse))), options: Hooked(), expected: "P2 Wait", events: []string{failedOwn}, says: broken, retry: decision.RetryBackoff},
		{name: "P2 C12 it failed, and the claim is being deleted: what it may have made is deleted", claim: ProvisioningClaim(ClaimBeingDeleted), known: Answering(absent, NotMade(ErrBroken)), options: Hooked(), expected: deletesOwn},
	})
}

func TestRhWhatAHookErrorSays(t *testing.T) {
	assert.Equal(t, "the disk is broken", Meaning(hooks.InUse).Error(), "Rh its cause")
	assert.Equal(t, "InProgress", InProgress(0).Error(), "Rh its meaning if there is no cause")
	assert.ErrorIs(t, Meaning(hooks.Refused), ErrBroken, "Rh")
	claim := ProvisioningClaim()
	action, err := decision.NextForClaim(claim, Answering(Proving(Knowing(claim, ClassOf("fast", Own)), OwnKey), NotMade(InProgress(time.Minute))), Hooked())
	require.NoError(t, err)
	assert.Equal(t, time.Minute, action.After, "Rh after d")
}
