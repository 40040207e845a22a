package reclaim

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pvbind/pvbind/binding/obj"
)

type volumeEdit func(*corev1.PersistentVolume)

type claimEdit func(*corev1.PersistentVolumeClaim)

// released is pv-1 as shop/data, UID old, left it: Retain, 5Gi.
func released(edits ...volumeEdit) *corev1.PersistentVolume {
	volume := &corev1.PersistentVolume{}
	volume.Name, volume.UID, volume.ResourceVersion = "pv-1", "uid-1", "8"
	volume.Annotations = map[string]string{"pv.kubernetes.io/bound-by-controller": "yes", "team": "orders"}
	volume.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}
	volume.Spec.Capacity = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("5Gi")}
	volume.Spec.ClaimRef = &corev1.ObjectReference{Namespace: "shop", Name: "data", UID: "old"}
	volume.Spec.PersistentVolumeReclaimPolicy = corev1.PersistentVolumeReclaimRetain
	volume.Status.Phase = corev1.VolumeReleased
	for _, edit := range edits {
		edit(volume)
	}
	return volume
}

// fitting is a claim that pv-1 fits.
func fitting(namespace, name string, edits ...claimEdit) *corev1.PersistentVolumeClaim {
	claim := &corev1.PersistentVolumeClaim{}
	claim.Namespace, claim.Name, claim.UID, claim.ResourceVersion = namespace, name, "new", "9"
	claim.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}
	claim.Spec.Resources.Requests = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("5Gi")}
	for _, edit := range edits {
		edit(claim)
	}
	return claim
}

func bound(to string) claimEdit {
	return func(c *corev1.PersistentVolumeClaim) {
		c.Spec.VolumeName = to
		c.Annotations = map[string]string{"pv.kubernetes.io/bind-completed": "yes"}
		c.Status.Phase = corev1.ClaimBound
	}
}

// boundClaim is the claim that has pv-1.
func boundClaim(edits ...claimEdit) *corev1.PersistentVolumeClaim {
	old := func(c *corev1.PersistentVolumeClaim) { c.UID = "old" }
	return fitting("shop", "data", append([]claimEdit{old, bound("pv-1")}, edits...)...)
}

func under(policy corev1.PersistentVolumeReclaimPolicy) volumeEdit {
	return func(v *corev1.PersistentVolume) { v.Spec.PersistentVolumeReclaimPolicy = policy }
}

func at(phase corev1.PersistentVolumePhase) volumeEdit {
	return func(v *corev1.PersistentVolume) { v.Status.Phase = phase }
}

func preBoundTo(namespace, name string) volumeEdit {
	return func(v *corev1.PersistentVolume) {
		v.Spec.ClaimRef = &corev1.ObjectReference{Namespace: namespace, Name: name}
	}
}

func unclaimed(v *corev1.PersistentVolume) { v.Spec.ClaimRef = nil }

func volumeGoing(v *corev1.PersistentVolume) {
	v.DeletionTimestamp = new(metav1.Unix(1_700_000_000, 0))
}

func claimGoing(c *corev1.PersistentVolumeClaim) {
	c.DeletionTimestamp = new(metav1.Unix(1_700_000_000, 0))
}

func transferring(v *corev1.PersistentVolume) { v.Annotations[TransferAnnotation] = "{}" }

// userOf is a pod in shop that uses the claim data.
func userOf(name string, edits ...func(*corev1.Pod)) *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}}
	source := &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "data"}
	pod.Spec.Volumes = []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: source}}}
	for _, edit := range edits {
		edit(pod)
	}
	return pod
}

func onNode(p *corev1.Pod) { p.Spec.NodeName = "node-1" }

func startedLater(d time.Duration) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Status.StartTime = new(metav1.NewTime(createdAgain.Add(d))) }
}

// createdAgain is when the claim that again returns was created.
var createdAgain = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// again returns the claim shop/data as somebody has created it again.
func again(edits ...claimEdit) *corev1.PersistentVolumeClaim {
	later := func(c *corev1.PersistentVolumeClaim) {
		c.UID, c.CreationTimestamp = "uid-again", metav1.NewTime(createdAgain)
	}
	return fitting("shop", "data", append(edits, later)...)
}

