package reclaim

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
)

func toArchive() *corev1.PersistentVolumeClaim {
	claim := &corev1.PersistentVolumeClaim{}
	claim.Namespace, claim.Name = "archive", "data"
	return claim
}

// noted is a volume that moves from shop/data to archive/data and had the policy Delete.
func noted(v *corev1.PersistentVolume) {
	note := moveNote{From: moveSource{"shop", "data", "old"}, Policy: "Delete", Volume: "uid-1", To: successor(toArchive(), holder(), "pv-1")}
	text, _ := json.Marshal(note)
	v.Annotations[MoveAnnotation] = string(text)
}

func heldBy(claim *corev1.PersistentVolumeClaim) volumeEdit {
	return func(v *corev1.PersistentVolume) {
		v.Spec.ClaimRef = &corev1.ObjectReference{Namespace: claim.Namespace, Name: claim.Name, UID: claim.UID}
	}
}

func naming(c *corev1.PersistentVolumeClaim) { c.Spec.VolumeName = "pv-1" }

func lost(c *corev1.PersistentVolumeClaim) { c.Status.Phase = corev1.ClaimLost }

// lacking is what is known but for one answer.
func lacking(known Known, read Read) Known {
	var rest []Read
	for _, missing := range known.Missing {
		if missing != read {
			rest = append(rest, missing)
		}
	}
	known.Missing = rest
	return known
}

var boundAt = at(corev1.VolumeBound)

