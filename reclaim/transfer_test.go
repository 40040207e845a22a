package reclaim

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/pvbind/pvbind/binding/obj"
)

func toArchive() *corev1.PersistentVolumeClaim {
	claim := &corev1.PersistentVolumeClaim{}
	claim.Namespace, claim.Name = "archive", "data"
	return claim
}

// recorded is a volume under transfer from shop/data to archive/data that had the policy Delete.
func recorded(v *corev1.PersistentVolume) {
	record := transferRecord{From: oldClaim, Policy: "Delete", Volume: "uid-1", To: claimToCreate(toArchive(), boundClaim(), "pv-1")}
	text, _ := json.Marshal(record)
	v.Annotations[TransferAnnotation] = string(text)
}

var oldClaim = corev1.ObjectReference{Namespace: "shop", Name: "data", UID: "old"}

func boundTo(claim *corev1.PersistentVolumeClaim) volumeEdit {
	return func(v *corev1.PersistentVolume) {
		v.Spec.ClaimRef = &corev1.ObjectReference{Namespace: claim.Namespace, Name: claim.Name, UID: claim.UID}
	}
}

func announcing(announcement Announcement) volumeEdit {
	return func(v *corev1.PersistentVolume) { Announce(v, announcement) }
}

func naming(c *corev1.PersistentVolumeClaim) { c.Spec.VolumeName = "pv-1" }

func lost(c *corev1.PersistentVolumeClaim) { c.Status.Phase = corev1.ClaimLost }

// lacking is what is known but for one answer.
func lacking(known Known, read obj.Key) Known {
	var rest []obj.Key
	for _, missing := range known.Missing {
		if missing != read {
			rest = append(rest, missing)
		}
	}
	known.Missing = rest
	return known
}

var boundAt = at(corev1.VolumeBound)