func succeeded(p *corev1.Pod) { p.Status.Phase = corev1.PodSucceeded }

// bare takes the annotations off, and forged leaves nothing but them.
func bare(c *corev1.PersistentVolumeClaim) { c.Annotations = nil }

func forged(c *corev1.PersistentVolumeClaim) { c.Status.Phase = corev1.ClaimPending }

// listing is the same, after all claims were listed.
func listing(objects ...metav1.Object) Known {
	known := knowing(objects...)
	known.AllClaims, known.Missing = true, nil
	return known
}

// knowing is what a server says that has these claims, and of shop these pods. Claims data in shop and archive, and
// archive/new, do not exist otherwise.
func knowing(objects ...metav1.Object) Known {
	known := Known{Pods: map[string][]*corev1.Pod{"shop": nil}}
	for _, object := range objects {
		switch o := object.(type) {
		case *corev1.PersistentVolume:
			known.Volumes = append(known.Volumes, o)
		case *corev1.PersistentVolumeClaim:
			known.Claims = append(known.Claims, o)
		case *corev1.Pod:
			known.Pods["shop"] = append(known.Pods["shop"], o)
		}
	}
	for _, read := range []obj.Key{obj.ClaimKey("shop", "data"), obj.ClaimKey("archive", "data"), obj.ClaimKey("archive", "new")} {
		if claim, _ := known.claim(read); claim == nil {
			known.Missing = append(known.Missing, read)
		}
	}
	return known
}

// verdict is what an operation returns, in short: the reasons of an error, each with the risk to accept, or "does", with
// the risks.
func verdict(t *testing.T, warnings []Warning, err error) string {
	t.Helper()
	failed := (*Error)(nil)
	if err == nil {
		words := []string{"does"}
		for _, warning := range warnings {
			words = append(words, string(warning.Risk))
		}
		return strings.Join(words, " ")
	}
	if !errors.As(err, &failed) {
		return err.Error()
	}
	require.NotEmpty(t, failed.Reasons)
	var words []string
	for _, reason := range failed.Reasons {
		word := string(reason.Code)
		if reason.Risk != "" {
			word += "/" + string(reason.Risk)
		}
		if reason.Code == Unknown {
			word += "(" + reason.Read.String() + ")"
		}
		words = append(words, word)
		assert.Contains(t, err.Error(), reason.Message)
	}
	return strings.Join(words, " ")
}