func TestNextMove(t *testing.T) {
	heir := asking("archive", "data", bound("pv-1"))
	arrived := []volumeEdit{noted, heldBy(heir), boundAt}
	setAside := func(v *corev1.PersistentVolume) {
		setAsideFor("archive", "data")(v)
		delete(v.Annotations, "pv.kubernetes.io/bound-by-controller")
	}
	byController := func(v *corev1.PersistentVolume) { v.Annotations["pv.kubernetes.io/bound-by-controller"] = "" }
	moving := Move{Volume: "pv-1", To: toArchive()}
	inFull := Move{Volume: "pv-1", To: asking("archive", "data")}
	elsewhere := Move{Volume: "pv-1", To: asking("archive", "new")}
	for _, test := range []struct {
		name      string
		move      Move
		volume    *corev1.PersistentVolume // nil: it was not read
		known     Known
		accepting []Risk
		want      string
	}{
		{"R7 begin: first the volume", moving, nil, Known{}, nil, "Read pv/pv-1"},
		{"R7 begin: there is no such volume", moving, nil, Known{Missing: []Read{{Kind: ReadVolume, Name: "pv-1"}}}, nil, "Missing"},
		{"R7 begin: then its claim", moving, released(boundAt), Known{}, nil, "Read pvc/shop/data"},
		{"R7 begin: then the pods", moving, released(boundAt), Known{Claims: []*corev1.PersistentVolumeClaim{holder()}}, nil, "Read pods/shop"},
		{"R7 begin: then the new claim", moving, released(boundAt), lacking(knowing(holder()), Read{ReadClaim, "archive", "data"}), nil, "Read pvc/archive/data"},
		{"R7 begin: the claim of that name had it: is it there", moving, released(setAsideFor("archive", "data"), heldBy(heir)), Known{}, nil, "Read pvc/archive/data"},
		{"R7 begin: it is being bound to it", moving, released(heldBy(heir), at(corev1.VolumePending)), knowing(heir), nil, "Taken"},
		{"R7 begin: it was an earlier one", moving, released(heldBy(heir)), knowing(), nil, "Taken"},
		{"R7 arrive: somebody created one that does not fit", moving, released(noted, setAside), knowing(asking("archive", "data", func(c *corev1.PersistentVolumeClaim) {
			c.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteMany}
		})), nil, "Unfit"},
		{"R7 finish: the claim had it, and the policy was changed: it is kept", moving, released(noted, heldBy(heir), under("Delete")), knowing(), nil, "UpdateVolume pv/pv-1"},
		{"R7 begin", moving, released(boundAt, under("Delete")), knowing(holder()), nil, "UpdateVolume pv/pv-1"},
		{"R7 begin: its claim is being deleted already", moving, released(boundAt, under("Delete")), knowing(holder(claimGoing)), nil, "UpdateVolume pv/pv-1"},
		{"R7 begin: the new claim waits for it", moving, released(boundAt), knowing(holder(), asking("archive", "data", naming)), nil, "UpdateVolume pv/pv-1"},
		{"R7 begin: the claim is gone", inFull, released(), knowing(), nil, "UpdateVolume pv/pv-1"},
		{"R7 begin: the claim is gone, and another of its name runs", inFull, released(), knowing(asking("shop", "data"), userOf("web")), nil, "UpdateVolume pv/pv-1"},
		{"R7 begin: pods use it", moving, released(boundAt), knowing(holder(), userOf("web")), nil, "InUse/PodsDisturbed"},
		{"R7 begin: pods use it, accepted", moving, released(boundAt), knowing(holder(), userOf("web")), []Risk{PodsDisturbed}, "UpdateVolume pv/pv-1"},
		{"R7 begin: all is read before it refuses", moving, released(boundAt), lacking(knowing(holder(), userOf("web")), Read{ReadClaim, "archive", "data"}), nil, "Read pvc/archive/data"},
		{"R7 begin: it is being deleted", moving, released(boundAt, volumeGoing), knowing(holder()), nil, "Deleting"},
		{"R7 begin: it is being bound", moving, released(), knowing(holder(bound(""), func(c *corev1.PersistentVolumeClaim) { c.Annotations = nil })), nil, "Taken"},
		{"R7 M2 begin: it is being bound, and somebody wrote that it was", moving, released(), knowing(holder(bound(""), forged)), nil, "Taken"},
		{"R7 begin: the claim is gone, nothing to copy", moving, released(), knowing(), nil, "Missing"},
		{"R7 begin: the claim is gone, Delete", inFull, released(under("Delete")), knowing(), nil, "PolicyDestroys/DataDestroyed"},
		{"R7 begin: nobody has it", moving, released(unclaimed), knowing(), nil, "Missing"},
		{"R7 begin: it is set aside", moving, released(setAside), knowing(), nil, "Missing"},
		{"R7 begin: the new claim may take another", moving, released(boundAt), knowing(holder(), asking("archive", "data")), nil, "Taken"},
		{"R7 begin: the new claim has another", moving, released(boundAt), knowing(holder(), asking("archive", "data", bound("pv-9"))), nil, "Taken"},
		{"R7 begin: the new claim is being deleted", moving, released(boundAt), knowing(holder(), asking("archive", "data", naming, claimGoing)), nil, "Deleting"},
		{"R7 begin: the new claim does not fit", Move{Volume: "pv-1", To: asking("archive", "data", func(c *corev1.PersistentVolumeClaim) {
			c.Spec.VolumeMode = new(corev1.PersistentVolumeBlock)
		})}, released(boundAt), knowing(holder()), nil, "Unfit"},
		{"R7 begin: nowhere", Move{Volume: "pv-1", To: &corev1.PersistentVolumeClaim{}}, released(boundAt), knowing(), nil, "pvc//: metadata: a volume is moved to a namespace and a name"},
		{"R7 begin: to the claim that had it", Move{Volume: "pv-1", To: asking("shop", "data")}, released(), knowing(), nil, "Taken"},
		{"R7 to the claim that has it", Move{Volume: "pv-1", To: asking("shop", "data")}, released(boundAt), knowing(holder()), nil, "Done"},
		{"R7 nothing to finish", Move{Volume: "pv-1"}, released(boundAt), knowing(holder()), nil, "Done"},

		{"R7 kept: read the claim", Move{Volume: "pv-1"}, released(boundAt, noted), Known{}, nil, "Read pvc/shop/data"},
		{"R7 kept: read the pods", Move{Volume: "pv-1"}, released(boundAt, noted), Known{Claims: []*corev1.PersistentVolumeClaim{holder()}}, nil, "Read pods/shop"},
		{"R7 kept: read the new claim", Move{Volume: "pv-1"}, released(boundAt, noted), lacking(knowing(holder()), Read{ReadClaim, "archive", "data"}), nil, "Read pvc/archive/data"},
		{"R7 kept: delete the claim", Move{Volume: "pv-1"}, released(boundAt, noted), knowing(holder()), nil, "DeleteClaim pvc/shop/data"},
		{"R7 kept: asked for again", moving, released(boundAt, noted), knowing(holder()), nil, "DeleteClaim pvc/shop/data"},
		{"R7 kept: somewhere else is asked for", elsewhere, released(boundAt, noted), knowing(holder()), nil, "Moving"},
		{"R7 kept: pods came", moving, released(boundAt, noted), knowing(holder(), userOf("web")), nil, "InUse/PodsDisturbed"},
		{"R7 kept: pods came, accepted", moving, released(boundAt, noted), knowing(holder(), userOf("web")), []Risk{PodsDisturbed}, "DeleteClaim pvc/shop/data"},
		{"R7 kept: the volume is being deleted", moving, released(boundAt, noted, volumeGoing), knowing(holder()), nil, "Deleting"},
		{"R7 kept: the new name is taken", moving, released(boundAt, noted), knowing(holder(), asking("archive", "data")), nil, "Taken"},
		{"R7 kept: somebody changes the policy", moving, released(boundAt, noted, under("Delete")), knowing(holder()), nil, "UpdateVolume pv/pv-1"},
		{"R7 kept: the claim is on its way", moving, released(boundAt, noted), knowing(holder(claimGoing)), nil, "Wait"},
		{"R7 M2 kept: somebody freed it under the claim: list all claims", moving, released(boundAt, noted, unclaimed), knowing(holder()), nil, "Read pvc"},
		{"R7 M2 kept: somebody freed it under the claim", moving, released(boundAt, noted, unclaimed), listing(holder()), nil, "Wait"},
		{"R7 M2 kept: the claim is Lost and names it", moving, released(boundAt, noted, unclaimed), listing(holder(lost)), nil, "Wait"},
		{"R7 M2 kept: freed under the claim and another one", moving, released(boundAt, noted, unclaimed), listing(holder(), asking("shop", "other", bound("pv-1"))), []Risk{ClaimLost}, "Taken"},
		{"R7 M2 an old note, and a claim of the old name is Bound to it", moving, released(boundAt, noted, unclaimed), listing(asking("shop", "data", bound("pv-1"))), nil, "ClaimLives/ClaimLost"},
		{"R7 M2 an old note, and another claim is Bound to it", moving, released(boundAt, noted, unclaimed), listing(asking("shop", "other", bound("pv-1"))), nil, "ClaimLives/ClaimLost"},
		{"R7 M2 the same, with another policy, which stays", moving, released(boundAt, noted, unclaimed, under("Recycle")), listing(asking("shop", "other", bound("pv-1"))), nil, "ClaimLives/ClaimLost"},
		{"R7 M2 the same, whose pods nobody listed", moving, released(boundAt, noted, unclaimed), listing(asking("bank", "data", bound("pv-1"))), nil, "Read pods/bank"},
		{"R7 M2 the same, accepted", moving, released(noted, unclaimed), listing(asking("shop", "other", bound("pv-1"))), []Risk{ClaimLost}, "UpdateVolume pv/pv-1"},
		{"R7 M2 an old note, and the new claim is Bound to it", moving, released(boundAt, noted, unclaimed), listing(heir), nil, "Wait"},
		{"R7 an old note, and somebody gave it away with another policy, which stays", moving, released(noted, setAsideFor("shop", "other"), under("Recycle")), knowing(), nil, "Taken"},

		{"R7 left: set it aside", moving, released(noted), knowing(), nil, "UpdateVolume pv/pv-1"},
		{"R7 left: set it aside, the controller has not seen it", moving, released(noted, boundAt), knowing(), nil, "UpdateVolume pv/pv-1"},
		{"R7 left: another claim of the old name", moving, released(noted), knowing(asking("shop", "data")), nil, "UpdateVolume pv/pv-1"},
		{"R7 left: somebody freed it", moving, released(noted, unclaimed), listing(), nil, "UpdateVolume pv/pv-1"},
		{"R7 M2 left: somebody freed it, and a forged claim names it", moving, released(noted, unclaimed), listing(asking("shop", "other", bound("pv-1"), forged)), nil, "UpdateVolume pv/pv-1"},
		{"R7 left: the old claim has another volume", moving, released(noted), knowing(holder(bound("pv-9"))), nil, "UpdateVolume pv/pv-1"},
		{"R7 left: somebody gave it away", moving, released(noted, setAsideFor("shop", "other")), knowing(), nil, "Taken"},

		{"R7 set aside: read the new claim", moving, released(noted, setAside), Known{}, nil, "Read pvc/archive/data"},
		{"R7 set aside: create the claim", moving, released(noted, setAside), knowing(), nil, "CreateClaim pvc/archive/data"},
		{"R7 set aside: it is there", moving, released(noted, setAside), knowing(asking("archive", "data", naming)), nil, "Wait"},
		{"R7 set aside: the volume was read before it was bound", moving, released(noted, setAside), knowing(heir), nil, "Wait"},
		{"R7 set aside: it is being deleted", moving, released(noted, setAside), knowing(asking("archive", "data", claimGoing)), nil, "Wait"},
		{"R7 set aside: it has another volume", moving, released(noted, setAside), knowing(asking("archive", "data", bound("pv-9"))), nil, "Taken"},
		{"R7 set aside: it is lost", moving, released(noted, setAside), knowing(asking("archive", "data", bound("pv-1"), lost)), nil, "Taken"},
		{"R7 V4 set aside: by a controller, it seems", moving, released(noted, setAside, byController), knowing(), nil, "UpdateVolume pv/pv-1"},

		{"R7 arrived: read the new claim", moving, released(arrived...), Known{}, nil, "Read pvc/archive/data"},
		{"R7 arrived: not Bound", moving, released(append(arrived, at(corev1.VolumeAvailable))...), knowing(heir), nil, "Wait"},
		{"R7 arrived: the claim not Bound", moving, released(arrived...), knowing(asking("archive", "data", naming)), nil, "Wait"},
		{"R7 arrived", moving, released(arrived...), knowing(heir), nil, "UpdateVolume pv/pv-1"},
		{"R7 arrived: the claim is being deleted", moving, released(arrived...), knowing(asking("archive", "data", bound("pv-1"), claimGoing)), nil, "Wait"},
		{"R7 arrived: the claim is gone", moving, released(arrived...), knowing(), nil, "Missing"},
		{"R7 arrived: it is another claim", moving, released(append(arrived, heldBy(asking("archive", "data", func(c *corev1.PersistentVolumeClaim) { c.UID = "newer" })))...), knowing(heir), nil, "Missing"},
		{"R7 done", moving, released(heldBy(heir), boundAt), knowing(heir), nil, "Done"},
	} {
		t.Run(test.name, func(t *testing.T) {
			if test.volume != nil {
				test.known.Volumes = []*corev1.PersistentVolume{test.volume}
			}
			before, given := test.volume.DeepCopy(), test.move.To.DeepCopy()
			var claims []*corev1.PersistentVolumeClaim
			for _, claim := range test.known.Claims {
				claims = append(claims, claim.DeepCopy())
			}
			step, err := NextMove(test.move, test.known, test.accepting...)
			got := stepInShort(step)
			if err != nil {
				got = verdict(t, nil, err)
			}
			assert.Equal(t, test.want, got, "%s %v", step, err)
			assert.Equal(t, before, test.volume, "X6")
			assert.Equal(t, given, test.move.To, "X6")
			assert.Equal(t, claims, test.known.Claims, "X6")
		})
	}
}

