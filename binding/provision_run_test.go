package binding_test

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

	"github.com/pvbind/pvbind/binding"
	"github.com/pvbind/pvbind/binding/obj"
	"github.com/pvbind/pvbind/storageclass"
)

const (
	runsOwn     = "P2 RunProvisioner pv/pvc-uid-1 by " + own
	createsOwn  = "P2 CreateVolume pv/pvc-uid-1"
	deletesOwn  = "P2 RunDeleter pv/pvc-uid-1 by " + own
	readsOwn    = "P2 Read pv/pvc-uid-1"
	leavesNode  = "P2 UpdateClaim pvc/default/data: -annotation " + selectedNode
	forgetsOwn  = "P2 UpdateClaim pvc/default/data: -finalizer " + provisioningFinalizer
	asksOwn     = "+annotation " + betaProvisioner + "=" + own + " +annotation " + provisioner + "=" + own
	tracesOwn   = "+finalizer " + provisioningFinalizer
	cleanupOf   = "Warning ProvisioningCleanupFailed pvc/default/data"
	failedOwn   = "Warning ProvisioningFailed pvc/default/data"
	succeeded   = "Normal ProvisioningSucceeded pvc/default/data"
	pvcDataSets = "P3 UpdateClaim pvc/default/data: "
)

func TestP2BeforeStorageIsMade(t *testing.T) {
	fast := knowing(classOf("fast", own))
	absent := proving(fast, ownKey)
	asks := knownClaim(askingClass(new("fast")))
	inTree := hooked(func(names *binding.HookNames) {
		names.Provisioners = sets.New("kubernetes.io/ours", "kubernetes.io/no-provisioner")
	})
	driver := hooked()
	driver.Migrations = storageclass.Migrations{"kubernetes.io/old": own}
	gets := func(edits ...volumeEdit) binding.Snapshot {
		return proving(knowing(classOf("fast", own), knownVolume(ownKey.Name, append([]volumeEdit{ofClass("fast")}, edits...)...)), ownKey)
	}
	delayed := knowing(classOf("fast", own, delayedClass))
	runDecisions(t, []decision{
		{name: "P2 P3 first the annotations, and in the same write the finalizer", claim: asks, known: fast, rules: hooked(), want: pvcDataSets + asksOwn + " " + tracesOwn},
		{name: "P2 no finalizer where nobody could delete what is made", claim: asks, known: fast, rules: hooked(withoutDeleters), want: pvcDataSets + asksOwn},
		{name: "P2 annotated by somebody else: the finalizer", claim: provisioningClaim(claimFinalizers()), known: fast, rules: hooked(), want: pvcDataSets + tracesOwn},
		{name: "P2 finalizers of others stay", claim: provisioningClaim(claimFinalizers("theirs")), known: fast, rules: hooked(), want: pvcDataSets + tracesOwn},
		{name: "P2 then a live read for a volume of that name", claim: provisioningClaim(), known: fast, rules: hooked(), want: readsOwn},
		{name: "P2 without a deleter too", claim: provisioningClaim(claimFinalizers()), known: fast, rules: hooked(withoutDeleters), want: readsOwn},
		{name: "P2 that a cache knows another of that name proves nothing", claim: provisioningClaim(), known: knowing(classOf("fast", own), knownVolume(ownKey.Name, refersToOther)), rules: hooked(), want: readsOwn},
		{name: "P2 a live read of another volume proves nothing", claim: provisioningClaim(), known: proving(fast, obj.VolumeKey("other")), rules: hooked(), want: readsOwn},
		{name: "P2 there is none: it makes the storage", claim: provisioningClaim(), known: absent, rules: hooked(), want: runsOwn},
		{name: "P2 without a deleter: it makes the storage", claim: provisioningClaim(claimFinalizers()), known: absent, rules: hooked(withoutDeleters), want: runsOwn},
		{name: "P1 P2 an in-tree name that is registered", claim: asks, known: knowing(classOf("fast", "kubernetes.io/ours")), rules: inTree,
			want: pvcDataSets + "+annotation " + betaProvisioner + "=kubernetes.io/ours +annotation " + provisioner + "=kubernetes.io/ours"},
		{name: "P1 no-provisioner makes nothing, whatever is registered", claim: asks, known: knowing(classOf("fast", "kubernetes.io/no-provisioner")), rules: inTree, want: "P1 Wait", events: []string{failedOwn}},
		{name: "P2 G1 the driver of a migrated name, if that is registered", claim: provisioningClaim(claimNote(migratedTo, own)), known: proving(knowing(classOf("fast", "kubernetes.io/old")), ownKey), rules: driver, want: "G2 UpdateClaim pvc/default/data: -annotation " + migratedTo},
		{name: "P3 a binder without hooks waits beside one with hooks, and leaves its finalizer", claim: provisioningClaim(), known: absent, want: "P3 Wait", events: []string{"Normal ExternalProvisioning pvc/default/data"}, says: []string{own}},
		{name: "P3 another provisioner's claim is not run for", claim: asks, known: knowing(classOf("fast", "their.example.com")), rules: hooked(),
			want: pvcDataSets + "+annotation " + betaProvisioner + "=their.example.com +annotation " + provisioner + "=their.example.com"},
		{name: "P2 C1 a volume that fits is better than a new one", claim: provisioningClaim(), known: proving(knowing(classOf("fast", own), knownVolume("a", ofClass("fast"))), ownKey), rules: hooked(),
			want: "B1 UpdateVolume pv/a: spec.claimRef={default/data uid-1} +annotation " + boundBy},
		{name: "P2 C3 no node yet: the consumer is awaited", claim: knownClaim(askingClass(new("fast"))), known: delayed, rules: hooked(), want: "C3 Wait", events: []string{"Normal WaitForFirstConsumer pvc/default/data"}},
		{name: "P2 C3 with a node it is provisioned", claim: provisioningClaim(placedOn("n1")), known: proving(delayed, ownKey), rules: hooked(), want: runsOwn},
		{name: "P2 C12 being deleted: nothing is begun", claim: knownClaim(askingClass(new("fast")), claimBeingDeleted), known: fast, rules: hooked(), want: "C12 Nothing"},
		{name: "P2 C12 being deleted, annotated: nothing is begun", claim: provisioningClaim(claimFinalizers("theirs"), claimBeingDeleted), known: absent, rules: hooked(), want: "C12 Nothing"},

		{name: "P2 the name is taken by a volume of another claim", claim: provisioningClaim(), known: gets(refersToOther), rules: hooked(), want: "P2 Wait", events: []string{failedOwn}, says: []string{`"pvc-uid-1"`, "not the claim's"}, retry: binding.RetryBackoff},
		{name: "P2 its volume exists and does not fit", claim: provisioningClaim(), known: gets(held, sized("1Gi")), rules: hooked(), want: "P2 Wait", events: append(mismatches(), failedOwn), retry: binding.RetryBackoff},
		{name: "P2 its volume exists: the binding goes on", claim: provisioningClaim(), known: gets(held, inPhase(corev1.VolumePending)), rules: hooked(), want: "B2 UpdateVolumeStatus pv/pvc-uid-1: status.phase=Bound"},
		{name: "P2 another's answer does not count", claim: provisioningClaim(), known: answering(absent, binding.Answer{Of: binding.RunProvisioner, Hook: own, For: "uid-9", Volume: madeVolume()}), rules: hooked(), want: runsOwn},
		{name: "P2 nor does what another provisioner made", claim: provisioningClaim(), known: answering(absent, binding.Answer{Of: binding.RunProvisioner, Hook: "old.example.com", For: "uid-1", Volume: madeVolume()}), rules: hooked(), want: runsOwn},
		{name: "P2 X7 a claim without a UID", claim: provisioningClaim(ofUID("")), known: absent, rules: hooked(), fails: "metadata.uid"},
	})
}

