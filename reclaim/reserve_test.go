package reclaim

import (
	"testing"

	"github.com/stretchr/testify/assert"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/pvbind/pvbind/binding/obj"
)

func TestReserve(t *testing.T) {
	toCome := func(edits ...claimEdit) *corev1.PersistentVolumeClaim {
		claim := &corev1.PersistentVolumeClaim{}
		claim.Namespace, claim.Name = "archive", "data"
		for _, edit := range edits {
			edit(claim)
		}
		return claim
	}
	larger := func(c *corev1.PersistentVolumeClaim) {
		c.Spec.Resources.Requests[corev1.ResourceStorage] = resource.MustParse("6Gi")
	}
	enormous := func(c *corev1.PersistentVolumeClaim) {
		c.Spec.Resources.Requests = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1e1000000000")}
	}
	shared := func(c *corev1.PersistentVolumeClaim) {
		c.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteMany}
	}
	block := func(c *corev1.PersistentVolumeClaim) { c.Spec.VolumeMode = new(corev1.PersistentVolumeBlock) }
	attributes := func(c *corev1.PersistentVolumeClaim) { c.Spec.VolumeAttributesClassName = new("gold") }
	otherClass := func(c *corev1.PersistentVolumeClaim) { c.Spec.StorageClassName = new("fast") }
	lost := func(c *corev1.PersistentVolumeClaim) { c.Status.Phase = corev1.ClaimLost }
	waits := func(c *corev1.PersistentVolumeClaim) { c.Status.Phase = corev1.ClaimPending }
	otherUID := func(c *corev1.PersistentVolumeClaim) { c.UID = "another" }
	slip := func(v *corev1.PersistentVolume) { v.Spec.ClaimRef.Name = "dtaa" }
	naming := func(volume string) claimEdit {
		return func(c *corev1.PersistentVolumeClaim) { c.Spec.VolumeName = volume }
	}
	for _, test := range []struct {
		name      string
		volume    *corev1.PersistentVolume
		claim     *corev1.PersistentVolumeClaim
		known     Known
		accepting []Risk
		want      string
	}{
		{"R7 for a claim to come, known by name", released(), toCome(), knowing(), nil, "does DataDisclosed"},
		{"R7 for a claim to come, in full", released(), fitting("archive", "data"), knowing(), nil, "does DataDisclosed"},
		{"R7 for a claim that exists", released(), toCome(), knowing(fitting("archive", "data")), nil, "does DataDisclosed"},
		{"R7 for one that names it", released(), toCome(), knowing(fitting("archive", "data", naming("pv-1"))), nil, "does DataDisclosed"},
		{"R7 X3 for the next claim of the same name", released(), fitting("shop", "data"), knowing(fitting("shop", "data")), nil, "does DataDisclosed"},
		{"R7 a free volume", released(unclaimed, at(corev1.VolumeAvailable)), toCome(), listing(), nil, "does"},
		{"R7 M2 a free volume, and nobody listed the claims", released(unclaimed, at(corev1.VolumeAvailable)), toCome(), knowing(), nil, "Unknown(pvc)"},
		{"R7 M2 one without claimRef that a claim is Bound to", released(unclaimed), toCome(), listing(boundClaim()), nil, "ClaimLives/VolumeLost"},
		{"R7 M2 one that is Lost and names it may have had it", released(unclaimed), toCome(), listing(boundClaim(lost)), nil, "ClaimLives/VolumeLost"},
		{"R7 M2 or where another's name was written into its claimRef", released(preBoundTo("bank", "next")), toCome(), listing(boundClaim(lost), userOf("web")), []Risk{ReservationLost}, "ClaimLives/VolumeLost InUse/PodsDisturbed Unknown(pods/bank)"},
		{"R7 M2 nor one without claimRef that pods with a node may have, of a claim that names it", released(unclaimed), toCome(), listing(boundClaim(bare, waits), userOf("web", onNode)), nil, "InUse/PodsDisturbed"},
		{"R7 M2 the same, and nobody listed the pods", released(unclaimed), toCome(), listing(fitting("bank", "data", bound("pv-1"), bare, waits)), nil, "Unknown(pods/bank)"},
		{"R7 the same of two claims: it is asked for once", released(unclaimed), toCome(), listing(fitting("bank", "data", bound("pv-1"), bare, waits), fitting("bank", "logs", bound("pv-1"), bare, waits)), nil, "Unknown(pods/bank)"},
		{"R7 M2 but those that wait for a node have none", released(unclaimed), toCome(), listing(boundClaim(bare, waits), userOf("web")), nil, "does"},
		{"R7 R3 X3 its claimRef has a slip, and the claim whose UID it has is Bound", released(slip), toCome(), listing(boundClaim()), nil, "ClaimLives/VolumeLost"},
		{"R7 R3 X3 or Lost by that", released(slip), toCome(), listing(boundClaim(lost)), nil, "ClaimLives/VolumeLost"},
		{"R7 nor while pods use it", released(), toCome(), listing(boundClaim(otherUID, lost), userOf("web")), nil, "InUse/PodsDisturbed"},
		{"R7 R3 X3 or Pending, without bind-completed", released(slip), toCome(), listing(boundClaim(bare, waits)), nil, "ClaimLives/VolumeLost"},
		{"R7 X3 its claimRef has another UID, and the claim of that name is Bound", released(), toCome(), listing(boundClaim(otherUID)), nil, "ClaimLives/VolumeLost"},
		{"R7 one of that name that is Lost may be restored from a backup, and its volume is to be given to it", released(), toCome(), listing(boundClaim(otherUID, lost)), nil, "does DataDisclosed"},
		{"R7 one that is Lost and names it, while the UID is another's, had none of it", released(slip), toCome(), listing(fitting("bank", "data", bound("pv-1"), lost)), nil, "does DataDisclosed"},
		{"R7 M2 the same, accepted", released(unclaimed), toCome(), listing(boundClaim()), []Risk{VolumeLost}, "does VolumeLost DataDisclosed"},
		{"R7 M2 the claim that is Bound to it gets it, were it not for its annotation", released(unclaimed), toCome(), listing(fitting("archive", "data", bound("pv-1"), bare)), nil, "does"},
		{"R7 M2 C11 with its annotation it takes no reservation", released(unclaimed), toCome(), listing(fitting("archive", "data", bound("pv-1"))), nil, "Taken"},
		{"R7 M12 the class is the reserver's choice", released(), fitting("archive", "data", otherClass), knowing(), nil, "does DataDisclosed"},
		{"R7 it is pre-bound to it", released(preBoundTo("archive", "data")), toCome(), knowing(), nil, "does"},
		{"R7 it is pre-bound to it, which names it", released(preBoundTo("archive", "data")), toCome(), knowing(fitting("archive", "data", naming("pv-1"))), nil, "does"},

		{"R7 M12 M3 too small", released(), fitting("archive", "data", larger), knowing(), nil, "Unfit"},
		{"R7 X7 a request that would take minutes to work out", released(), fitting("archive", "data", enormous), knowing(), nil, "Unfit"},
		{"R7 M12 M4", released(), fitting("archive", "data", shared), knowing(), nil, "Unfit"},
		{"R7 M12 M5", released(), fitting("archive", "data", block), knowing(), nil, "Unfit"},
		{"R7 M12 M7", released(), fitting("archive", "data", attributes), knowing(), nil, "Unfit"},
		{"R7 M12 everything", released(), fitting("archive", "data", larger, shared, block, attributes), knowing(), nil, "Unfit Unfit Unfit Unfit"},
		{"R7 M12 what exists counts, not what is said of it", released(), toCome(), knowing(fitting("archive", "data", larger)), nil, "Unfit"},
		{"R7 C12 for a claim that is being deleted", released(), toCome(), knowing(fitting("archive", "data", claimGoing)), nil, "Deleting"},
		{"R7 for a claim that has another volume", released(), toCome(), knowing(fitting("archive", "data", bound("pv-9"))), nil, "Taken"},
		{"R7 C11 for a claim that was bound to it", released(), toCome(), knowing(fitting("archive", "data", bound("pv-1"))), nil, "Taken"},

		{"R7 R4 nor while pods may use it since before its claim was created again", released(), toCome(), knowing(again(), userOf("web", onNode)), nil, "InUse/PodsDisturbed"},
		{"R7 nothing was read", released(), toCome(), Known{}, nil, "Unknown(pvc/archive/data) Unknown(pvc/shop/data) Unknown(pods/shop)"},
		{"R7 a free volume, and nobody read whether the claim exists", released(unclaimed, at(corev1.VolumeAvailable)), toCome(), Known{}, nil, "Unknown(pvc/archive/data) Unknown(pvc)"},
		{"R7 the claim lives", released(), toCome(), knowing(boundClaim()), nil, "ClaimLives/VolumeLost"},
		{"R7 the claim lives, accepted", released(), toCome(), knowing(boundClaim()), []Risk{VolumeLost}, "does VolumeLost DataDisclosed"},
		{"R7 Delete", released(under("Delete")), toCome(), knowing(), nil, "PolicyDestroys/DataDestroyed"},
		{"R7 it is pre-bound to another", released(preBoundTo("shop", "data")), toCome(), knowing(), nil, "PreBound/ReservationLost"},
		{"R7 it is being deleted", released(unclaimed, volumeGoing), toCome(), listing(), nil, "Deleting"},
		{"R7 it is being transferred", released(preBoundTo("archive", "data"), transferring), toCome(), knowing(), nil, "Transferring"},
		{"R7 a claim without a name", released(), &corev1.PersistentVolumeClaim{}, knowing(), nil, "pvc//: metadata: namespace and name are required"},
	} {
		t.Run(test.name, func(t *testing.T) {
			volume, claim := test.volume.DeepCopy(), test.claim.DeepCopy()
			change, err := Reserve(test.volume, test.claim, test.known, test.accepting...)
			assert.Equal(t, test.want, verdict(t, change.Warnings, err))
			assert.Equal(t, volume, test.volume, "X6")
			assert.Equal(t, claim, test.claim, "X6")
			if err != nil {
				assert.Nil(t, change.Volume)
				return
			}
			volume.Spec.ClaimRef = &corev1.ObjectReference{Kind: "PersistentVolumeClaim", APIVersion: "v1", Namespace: claim.Namespace, Name: claim.Name}
			delete(volume.Annotations, "pv.kubernetes.io/bound-by-controller")
			assert.Equal(t, volume, change.Volume, "claimRef and bound-by-controller change, and nothing else")
		})
	}
}