func stepInShort(step Step) string {
	text := step.String()
	return text[:len(text)-len(": "+step.Why)]
}

// TestTheWritesOfAMove is what each write of a move has in it.
func TestTheWritesOfAMove(t *testing.T) {
	next := func(volume *corev1.PersistentVolume, known Known) Step {
		t.Helper()
		known.Volumes = []*corev1.PersistentVolume{volume}
		step, err := NextMove(Move{Volume: "pv-1", To: toArchive()}, known)
		require.NoError(t, err)
		return step
	}
	source := holder(func(c *corev1.PersistentVolumeClaim) {
		c.Labels = map[string]string{"app": "shop"}
		c.Finalizers = []string{ClaimProtection}
		c.Annotations["team"] = "orders"
		c.Annotations["volume.kubernetes.io/selected-node"] = "node-1"
		c.Annotations["volume.beta.kubernetes.io/storage-class"] = "fast"
		c.Spec.DataSource = &corev1.TypedLocalObjectReference{Kind: "VolumeSnapshot", Name: "yesterday"}
		c.Spec.DataSourceRef = &corev1.TypedObjectReference{Kind: "VolumeSnapshot", Name: "yesterday"}
	})

	begun := next(released(boundAt, under("Delete")), knowing(source)).Volume
	assert.Equal(t, corev1.PersistentVolumeReclaimRetain, begun.Spec.PersistentVolumeReclaimPolicy, "it is kept")
	assert.Equal(t, "old", string(begun.Spec.ClaimRef.UID), "its claim keeps it")
	note, err := moveOf(begun)
	require.NoError(t, err)
	assert.Equal(t, moveSource{"shop", "data", "old"}, note.From)
	assert.Equal(t, corev1.PersistentVolumeReclaimDelete, note.Policy)

	deletes := next(begun, knowing(source))
	assert.Equal(t, source.UID, *deletes.Preconditions.UID)
	assert.Equal(t, source.ResourceVersion, *deletes.Preconditions.ResourceVersion)
	assert.Equal(t, []Hazard{{DataDisclosed, "the new claim can read what shop/data left on it"}}, deletes.Hazards)

	setAside := next(begun, knowing()).Volume
	assert.Equal(t, &corev1.ObjectReference{Kind: "PersistentVolumeClaim", APIVersion: "v1", Namespace: "archive", Name: "data"}, setAside.Spec.ClaimRef)
	assert.NotContains(t, setAside.Annotations, "pv.kubernetes.io/bound-by-controller", "V4")
	assert.Contains(t, setAside.Annotations, MoveAnnotation)

	created := next(setAside, knowing()).Claim
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
	stale := setAside.DeepCopy()
	stale.Annotations[MoveAnnotation] = begun.Annotations[MoveAnnotation]
	setAside.Spec.ClaimRef.UID, setAside.Status.Phase = "new", corev1.VolumeBound
	byController, changed := setAside.DeepCopy(), setAside.DeepCopy()
	byController.Annotations["pv.kubernetes.io/bound-by-controller"] = "yes"
	changed.Spec.PersistentVolumeReclaimPolicy = corev1.PersistentVolumeReclaimRecycle
	stale.Spec.ClaimRef.UID, stale.Status.Phase = "new", corev1.VolumeBound
	for why, c := range map[string]struct {
		volume *corev1.PersistentVolume
		want   corev1.PersistentVolumeReclaimPolicy
	}{
		"an old note: the move did not set it aside":      {stale, corev1.PersistentVolumeReclaimRetain},
		"somebody freed it, and it was bound another way": {byController, corev1.PersistentVolumeReclaimRetain},
		"somebody gave it another policy":                 {changed, corev1.PersistentVolumeReclaimRecycle},
	} {
		kept := next(c.volume, knowing(created)).Volume
		assert.Equal(t, c.want, kept.Spec.PersistentVolumeReclaimPolicy, why)
		assert.NotContains(t, kept.Annotations, MoveAnnotation, why)
	}
	ended := next(setAside, knowing(created)).Volume
	assert.Equal(t, corev1.PersistentVolumeReclaimDelete, ended.Spec.PersistentVolumeReclaimPolicy)
	assert.Equal(t, map[string]string{"team": "orders"}, ended.Annotations)
}