// mismatches are the events of M12 about pvc-uid-1.
func mismatches() []string {
	return []string{"Warning VolumeMismatch pvc/default/data", "Warning VolumeMismatch pv/pvc-uid-1"}
}

func TestP2WhatAProvisionerIsAskedFor(t *testing.T) {
	class := classOf("fast", own, func(c *storagev1.StorageClass) {
		c.Parameters = map[string]string{"pool": "ssd"}
		c.MountOptions = []string{"noatime"}
		c.ReclaimPolicy = new(corev1.PersistentVolumeReclaimRetain)
		c.AllowedTopologies = []corev1.TopologySelectorTerm{{MatchLabelExpressions: []corev1.TopologySelectorLabelRequirement{{Key: "zone", Values: []string{"a"}}}}}
	})
	claim := provisioningClaim(placedOn("n1"), func(c *corev1.PersistentVolumeClaim) {
		c.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce, corev1.ReadOnlyMany}
		c.Spec.VolumeMode = new(corev1.PersistentVolumeBlock)
		c.Spec.VolumeAttributesClassName = new("gold")
	})
	action, err := binding.NextForClaim(claim, proving(knowing(claim, class), ownKey), hooked())
	require.NoError(t, err)
	require.Equal(t, binding.RunProvisioner, action.Kind)

	assert.Equal(t, own, action.Hook)
	assert.Equal(t, claim, action.Request.Claim)
	assert.Equal(t, class, action.Request.Class, "with parameters and allowedTopologies")
	assert.Equal(t, "n1", action.Request.Node, "the selected node")
	want := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "pvc-uid-1", Annotations: map[string]string{boundBy: "yes", provisionedBy: own}}}
	want.Spec = corev1.PersistentVolumeSpec{
		Capacity: storage("10Gi"), AccessModes: claim.Spec.AccessModes, StorageClassName: "fast", MountOptions: []string{"noatime"},
		PersistentVolumeReclaimPolicy: corev1.PersistentVolumeReclaimRetain, VolumeMode: new(corev1.PersistentVolumeBlock), VolumeAttributesClassName: new("gold"),
		ClaimRef: &corev1.ObjectReference{Kind: "PersistentVolumeClaim", APIVersion: "v1", Namespace: "default", Name: "data", UID: "uid-1", ResourceVersion: "7"},
	}
	assert.Equal(t, want, action.Request.Volume, "all but a source")
}