func TestNextTransfer(t *testing.T) {
	heir := fitting("archive", "data", bound("pv-1"))
	arrived := []volumeEdit{recorded, boundTo(heir), boundAt}
	preBound := func(v *corev1.PersistentVolume) {
		preBoundTo("archive", "data")(v)
		delete(v.Annotations, "pv.kubernetes.io/bound-by-controller")
	}
	byController := func(v *corev1.PersistentVolume) { v.Annotations["pv.kubernetes.io/bound-by-controller"] = "" }
	transfer := Transfer{Volume: "pv-1", To: toArchive()}
	inFull := Transfer{Volume: "pv-1", To: fitting("archive", "data")}
	elsewhere := Transfer{Volume: "pv-1", To: fitting("archive", "new")}
	slip := func(v *corev1.PersistentVolume) { v.Spec.ClaimRef.Name = "dtaa" }
	recordedSo := func(v *corev1.PersistentVolume) {
		v.Annotations[TransferAnnotation] = strings.Replace(v.Annotations[TransferAnnotation], `"name":"data"`, `"name":"dtaa"`, 1)
	}
	for _, test := range []struct {
		name      string
		transfer  Transfer
		volume    *corev1.PersistentVolume // nil: it was not read
		known     Known
		accepting []Risk
		want      string
	}{
		{"R7 begin: first the volume", transfer, nil, Known{}, nil, "Read pv/pv-1"},
		{"R7 begin: there is no such volume", transfer, nil, Known{Missing: []obj.Key{{Kind: obj.KindVolume, Name: "pv-1"}}}, nil, "Missing"},
		{"R7 begin: then its claim", transfer, released(boundAt), Known{}, nil, "Read pvc/shop/data"},
		{"R7 begin: then the pods", transfer, released(boundAt), Known{Claims: []*corev1.PersistentVolumeClaim{boundClaim()}}, nil, "Read pods/shop"},
		{"R7 begin: then the new claim", transfer, released(boundAt), lacking(knowing(boundClaim()), obj.ClaimKey("archive", "data")), nil, "Read pvc/archive/data"},
		{"R7 begin: the claim of that name had it: is it there", transfer, released(preBoundTo("archive", "data"), boundTo(heir)), Known{}, nil, "Read pvc/archive/data"},
		{"R7 begin: it is being bound to it", transfer, released(boundTo(heir), at(corev1.VolumePending)), knowing(heir), nil, "Taken"},
		{"R7 begin: it was an earlier one", transfer, released(boundTo(heir)), knowing(), nil, "Taken"},
		{"R7 arrive: somebody created one that does not fit", transfer, released(recorded, preBound), knowing(fitting("archive", "data", func(c *corev1.PersistentVolumeClaim) {
			c.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteMany}
		})), nil, "Unfit"},
		{"R7 finish: the claim had it, and the policy was changed: it is kept", transfer, released(recorded, boundTo(heir), under("Delete")), knowing(), nil, "UpdateVolume pv/pv-1"},
		{"R7 begin", transfer, released(boundAt, under("Delete")), knowing(boundClaim()), nil, "UpdateVolume pv/pv-1"},
		{"R7 begin: its claim is being deleted already", transfer, released(boundAt, under("Delete")), knowing(boundClaim(claimGoing)), nil, "UpdateVolume pv/pv-1"},
		{"R7 begin: the new claim waits for it", transfer, released(boundAt), knowing(boundClaim(), fitting("archive", "data", naming)), nil, "UpdateVolume pv/pv-1"},
		{"R7 begin: the claim is gone", inFull, released(), knowing(), nil, "UpdateVolume pv/pv-1"},
		{"R7 begin: the claim is gone, and another of its name runs", inFull, released(), knowing(fitting("shop", "data"), userOf("web")), nil, "UpdateVolume pv/pv-1"},
		{"R7 begin: pods use it", transfer, released(boundAt), knowing(boundClaim(), userOf("web")), nil, "InUse/PodsDisturbed"},
		{"R7 begin: pods use it, accepted", transfer, released(boundAt), knowing(boundClaim(), userOf("web")), []Risk{PodsDisturbed}, "UpdateVolume pv/pv-1"},
		{"R7 begin: all is read before it is rejected", transfer, released(boundAt), lacking(knowing(boundClaim(), userOf("web")), obj.ClaimKey("archive", "data")), nil, "Read pvc/archive/data"},
		{"R7 begin: it is being deleted", transfer, released(boundAt, volumeGoing), knowing(boundClaim()), nil, "Deleting"},
		{"R7 begin: it is being bound", transfer, released(), knowing(boundClaim(bound(""), func(c *corev1.PersistentVolumeClaim) { c.Annotations = nil })), nil, "Taken"},
		{"R7 M2 begin: it is being bound, and somebody wrote that it was", transfer, released(), knowing(boundClaim(bound(""), forged)), nil, "Taken"},
		{"R7 begin: the claim is gone, nothing to copy", transfer, released(), knowing(), nil, "Missing"},
		{"R7 begin: the claim is gone, Delete", inFull, released(under("Delete")), knowing(), nil, "PolicyDestroys/DataDestroyed"},
		{"R7 begin: nobody has it", transfer, released(unclaimed), knowing(), nil, "Missing"},
		{"R7 begin: it is pre-bound", transfer, released(preBound), knowing(), nil, "Missing"},
		{"R7 begin: the new claim may take another", transfer, released(boundAt), knowing(boundClaim(), fitting("archive", "data")), nil, "Taken"},
		{"R7 begin: the new claim has another", transfer, released(boundAt), knowing(boundClaim(), fitting("archive", "data", bound("pv-9"))), nil, "Taken"},
		{"R7 begin: the new claim is being deleted", transfer, released(boundAt), knowing(boundClaim(), fitting("archive", "data", naming, claimGoing)), nil, "Deleting"},
		{"R7 begin: the new claim does not fit", Transfer{Volume: "pv-1", To: fitting("archive", "data", func(c *corev1.PersistentVolumeClaim) {
			c.Spec.VolumeMode = new(corev1.PersistentVolumeBlock)
		})}, released(boundAt), knowing(boundClaim()), nil, "Unfit"},
		{"R7 begin: nowhere", Transfer{Volume: "pv-1", To: &corev1.PersistentVolumeClaim{}}, released(boundAt), knowing(), nil, "pvc//: metadata: a volume is transferred to a namespace and a name"},
		{"R7 begin: to the claim that had it", Transfer{Volume: "pv-1", To: fitting("shop", "data")}, released(), knowing(), nil, "Taken"},
		{"R7 to the claim that has it", Transfer{Volume: "pv-1", To: fitting("shop", "data")}, released(boundAt), knowing(boundClaim()), nil, "Done"},
		{"R7 nothing to finish", Transfer{Volume: "pv-1"}, released(boundAt), knowing(boundClaim()), nil, "Done"},

		{"R7 recorded: read the claim", Transfer{Volume: "pv-1"}, released(boundAt, recorded), Known{}, nil, "Read pvc/shop/data"},
		{"R7 recorded: read the pods", Transfer{Volume: "pv-1"}, released(boundAt, recorded), Known{Claims: []*corev1.PersistentVolumeClaim{boundClaim()}}, nil, "Read pods/shop"},
		{"R7 recorded: read the new claim", Transfer{Volume: "pv-1"}, released(boundAt, recorded), lacking(knowing(boundClaim()), obj.ClaimKey("archive", "data")), nil, "Read pvc/archive/data"},
		{"R7 recorded: delete the claim", Transfer{Volume: "pv-1"}, released(boundAt, recorded), knowing(boundClaim()), nil, "DeleteClaim pvc/shop/data"},
		{"R7 recorded: requested again", transfer, released(boundAt, recorded), knowing(boundClaim()), nil, "DeleteClaim pvc/shop/data"},
		{"R7 recorded: somewhere else is requested", elsewhere, released(boundAt, recorded), knowing(boundClaim()), nil, "Transferring"},
		{"R7 recorded: pods came", transfer, released(boundAt, recorded), knowing(boundClaim(), userOf("web")), nil, "InUse/PodsDisturbed"},
		{"R7 recorded: pods came, accepted", transfer, released(boundAt, recorded), knowing(boundClaim(), userOf("web")), []Risk{PodsDisturbed}, "DeleteClaim pvc/shop/data"},
		{"R7 recorded: the volume is being deleted", transfer, released(boundAt, recorded, volumeGoing), knowing(boundClaim()), nil, "Deleting"},
		{"R7 recorded: the new name is taken", transfer, released(boundAt, recorded), knowing(boundClaim(), fitting("archive", "data")), nil, "Taken"},
		{"R7 recorded: somebody changes the policy", transfer, released(boundAt, recorded, under("Delete")), knowing(boundClaim()), nil, "UpdateVolume pv/pv-1"},
		{"R7 recorded: the claim is on its way", transfer, released(boundAt, recorded), knowing(boundClaim(claimGoing)), nil, "Wait"},
		{"R7 M2 recorded: somebody freed it under the claim: list all claims", transfer, released(boundAt, recorded, unclaimed), knowing(boundClaim()), nil, "Read pvc"},
		{"R7 M2 recorded: somebody freed it under the claim", transfer, released(boundAt, recorded, unclaimed), listing(boundClaim()), nil, "Wait"},
		{"R7 M2 recorded: the claim is Lost and names it", transfer, released(boundAt, recorded, unclaimed), listing(boundClaim(lost)), nil, "Wait"},
		{"R7 M2 recorded: freed under the claim and another one", transfer, released(boundAt, recorded, unclaimed), listing(boundClaim(), fitting("shop", "other", bound("pv-1"))), []Risk{VolumeLost}, "Taken"},
		{"R7 M2 an old record, and a claim of the old name is Bound to it", transfer, released(boundAt, recorded, unclaimed), listing(fitting("shop", "data", bound("pv-1"))), nil, "ClaimLives/VolumeLost"},
		{"R7 M2 an old record, and another claim is Bound to it", transfer, released(boundAt, recorded, unclaimed), listing(fitting("shop", "other", bound("pv-1"))), nil, "ClaimLives/VolumeLost"},
		{"R7 M2 the same, with another policy, which stays", transfer, released(boundAt, recorded, unclaimed, under("Recycle")), listing(fitting("shop", "other", bound("pv-1"))), nil, "ClaimLives/VolumeLost"},
		{"R7 M2 the same, whose pods nobody listed", transfer, released(boundAt, recorded, unclaimed), listing(fitting("bank", "data", bound("pv-1"))), nil, "Read pods/bank"},
		{"R7 M2 the same, accepted", transfer, released(recorded, unclaimed), listing(fitting("shop", "other", bound("pv-1"))), []Risk{VolumeLost}, "UpdateVolume pv/pv-1"},
		{"R7 M2 an old record, and the new claim is Bound to it", transfer, released(boundAt, recorded, unclaimed), listing(heir), nil, "Wait"},
		{"R7 an old record, and somebody gave it away with another policy, which stays", transfer, released(recorded, preBoundTo("shop", "other"), under("Recycle")), knowing(), nil, "Taken"},

		{"R7 left: pre-bind it", transfer, released(recorded), knowing(), nil, "UpdateVolume pv/pv-1"},
		{"R7 left: pre-bind it, the controller has not seen it", transfer, released(recorded, boundAt), knowing(), nil, "UpdateVolume pv/pv-1"},
		{"R7 left: and pods use it", transfer, released(recorded), knowing(userOf("web")), nil, "InUse/PodsDisturbed"},
		{"R7 R4 left: and pods may use it since before its claim was created again", transfer, released(recorded), knowing(again(bound("pv-9")), userOf("web", onNode)), nil, "InUse/PodsDisturbed"},
		{"R7 R4 left: and pods of the one that was created again wait for a node", transfer, released(recorded), knowing(again(), userOf("web")), nil, "UpdateVolume pv/pv-1"},
		{"R7 left: and pods use it, accepted", transfer, released(recorded), knowing(userOf("web")), []Risk{PodsDisturbed}, "UpdateVolume pv/pv-1"},
		{"R7 left: and the pods were not read", transfer, released(recorded), Known{Missing: knowing().Missing}, nil, "Read pods/shop"},
		{"R7 left: another claim of the old name runs", transfer, released(recorded), knowing(fitting("shop", "data"), userOf("web")), nil, "UpdateVolume pv/pv-1"},
		{"R7 R3 begin: its claimRef has a slip, and the claim whose UID it has is Bound", inFull, released(slip), listing(boundClaim()), nil, "ClaimLives/VolumeLost"},
		{"R7 R3 left: its claimRef had a slip before", transfer, released(recorded, slip, recordedSo), listing(boundClaim()), nil, "ClaimLives/VolumeLost"},
		{"R7 R3 recorded: its claimRef has another UID", inFull, released(boundAt), knowing(boundClaim(func(c *corev1.PersistentVolumeClaim) { c.UID = "another" })), nil, "ClaimLives/VolumeLost"},
		{"R7 left: another claim of the old name", transfer, released(recorded), knowing(fitting("shop", "data")), nil, "UpdateVolume pv/pv-1"},
		{"R7 left: somebody freed it", transfer, released(recorded, unclaimed), listing(), nil, "UpdateVolume pv/pv-1"},
		{"R7 M2 left: somebody freed it, and a forged claim names it", transfer, released(recorded, unclaimed), listing(fitting("shop", "other", bound("pv-1"), forged)), nil, "UpdateVolume pv/pv-1"},
		{"R7 left: the old claim has another volume", transfer, released(recorded), knowing(boundClaim(bound("pv-9"))), nil, "UpdateVolume pv/pv-1"},
		{"R7 R8 left: its storage is deleted", transfer, released(recorded, announcing(Announcement{By: "a", Token: 1, Done: true})), knowing(), nil, "Wait"},
		{"R7 R8 recorded: it is about to be deleted", transfer, released(boundAt, recorded, announcing(Announcement{By: "a", Token: 1})), knowing(boundClaim()), nil, "Wait"},
		{"R7 R8 pre-bound: its storage is deleted", transfer, released(recorded, preBound, volumeGoing, announcing(Announcement{By: "a", Token: 1, Done: true})), knowing(), nil, "Wait"},
		{"R7 left: somebody gave it away", transfer, released(recorded, preBoundTo("shop", "other")), knowing(), nil, "Taken"},

		{"R7 pre-bound: read the new claim", transfer, released(recorded, preBound), Known{}, nil, "Read pvc/archive/data"},
		{"R7 pre-bound: create the claim", transfer, released(recorded, preBound), knowing(), nil, "CreateClaim pvc/archive/data"},
		{"R7 pre-bound: the volume is being deleted", transfer, released(recorded, preBound, volumeGoing), knowing(), nil, "Deleting"},
		{"R7 pre-bound: the volume is being deleted, and the claim waits", transfer, released(recorded, preBound, volumeGoing), knowing(fitting("archive", "data")), nil, "Deleting"},
		{"R7 pre-bound: it is there", transfer, released(recorded, preBound), knowing(fitting("archive", "data", naming)), nil, "Wait"},
		{"R7 pre-bound: the volume was read before it was bound", transfer, released(recorded, preBound), knowing(heir), nil, "Wait"},
		{"R7 pre-bound: it is being deleted", transfer, released(recorded, preBound), knowing(fitting("archive", "data", claimGoing)), nil, "Wait"},
		{"R7 pre-bound: it has another volume", transfer, released(recorded, preBound), knowing(fitting("archive", "data", bound("pv-9"))), nil, "Taken"},
		{"R7 pre-bound: it is lost", transfer, released(recorded, preBound), knowing(fitting("archive", "data", bound("pv-1"), lost)), nil, "Taken"},
		{"R7 V4 pre-bound: by a controller, it seems", transfer, released(recorded, preBound, byController), knowing(), nil, "UpdateVolume pv/pv-1"},

		{"R7 arrived: read the new claim", transfer, released(arrived...), Known{}, nil, "Read pvc/archive/data"},
		{"R7 arrived: not Bound", transfer, released(append(arrived, at(corev1.VolumeAvailable))...), knowing(heir), nil, "Wait"},
		{"R7 arrived: the claim not Bound", transfer, released(arrived...), knowing(fitting("archive", "data", naming)), nil, "Wait"},
		{"R7 arrived", transfer, released(arrived...), knowing(heir), nil, "UpdateVolume pv/pv-1"},
		{"R7 arrived: the claim is being deleted", transfer, released(arrived...), knowing(fitting("archive", "data", bound("pv-1"), claimGoing)), nil, "Wait"},
		{"R7 arrived: the claim is gone", transfer, released(arrived...), knowing(), nil, "Missing"},
		{"R7 arrived: it is another claim", transfer, released(append(arrived, boundTo(fitting("archive", "data", func(c *corev1.PersistentVolumeClaim) { c.UID = "newer" })))...), knowing(heir), nil, "Missing"},
		{"R7 done", transfer, released(boundTo(heir), boundAt), knowing(heir), nil, "Done"},
	} {
		t.Run(test.name, func(t *testing.T) {
			if test.volume != nil {
				test.known.Volumes = []*corev1.PersistentVolume{test.volume}
			}
			before, given := test.volume.DeepCopy(), test.transfer.To.DeepCopy()
			var claims []*corev1.PersistentVolumeClaim
			for _, claim := range test.known.Claims {
				claims = append(claims, claim.DeepCopy())
			}
			step, err := NextTransfer(test.transfer, test.known, test.accepting...)
			got := stepInShort(step)
			if err != nil {
				got = verdict(t, nil, err)
			}
			assert.Equal(t, test.want, got, "%s %v", step, err)
			assert.Equal(t, before, test.volume, "X6")
			assert.Equal(t, given, test.transfer.To, "X6")
			assert.Equal(t, claims, test.known.Claims, "X6")
		})
	}
}