func TestMakeAvailable(t *testing.T) {
	nothingRead := Known{}
	misbound := boundClaim(bound("pv-9"))
	for _, test := range []struct {
		name      string
		volume    *corev1.PersistentVolume
		known     Known
		accepting []Risk
		want      string
	}{
		{"R7 a Released volume", released(), knowing(), nil, "does DataDisclosed"},
		{"R7 a Failed one", released(at(corev1.VolumeFailed)), knowing(), nil, "does DataDestroyed DataDisclosed"},
		{"R7 one that is still called Bound", released(at(corev1.VolumeBound)), knowing(), nil, "does DataDisclosed"},
		{"R7 a claim of that name was created again", released(), knowing(fitting("shop", "data")), nil, "does DataDisclosed"},
		{"R7 pods of the claim that was created again, without a node", released(), knowing(again(), userOf("web")), nil, "does DataDisclosed"},
		{"R7 R4 pods with a node, of a claim that was created again", released(), knowing(again(), userOf("web", onNode)), nil, "InUse/PodsDisturbed"},
		{"R7 R4 the same, and it has another volume", released(), knowing(again(bound("pv-9")), userOf("web", onNode)), nil, "InUse/PodsDisturbed"},
		{"R7 R4 started well after it was created", released(), knowing(again(), userOf("web", onNode, startedLater(6*time.Minute))), nil, "does DataDisclosed"},
		{"R7 R4 the same, by a clock that may be ahead", released(), knowing(again(), userOf("web", onNode, startedLater(4*time.Minute))), nil, "InUse/PodsDisturbed"},
		{"R7 R4 it was created again, and nobody listed the pods", released(), Known{Claims: []*corev1.PersistentVolumeClaim{again()}}, nil, "Unknown(pods/shop)"},
		{"R7 it is available", released(unclaimed), listing(), nil, "does"},
		{"R7 M2 no claimRef, and nobody listed the claims", released(unclaimed), knowing(), nil, "Unknown(pvc)"},
		{"R7 M2 no claimRef, and a claim is Bound to it", released(unclaimed), listing(boundClaim()), nil, "ClaimLives/VolumeLost"},
		{"R7 M2 the same, of another namespace, whose pods nobody listed", released(unclaimed), listing(fitting("bank", "data", bound("pv-1"))), nil, "ClaimLives/VolumeLost Unknown(pods/bank)"},
		{"R7 M2 the same, without the annotation, with pods", released(unclaimed), listing(boundClaim(bare), userOf("web")), nil, "ClaimLives/VolumeLost InUse/PodsDisturbed"},
		{"R7 M2 the same, accepted", released(unclaimed), listing(boundClaim(), userOf("web")), []Risk{VolumeLost, PodsDisturbed}, "does VolumeLost PodsDisturbed DataDisclosed"},
		{"R7 M2 two claims are Bound to it", released(unclaimed), listing(boundClaim(), fitting("shop", "other", bound("pv-1"))), nil, "ClaimLives/VolumeLost ClaimLives/VolumeLost"},
		{"R7 M2 an annotation is no proof", released(unclaimed), listing(boundClaim(forged)), nil, "does"},
		{"R7 all claims were listed, and its own is not there", released(), Known{AllClaims: true, Pods: map[string][]*corev1.Pod{"shop": nil}}, nil, "does DataDisclosed"},
		{"R7 its claim has another volume", released(), knowing(misbound), nil, "does DataDisclosed"},

		{"R7 nothing was read", released(), nothingRead, nil, "Unknown(pvc/shop/data) Unknown(pods/shop)"},
		{"R7 no risk stands for what is not known", released(), nothingRead, []Risk{DataDisclosed, DataDestroyed, PodsDisturbed, VolumeLost, ReservationLost}, "Unknown(pvc/shop/data) Unknown(pods/shop)"},
		{"R7 the claim lives", released(), knowing(boundClaim()), nil, "ClaimLives/VolumeLost"},
		{"R7 it lives, and is being deleted", released(), knowing(boundClaim(claimGoing)), nil, "ClaimLives/VolumeLost"},
		{"R7 it lives, with pods", released(), knowing(boundClaim(), userOf("web")), nil, "ClaimLives/VolumeLost InUse/PodsDisturbed"},
		{"R7 both accepted", released(), knowing(boundClaim(), userOf("web")), []Risk{VolumeLost, PodsDisturbed}, "does VolumeLost PodsDisturbed DataDisclosed"},
		{"R7 one of two accepted", released(), knowing(boundClaim(), userOf("web")), []Risk{VolumeLost}, "InUse/PodsDisturbed"},
		{"R7 its claim is being bound", released(), knowing(boundClaim(bound(""))), nil, "ClaimLives/VolumeLost"},
		{"R7 a pod still uses the claim that is gone", released(), knowing(userOf("web")), nil, "InUse/PodsDisturbed"},
		{"R7 a pod that has finished", released(), knowing(userOf("web", succeeded)), nil, "does DataDisclosed"},
		{"R7 Delete", released(under("Delete")), knowing(), nil, "PolicyDestroys/DataDestroyed"},
		{"R7 Recycle", released(under("Recycle")), knowing(), nil, "PolicyDestroys/DataDestroyed"},
		{"R7 a policy that nobody knows", released(under("Shred")), knowing(), nil, "PolicyDestroys/DataDestroyed"},
		{"R7 Delete, accepted", released(under("Delete")), knowing(), []Risk{DataDestroyed}, "does DataDestroyed DataDisclosed"},
		{"R7 its claim has another volume, and this one goes", released(under("Delete"), func(v *corev1.PersistentVolume) {
			v.Annotations["pv.kubernetes.io/provisioned-by"] = "ebs.csi.aws.com"
		}), knowing(misbound), nil, "PolicyDestroys/DataDestroyed"},
		{"R7 it is pre-bound", released(preBoundTo("shop", "data")), knowing(), nil, "PreBound/ReservationLost"},
		{"R7 it is pre-bound, accepted", released(preBoundTo("shop", "data")), knowing(), []Risk{ReservationLost}, "does ReservationLost"},
		{"R7 it is pre-bound, and pods have it since before its UID was cleared", released(preBoundTo("shop", "data")), knowing(userOf("web", onNode)), []Risk{ReservationLost}, "InUse/PodsDisturbed"},
		{"R7 its UID was cleared under the claim", released(preBoundTo("shop", "data")), knowing(boundClaim()), nil, "ClaimLives/VolumeLost"},
		{"R7 it is being deleted", released(volumeGoing), knowing(), []Risk{DataDestroyed}, "Deleting"},
		{"R7 it is being transferred", released(transferring), knowing(), []Risk{DataDestroyed}, "Transferring"},
		{"R7 all at once", released(under("Delete"), volumeGoing), knowing(userOf("web")), nil, "Deleting PolicyDestroys/DataDestroyed InUse/PodsDisturbed"},
	} {
		t.Run(test.name, func(t *testing.T) {
			before := test.volume.DeepCopy()
			change, err := MakeAvailable(test.volume, test.known, test.accepting...)
			assert.Equal(t, test.want, verdict(t, change.Warnings, err))
			assert.Equal(t, before, test.volume, "X6")
			if err != nil {
				assert.Nil(t, change.Volume)
				return
			}
			before.Spec.ClaimRef = nil
			delete(before.Annotations, "pv.kubernetes.io/bound-by-controller")
			assert.Equal(t, before, change.Volume, "claimRef and bound-by-controller go, and nothing else")
		})
	}
}