// TestP2WhatIsStored has a provisioner change all that it must not, and some that it may.
func TestP2WhatIsStored(t *testing.T) {
	for _, policy := range []corev1.PersistentVolumeReclaimPolicy{"", corev1.PersistentVolumeReclaimDelete, corev1.PersistentVolumeReclaimRetain} {
		t.Run(fmt.Sprintf("P2 R6 policy %q", policy), func(t *testing.T) {
			class := classOf("fast", own, func(c *storagev1.StorageClass) {
				if policy != "" {
					c.ReclaimPolicy = &policy
				}
			})
			answer := madeVolume(sized("12Gi"), refersToOther, ofClass("slow"), withPolicy("Burn"), labelled("disk", "ssd"), inPhase(corev1.VolumeFailed),
				volumeNote("path", "/x"), volumeNote(provisionedBy, "me"), volumeFinalizers("theirs"), func(v *corev1.PersistentVolume) {
					v.UID, v.ResourceVersion = "mine", "3"
					v.Spec.AccessModes = append(v.Spec.AccessModes, corev1.ReadOnlyMany)
					v.Spec.MountOptions = []string{"ro"}
					v.Spec.VolumeAttributesClassName = new("lead")
				})
			claim := provisioningClaim()
			known := answering(proving(knowing(claim, class), ownKey), made(answer))

			action, err := binding.NextForClaim(claim, known, hooked())

			require.NoError(t, err)
			require.Equal(t, binding.CreateVolume, action.Kind)
			want := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{
				Name: "pvc-uid-1", Labels: map[string]string{"disk": "ssd"}, Finalizers: []string{"theirs", inTreeFinalizer},
				Annotations: map[string]string{boundBy: "yes", provisionedBy: own, "path": "/x"},
			}}
			want.Spec = corev1.PersistentVolumeSpec{
				Capacity: storage("12Gi"), AccessModes: answer.Spec.AccessModes, StorageClassName: "fast", MountOptions: []string{"ro"},
				PersistentVolumeReclaimPolicy: corev1.PersistentVolumeReclaimDelete, PersistentVolumeSource: answer.Spec.PersistentVolumeSource,
				ClaimRef: &corev1.ObjectReference{Kind: "PersistentVolumeClaim", APIVersion: "v1", Namespace: "default", Name: "data", UID: "uid-1", ResourceVersion: "7"},
			}
			if policy == corev1.PersistentVolumeReclaimRetain {
				want.Finalizers, want.Spec.PersistentVolumeReclaimPolicy = []string{"theirs"}, policy
			}
			assert.Equal(t, want, action.Volume)
		})
	}
}

// A provisioner that makes the volume from nothing, and not from the one it was given, does not lose what the class says.
func TestP2MountOptionsOfTheClass(t *testing.T) {
	class := classOf("fast", own, func(c *storagev1.StorageClass) { c.MountOptions = []string{"noatime"} })
	claim := provisioningClaim()
	action, err := binding.NextForClaim(claim, answering(proving(knowing(claim, class), ownKey), made(madeVolume())), hooked())
	require.NoError(t, err)
	require.Equal(t, binding.CreateVolume, action.Kind)
	assert.Equal(t, []string{"noatime"}, action.Volume.Spec.MountOptions)
}