func stepInShort(step Step) string {
	text := step.String()
	return text[:len(text)-len(": "+step.Why)]
}

// TestTheWritesOfATransfer compares what each write of a transfer has in it.
func TestTheWritesOfATransfer(t *testing.T) {
	next := func(volume *corev1.PersistentVolume, known Known) Step {
		t.Helper()
		known.Volumes = []*corev1.PersistentVolume{volume}
		step, err := NextTransfer(Transfer{Volume: "pv-1", To: toArchive()}, known)
		require.NoError(t, err)
		return step
	}
	source := boundClaim(func(c *corev1.PersistentVolumeClaim) {
		c.Labels = map[string]string{"app": "shop"}
		c.Finalizers = []string{ClaimProtection}
		c.Annotations["team"] = "orders"
		c.Annotations["volume.kubernetes.io/selected-node"] = "node-1"
		c.Annotations["volume.beta.kubernetes.io/storage-class"] = "fast"
		c.Spec.DataSource = &corev1.TypedLocalObjectReference{Kind: "VolumeSnapshot", Name: "yesterday"}
		c.Spec.DataSourceRef = &corev1.TypedObjectReference{Kind: "VolumeSnapshot", Name: "yesterday"}
	})

	begun := next(released(boundAt, under("Delete")), knowing(source)).Volume
	assert.Equal(t, corev1.PersistentVolumeReclaimRetain, begun.Spec.PersistentVolumeReclaimPolicy, "its policy is Retain")
	assert.Equal(t, "old", string(begun.Spec.ClaimRef.UID), "it stays bound to its claim")
	record, err := recordOf(begun)
	require.NoError(t, err)
	assert.Equal(t, oldClaim, record.From)
	assert.Equal(t, corev1.PersistentVolumeReclaimDelete, record.Policy)

	deletes := next(begun, knowing(source))
	assert.Equal(t, source.UID, *deletes.Preconditions.UID)
	assert.Equal(t, source.ResourceVersion, *deletes.Preconditions.ResourceVersion)
	assert.Equal(t, []Warning{{DataDisclosed, "the new claim can read what shop/data left on it"}}, deletes.Warnings)

	preBound := next(begun, knowing()).Volume
	assert.Equal(t, &corev1.ObjectReference{Kind: "PersistentVolumeClaim", APIVersion: "v1", Namespace: "archive", Name: "data"}, preBound.Spec.ClaimRef)
	assert.NotContains(t, preBound.Annotations, "pv.kubernetes.io/bound-by-controller", "V4")
	assert.Contains(t, preBound.Annotations, TransferAnnotation)

	created := next(preBound, knowing()).Claim
	assert.Equal(t, map[string]string{"app": "shop"}, created.Labels)
	assert.Equal(t, map[string]string{"team": "orders"}, created.Annotations)
	assert.Empty(t, created.UID)
	assert.Empty(t, created.ResourceVersion)
	assert.Empty(t, created.Finalizers)
	assert.Equal(t, corev1.PersistentVolumeClaimStatus{}, created.Status)
	want := source.DeepCopy().Spec
	want.DataSource, want.DataSourceRef, want.StorageClassName = nil, nil, new("fast")
	assert.Equal(t, want.VolumeName, created.Spec.VolumeName)
	assert.True(t, want.Resources.Requests.Storage().Equal(*created.Spec.Resources.Requests.Storage()))
	want.Resources, created.Spec.Resources = corev1.VolumeResourceRequirements{}, corev1.VolumeResourceRequirements{}
	assert.Equal(t, want, created.Spec)

	created.UID = "new"
	bound("pv-1")(created)
	stale := preBound.DeepCopy()
	stale.Annotations[TransferAnnotation] = begun.Annotations[TransferAnnotation]
	preBound.Spec.ClaimRef.UID, preBound.Status.Phase = "new", corev1.VolumeBound
	byController, changed := preBound.DeepCopy(), preBound.DeepCopy()
	byController.Annotations["pv.kubernetes.io/bound-by-controller"] = "yes"
	changed.Spec.PersistentVolumeReclaimPolicy = corev1.PersistentVolumeReclaimRecycle
	stale.Spec.ClaimRef.UID, stale.Status.Phase = "new", corev1.VolumeBound
	for why, c := range map[string]struct {
		volume *corev1.PersistentVolume
		want   corev1.PersistentVolumeReclaimPolicy
	}{
		"an old record: the transfer did not pre-bind it": {stale, corev1.PersistentVolumeReclaimRetain},
		"somebody freed it, and it was bound another way": {byController, corev1.PersistentVolumeReclaimRetain},
		"somebody gave it another policy":                 {changed, corev1.PersistentVolumeReclaimRecycle},
	} {
		kept := next(c.volume, knowing(created)).Volume
		assert.Equal(t, c.want, kept.Spec.PersistentVolumeReclaimPolicy, why)
		assert.NotContains(t, kept.Annotations, TransferAnnotation, why)
	}
	ended := next(preBound, knowing(created)).Volume
	assert.Equal(t, corev1.PersistentVolumeReclaimDelete, ended.Spec.PersistentVolumeReclaimPolicy)
	assert.Equal(t, map[string]string{"team": "orders"}, ended.Annotations)
}