func TestSetRetain(t *testing.T) {
	for _, test := range []struct {
		name   string
		volume *corev1.PersistentVolume
		want   string
	}{
		{"R7 under a claim", released(under("Delete"), at(corev1.VolumeBound)), "does"},
		{"R7 Recycle", released(under("Recycle"), at(corev1.VolumeBound)), "does"},
		{"R7 kept already", released(), "does"},
		{"R7 perhaps too late", released(under("Delete")), "does DataDestroyed"},
		{"R7 perhaps too late, after a failure", released(under("Delete"), at(corev1.VolumeFailed)), "does DataDestroyed"},
		{"R7 being deleted", released(under("Delete"), at(corev1.VolumeBound), volumeGoing), "does VolumeLost"},
	} {
		t.Run(test.name, func(t *testing.T) {
			before := test.volume.DeepCopy()
			change := SetRetain(test.volume)
			assert.Equal(t, test.want, verdict(t, change.Warnings, nil))
			assert.Equal(t, before, test.volume, "X6")
			before.Spec.PersistentVolumeReclaimPolicy = corev1.PersistentVolumeReclaimRetain
			assert.Equal(t, before, change.Volume)
		})
	}
}

// A transfer has made the policy Retain for as long as it takes, and its last write gives the former one back: but not where a person has
// set Retain meanwhile.
func TestR7RetainIsSetDuringATransfer(t *testing.T) {
	for _, policy := range []corev1.PersistentVolumeReclaimPolicy{corev1.PersistentVolumeReclaimDelete, corev1.PersistentVolumeReclaimRecycle} {
		volume := released(recorded)
		record, err := recordOf(volume)
		require.NoError(t, err)
		record.Policy, record.PreBound = policy, true
		delete(volume.Annotations, "pv.kubernetes.io/bound-by-controller")
		volume, err = record.addTo(volume)
		require.NoError(t, err)
		assert.Equal(t, policy, record.removeFrom(volume).Spec.PersistentVolumeReclaimPolicy)
		assert.Equal(t, policy, PolicyAfterTransfer(volume))

		kept, err := recordOf(SetRetain(volume).Volume)
		require.NoError(t, err)
		assert.Equal(t, corev1.PersistentVolumeReclaimRetain, kept.removeFrom(volume).Spec.PersistentVolumeReclaimPolicy)
		assert.Equal(t, policy, PolicyAfterTransfer(record.removeFrom(volume)))
		assert.Equal(t, record.To, kept.To)
	}
}