func TestP2WhatItMadeIsStored(t *testing.T) {
	fast := knowing(classOf("fast", own))
	absent := proving(fast, ownKey)
	fails := notStored(errBroken)
	runDecisions(t, []decision{
		{name: "P2 made", claim: provisioningClaim(), known: answering(absent, made(madeVolume())), rules: hooked(), want: createsOwn, events: []string{succeeded}},
		{name: "P2 X6 what is stored shares nothing with claim and class", claim: provisioningClaim(func(c *corev1.PersistentVolumeClaim) { c.Spec.VolumeAttributesClassName = new("gold") }),
			known: answering(proving(knowing(classOf("fast", own, func(c *storagev1.StorageClass) { c.MountOptions = []string{"noatime"} })), ownKey), made(madeVolume())), rules: hooked(), want: createsOwn, events: []string{succeeded}},
		{name: "P2 made larger", claim: provisioningClaim(), known: answering(absent, made(madeVolume(sized("11Gi")))), rules: hooked(), want: createsOwn, events: []string{succeeded}},
		{name: "P2 made, and no proof that there is no such volume is needed to try", claim: provisioningClaim(), known: answering(fast, made(madeVolume())), rules: hooked(), want: createsOwn, events: []string{succeeded}},
		{name: "P2 the last answer counts", claim: provisioningClaim(), known: answering(absent, notMade(errBroken), made(madeVolume())), rules: hooked(), want: createsOwn, events: []string{succeeded}},
		{name: "P2 made, and a volume of that name is in the cache: a live read", claim: provisioningClaim(), known: answering(knowing(classOf("fast", own), knownVolume(ownKey.Name, refersToOther)), made(madeVolume())), rules: hooked(), want: readsOwn},
		{name: "P2 made, and a volume that fits came meanwhile: C1", claim: provisioningClaim(), known: answering(proving(knowing(classOf("fast", own), knownVolume("a", ofClass("fast"))), ownKey), made(madeVolume())), rules: hooked(),
			want: "B1 UpdateVolume pv/a: spec.claimRef={default/data uid-1} +annotation " + boundBy},
		{name: "P1 made, and the class is gone", claim: provisioningClaim(), known: answering(proving(knowing(), ownKey), made(madeVolume())), rules: hooked(), want: "P1 Wait", events: []string{failedOwn}},
		{name: "P2 made, and deleted again since, as when the class had another provisioner meanwhile: not stored", claim: provisioningClaim(),
			known: answering(absent, made(madeVolume()), deletedAgain(nil)), rules: hooked(), want: "P2 Wait", retry: binding.RetryBackoff},
		{name: "P2 not stored once: again", claim: provisioningClaim(), known: answering(absent, made(madeVolume()), fails), rules: hooked(), want: createsOwn, events: []string{succeeded}},
		{name: "P2 not stored twice: again", claim: provisioningClaim(), known: answering(absent, made(madeVolume()), fails, fails), rules: hooked(), want: createsOwn, events: []string{succeeded}},
		{name: "P2 not stored three times: a live read before it is deleted again", claim: provisioningClaim(), known: answering(fast, made(madeVolume()), fails, fails, fails), rules: hooked(), want: readsOwn},
		{name: "P2 not stored three times: deleted again", claim: provisioningClaim(), known: answering(absent, made(madeVolume()), fails, fails, fails), rules: hooked(), want: deletesOwn, says: []string{"could not be stored", "the disk is broken"}},
		{name: "P2 not stored, but there it is: B2", claim: provisioningClaim(), known: answering(proving(knowing(classOf("fast", own), knownVolume(ownKey.Name, ofClass("fast"), held, inPhase(corev1.VolumePending))), ownKey), made(madeVolume()), fails, fails, fails), rules: hooked(),
			want: "B2 UpdateVolumeStatus pv/pvc-uid-1: status.phase=Bound"},
		{name: "P2 W6 deleted again: later", claim: provisioningClaim(), known: answering(absent, made(madeVolume()), fails, fails, fails, deletedAgain(nil)), rules: hooked(), want: "P2 Wait", events: []string{failedOwn}, says: []string{"could not be stored", "the disk is broken"}, retry: binding.RetryBackoff},
		{name: "P2 W6 it cannot be deleted again", claim: provisioningClaim(), known: answering(absent, made(madeVolume()), fails, fails, fails, deletedAgain(errors.New("busy"))), rules: hooked(), want: "P2 Wait", events: []string{failedOwn, cleanupOf}, retry: binding.RetryBackoff},
		{name: "P2 the node stays, which is not to blame", claim: provisioningClaim(placedOn("n1")), known: answering(absent, made(madeVolume()), fails, fails, fails, deletedAgain(nil)), rules: hooked(), want: "P2 Wait", events: []string{failedOwn}, retry: binding.RetryBackoff},
	})
}

