package e2e

import (
	"context"
	"fmt"
	"math/rand/v2"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pvbind/pvbind/binding/obj"
	"github.com/pvbind/pvbind/examples/cluster/clustertest"
	"github.com/pvbind/pvbind/phase"
	"github.com/pvbind/pvbind/storageclass"
)

// A scheduler meets M9, M12 and M13 where the binder has not been before it, or has left a volume as it is. So some worlds end with a pod
// that comes while no binder runs, with volumes that are not Available, and some that are pre-bound for its claims though they may not fit.

// lateness is what volumes differ in that come so.
type lateness struct {
	class     string
	phase     corev1.PersistentVolumePhase // "": that of a new one, Pending
	announced bool                         // that its storage is destroyed (R8)
}

func (p *plan) planLate(random *rand.Rand, size func() int) {
	chance := func(percent int) bool { return random.IntN(100) < percent }
	pod := plannedPod{prefer: random.Perm(p.nodes), only: -1}
	for c := range 1 + random.IntN(3) {
		claim := plannedClaim{size: 2 + size()/5, made: chance(25), many: chance(40), block: chance(8)}
		for range []int{0, 1, 1, 1, 2}[random.IntN(5)] {
			volume := plannedVolume{size: max(size(), claim.size), node: random.IntN(p.nodes), many: claim.many, block: claim.block,
				holder: claimName(len(p.pods), c), lateness: lateness{class: claim.class()}}
			switch random.IntN(7) {
			case 0:
				volume.class = "other"
			case 1:
				volume.many = false
			case 2:
				volume.block = !volume.block
			case 3:
				volume.size = claim.size - 1
			}
			p.late = append(p.late, volume)
		}
		pod.claims = append(pod.claims, claim)
	}
	for range 1 + random.IntN(3) {
		volume := plannedVolume{size: size(), node: random.IntN(p.nodes), many: chance(60), lateness: lateness{class: "local"}}
		switch random.IntN(6) {
		case 0:
			volume.phase = corev1.VolumeFailed
		case 1:
			volume.phase, volume.announced = corev1.VolumeAvailable, true
		}
		p.late = append(p.late, volume)
	}
	p.pods = append(p.pods, pod)
}

// isLate reports whether the pod comes while no binder runs.
func (p plan) isLate(number int) bool { return p.late != nil && number == len(p.pods)-1 }

// bringLate creates the volumes that come with the last pod.
func (p plan) bringLate(w *world) {
	var objects []obj.Object
	for v, volume := range p.late {
		object := volume.of(w, fmt.Sprintf("late%d", v), volume.class)
		if volume.announced {
			object.Annotations = map[string]string{phase.AnnouncementAnnotation: "{}"}
		}
		objects = append(objects, object)
	}
	w.Create(objects...)
	for v, volume := range p.late {
		if volume.phase == "" {
			continue
		}
		stored, err := w.Client.CoreV1().PersistentVolumes().Get(w.Context(), objects[v].GetName(), metav1.GetOptions{})
		require.NoError(w, err)
		stored.Status.Phase = volume.phase
		_, err = w.Client.CoreV1().PersistentVolumes().UpdateStatus(w.Context(), stored, metav1.UpdateOptions{})
		require.NoError(w, err)
	}
}

// planned waits until the scheduler has rejected a pod, or has begun to carry out a plan for it.
func (w *world) planned(number, claims int) (fits bool) {
	w.Helper()
	clustertest.Eventually(w, func() bool {
		for c := range claims {
			fits = fits || w.StoredClaim(claimName(number, c)).Annotations[storageclass.SelectedNodeAnnotation] != ""
		}
		volumes, err := w.Client.CoreV1().PersistentVolumes().List(context.Background(), metav1.ListOptions{})
		require.NoError(w, err)
		for i := range volumes.Items {
			ref := volumes.Items[i].Spec.ClaimRef
			for c := range claims {
				fits = fits || ref != nil && ref.UID != "" && ref.Namespace == w.Namespace && ref.Name == claimName(number, c)
			}
		}
		return fits || clustertest.WhyPending(w.StoredPod(fmt.Sprintf("pod-%d", number))) != ""
	}, "%s/pod-%d is planned", w.Namespace, number)
	return fits
}

// explainLate returns a rule about the volumes that came with the last pod by which two verdicts on it may differ; "" if there is none.
func (p plan) explainLate(theirs, ours verdict) string {
	number := len(p.pods) - 1
	worse := theirs.node != "" && ours.node == ""
	rule := ""
	for c, claim := range p.pods[number].claims {
		preBound := 0
		for _, volume := range p.late {
			modes := volume.many || !claim.many
			switch {
			case volume.size < claim.size || volume.block != claim.block:
			case volume.holder == claimName(number, c) && !modes:
				return "M12: upstream does not look at the access modes of a volume that is pre-bound"
			case volume.holder == claimName(number, c) && volume.class != claim.class():
				return "M12: upstream looks for a pre-bound volume among those of its class"
			case volume.holder == claimName(number, c):
				preBound++
			case volume.holder != "" || volume.class != claim.class() || !modes:
			case volume.announced:
				rule = "M9: upstream takes a volume though it is announced that its storage is destroyed"
			case volume.phase == "" && !worse && rule == "":
				rule = "M9: upstream takes no volume that is Pending"
			}
		}
		if preBound > 1 {
			return "M13: upstream takes the first of two that are pre-bound, in no order"
		}
	}
	return rule
}