// A claim that is given in full is created as it is given, but for what would keep it from the volume.
func TestMoveToAClaimInFull(t *testing.T) {
	given := asking("archive", "data", func(c *corev1.PersistentVolumeClaim) {
		c.Spec.StorageClassName = new("slow")
		c.Labels = map[string]string{"app": "archive"}
	})
	heir := successor(given, holder(), "pv-1")
	assert.Equal(t, "slow", *heir.Spec.StorageClassName)
	assert.Equal(t, given.Labels, heir.Labels)
	assert.Equal(t, "pv-1", heir.Spec.VolumeName)
	assert.Empty(t, heir.UID)
	assert.Empty(t, given.Spec.VolumeName, "X6")
}

func TestX7MalformedNotes(t *testing.T) {
	for _, text := range []string{"", "{", "[]", "{}", `{"from":{"uid":"old"},"to":{},"reclaimPolicy":"Delete"}`} {
		volume := released(func(v *corev1.PersistentVolume) { v.Annotations[MoveAnnotation] = text })
		_, err := NextMove(Move{Volume: "pv-1"}, Known{Volumes: []*corev1.PersistentVolume{volume}})
		assert.ErrorContains(t, err, "pv/pv-1: metadata.annotations[pvbind.github.io/move]: ", "%q", text)
	}
	restored := released(noted, func(v *corev1.PersistentVolume) { v.UID = "uid-2" })
	_, err := NextMove(Move{Volume: "pv-1"}, Known{Volumes: []*corev1.PersistentVolume{restored}})
	assert.ErrorContains(t, err, `of a volume with UID "uid-1", and this one has "uid-2"`)
}