func TestP2ABadAnswer(t *testing.T) {
	fast := knowing(classOf("fast", own))
	absent := proving(fast, ownKey)
	block := func(v *corev1.PersistentVolume) { v.Spec.VolumeMode = new(corev1.PersistentVolumeBlock) }
	sourceless := func(v *corev1.PersistentVolume) { v.Spec.PersistentVolumeSource = corev1.PersistentVolumeSource{} }
	modes := func(modes ...corev1.PersistentVolumeAccessMode) volumeEdit {
		return func(v *corev1.PersistentVolume) { v.Spec.AccessModes = modes }
	}
	called := func(name string) volumeEdit { return func(v *corev1.PersistentVolume) { v.Name = name } }
	for name, bad := range map[string]struct {
		made *corev1.PersistentVolume
		says string
	}{
		"nil":               {nil, "returned no volume"},
		"M3 too small":      {madeVolume(sized("9Gi")), "10Gi"},
		"M4 not its modes":  {madeVolume(modes(corev1.ReadOnlyMany)), "asks RWO, has ROX"},
		"no modes":          {madeVolume(modes()), "asks RWO"},
		"M5 volume mode":    {madeVolume(block), "Block"},
		"another name":      {madeVolume(called("mine")), `"mine"`},
		"no name":           {madeVolume(called("")), `named the volume ""`},
		"no source":         {madeVolume(sourceless), "without a source"},
		"X7 no capacity":    {madeVolume(unsized), "spec.capacity[storage]"},
		"X7 negative":       {madeVolume(sized("-1")), "negative"},
		"X7 unknown mode":   {madeVolume(modes("RWO")), "spec.accessModes"},
		"X7 unknown volume": {madeVolume(func(v *corev1.PersistentVolume) { v.Spec.VolumeMode = new(corev1.PersistentVolumeMode("Tape")) }), "Tape"},
	} {
		says := []string{bad.says}
		runDecisions(t, []decision{
			{name: "P2 " + name + ": a live read first", claim: provisioningClaim(), known: answering(fast, made(bad.made)), rules: hooked(), want: readsOwn},
			{name: "P2 " + name + ": deleted again", claim: provisioningClaim(), known: answering(absent, made(bad.made)), rules: hooked(), want: deletesOwn, says: says},
			{name: "P2 " + name + ": reported", claim: provisioningClaim(), known: answering(absent, made(bad.made), deletedAgain(nil)), rules: hooked(), want: "P2 Wait", events: []string{failedOwn}, says: says, retry: binding.RetryBackoff},
			{name: "P2 " + name + ": the scheduler chooses again", claim: provisioningClaim(placedOn("n1")), known: answering(absent, made(bad.made), deletedAgain(nil)), rules: hooked(), want: leavesNode, events: []string{failedOwn}, says: says},
			{name: "P2 " + name + ": cleaning up failed", claim: provisioningClaim(), known: answering(absent, made(bad.made), deletedAgain(errBroken)), rules: hooked(), want: "P2 Wait", events: []string{failedOwn, cleanupOf}, retry: binding.RetryBackoff},
			{name: "P2 " + name + ": nobody cleans up", claim: provisioningClaim(claimFinalizers()), known: answering(absent, made(bad.made)), rules: hooked(withoutDeleters), want: "P2 Wait", events: []string{failedOwn, cleanupOf}, retry: binding.RetryBackoff},
			{name: "Rh " + name + ": cleaning up is in progress", claim: provisioningClaim(), known: answering(absent, made(bad.made), deletedAgain(inProgress(0))), rules: hooked(), want: "P2 Wait", events: []string{failedOwn}, says: says, retry: binding.RetryBackoff},
		})
	}
}