// What the claim has already is left as it is, a controller's mark on it too.
func TestReserveWhatTheClaimHas(t *testing.T) {
	volume := released(at(corev1.VolumeBound))
	change, err := Reserve(volume, fitting("shop", "data"), knowing(boundClaim()))
	assert.NoError(t, err)
	assert.Equal(t, volume, change.Volume)
	assert.NotSame(t, volume, change.Volume)
	assert.Empty(t, change.Warnings)
}

func TestErrorHasEveryReason(t *testing.T) {
	_, err := MakeAvailable(released(under("Delete")), knowing(userOf("web"), userOf("job")))
	assert.EqualError(t, err, "cannot make available pv/pv-1: PolicyDestroys: its reclaim policy is Delete, so that what is on it may be on its way out: "+
		"set the policy to Retain first (unless DataDestroyed is accepted); InUse: pods use it: shop/job, shop/web (unless PodsDisturbed is accepted)")
	assert.Empty(t, err.(*Error).Reads())

	_, err = MakeAvailable(released(), Known{})
	reads := err.(*Error).Reads()
	assert.Equal(t, []obj.Key{obj.ClaimKey("shop", "data"), obj.PodsKey("shop")}, reads)
	_, err = MakeAvailable(released(), Known{Missing: reads})
	assert.NoError(t, err, "there is nothing of what was read")
}