// A claim that is given in full is created as it is given, but for what would keep it from the volume.
func TestTransferToAClaimInFull(t *testing.T) {
	given := fitting("archive", "data", func(c *corev1.PersistentVolumeClaim) {
		c.Spec.StorageClassName = new("slow")
		c.Labels = map[string]string{"app": "archive"}
	})
	heir := claimToCreate(given, boundClaim(), "pv-1")
	assert.Equal(t, "slow", *heir.Spec.StorageClassName)
	assert.Equal(t, given.Labels, heir.Labels)
	assert.Equal(t, "pv-1", heir.Spec.VolumeName)
	assert.Empty(t, heir.UID)
	assert.Empty(t, given.Spec.VolumeName, "X6")
}

func TestX7MalformedRecords(t *testing.T) {
	for _, text := range []string{"", "{", "[]", "{}", `{"from":{"uid":"old"},"to":{},"reclaimPolicy":"Delete"}`} {
		volume := released(func(v *corev1.PersistentVolume) { v.Annotations[TransferAnnotation] = text })
		_, err := NextTransfer(Transfer{Volume: "pv-1"}, Known{Volumes: []*corev1.PersistentVolume{volume}})
		assert.ErrorContains(t, err, "pv/pv-1: metadata.annotations[pvbind.github.io/transfer]: ", "%q", text)
	}
	restored := released(recorded, func(v *corev1.PersistentVolume) { v.UID = "uid-2" })
	_, err := NextTransfer(Transfer{Volume: "pv-1"}, Known{Volumes: []*corev1.PersistentVolume{restored}})
	assert.ErrorContains(t, err, `for a volume with UID "uid-1", and this one has UID "uid-2"`)
}