func TestP2WhoDeletesABadAnswerAgain(t *testing.T) {
	claim := provisioningClaim()
	for name, made := range map[string]binding.Answer{
		"nothing":      made(nil),
		"without name": made(madeVolume(func(v *corev1.PersistentVolume) { v.Name = "mine" })),
	} {
		t.Run("P2 "+name, func(t *testing.T) {
			action, err := binding.NextForClaim(claim, answering(proving(knowing(claim, classOf("fast", own)), ownKey), made), hooked())
			require.NoError(t, err)
			assert.Equal(t, "pvc-uid-1", action.Volume.Name, "the name that it was asked for")
			assert.Equal(t, claim.UID, action.Volume.Spec.ClaimRef.UID)
			assert.Equal(t, own, action.Volume.Annotations[provisionedBy])
			assert.Empty(t, action.Volume.UID, "it was never stored")
			if made.Volume != nil {
				assert.Equal(t, made.Volume.Spec.HostPath, action.Volume.Spec.HostPath, "with its source, if it has one")
			}
		})
	}
}

func TestP2AProvisionerThatFails(t *testing.T) {
	absent := proving(knowing(classOf("fast", own)), ownKey)
	broken := []string{"the disk is broken"}
	plain, placed := provisioningClaim(), provisioningClaim(placedOn("n1"))
	wrapped := fmt.Errorf("in short: %w", meaning(binding.HookRefused))
	runDecisions(t, []decision{
		{name: "P2 W6 it failed", claim: plain, known: answering(absent, notMade(errBroken)), rules: hooked(), want: "P2 Wait", events: []string{failedOwn}, says: broken, retry: binding.RetryBackoff},
		{name: "P2 it failed on a node", claim: placed, known: answering(absent, notMade(errBroken)), rules: hooked(), want: leavesNode, events: []string{failedOwn}, says: broken},
		{name: "P2 even one without a name", claim: provisioningClaim(placedOn("")), known: answering(absent, notMade(errBroken)), rules: hooked(), want: leavesNode, events: []string{failedOwn}, says: broken},
		{name: "Rh P2 W6 a HookError without a meaning", claim: plain, known: answering(absent, notMade(meaning(binding.HookFailed))), rules: hooked(), want: "P2 Wait", events: []string{failedOwn}, says: broken, retry: binding.RetryBackoff},
		{name: "Rh P2 refused for good", claim: plain, known: answering(absent, notMade(meaning(binding.HookRefused))), rules: hooked(), want: "P2 Wait", events: []string{failedOwn}, says: broken},
		{name: "Rh P2 refused for good, wrapped", claim: plain, known: answering(absent, notMade(wrapped)), rules: hooked(), want: "P2 Wait", events: []string{failedOwn}, says: []string{"in short: the disk is broken"}},
		{name: "Rh P2 refused for good on a node: it stays, for another would be refused too", claim: placed, known: answering(absent, notMade(meaning(binding.HookRefused))), rules: hooked(), want: "P2 Wait", events: []string{failedOwn}, says: broken},
		{name: "Rh W6 in progress", claim: plain, known: answering(absent, notMade(inProgress(0))), rules: hooked(), want: "Rh Wait", retry: binding.RetryBackoff},
		{name: "Rh in progress: ask again after d", claim: plain, known: answering(absent, notMade(inProgress(time.Minute))), rules: hooked(), want: "Rh Wait", retry: binding.RetryAfter},
		{name: "Rh in progress on a node: it stays", claim: placed, known: answering(absent, notMade(inProgress(time.Minute))), rules: hooked(), want: "Rh Wait", retry: binding.RetryAfter},
		{name: "Rh in use means nothing to a provisioner", claim: plain, known: answering(absent, notMade(meaning(binding.HookInUse))), rules: hooked(), want: "P2 Wait", events: []string{failedOwn}, says: broken, retry: binding.RetryBackoff},
		{name: "P2 C12 it failed, and the claim is being deleted: what it may have made is deleted", claim: provisioningClaim(claimBeingDeleted), known: answering(absent, notMade(errBroken)), rules: hooked(), want: deletesOwn},
	})
}

func TestRhWhatAHookErrorSays(t *testing.T) {
	assert.Equal(t, "the disk is broken", meaning(binding.HookInUse).Error(), "Rh its cause")
	assert.Equal(t, "InProgress", inProgress(0).Error(), "Rh its meaning if there is no cause")
	assert.ErrorIs(t, meaning(binding.HookRefused), errBroken, "Rh")
	claim := provisioningClaim()
	action, err := binding.NextForClaim(claim, answering(proving(knowing(claim, classOf("fast", own)), ownKey), notMade(inProgress(time.Minute))), hooked())
	require.NoError(t, err)
	assert.Equal(t, time.Minute, action.After, "Rh after d")
}
