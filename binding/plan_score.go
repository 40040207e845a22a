package binding

import (
	"math"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/pvbind/pvbind/binding/internal/quantities"
)

// MaxScore is the best score that Score gives.
const MaxScore = 100

// Score says from 0 to 100 how well a plan that fits uses what there is, so that nodes can be compared: the mean
// over the claims it has something for. A claim that gets a volume scores the part of the volume's capacity that
// it asks for, so that the least is wasted; one that is provisioned for, the part of the storage that is still
// free after all that the plan takes from it, so that nodes fill evenly, or 0 if it is not known how much there
// is. A plan with nothing to do scores 0, as all plans of its pod do.
func Score(plan PodPlan) int {
	claims := len(plan.Bindings) + len(plan.Provisions)
	if claims == 0 {
		return 0
	}
	total := 0.0
	for _, b := range plan.Bindings {
		total += share(requestOf(b.Claim), b.Volume.Spec.Capacity[corev1.ResourceStorage])
	}
	for _, p := range plan.Provisions {
		if p.Capacity != nil {
			total += 1 - share(plan.takenFrom(p), freeIn(p.Capacity))
		}
	}
	return int(math.Round(MaxScore * total / float64(claims)))
}

// takenFrom is what all claims of the plan together take from the storage of one.
func (p PodPlan) takenFrom(from PodProvision) resource.Quantity {
	var taken resource.Quantity
	for _, other := range p.Provisions {
		if other.Capacity == from.Capacity {
			taken.Add(requestOf(other.Claim))
		}
	}
	return taken
}

func requestOf(claim *corev1.PersistentVolumeClaim) resource.Quantity {
	return claim.Spec.Resources.Requests[corev1.ResourceStorage]
}

// share is the part of the whole, from 0 to 1; all of it if there is nothing.
func share(part, whole resource.Quantity) float64 {
	if whole.Sign() <= 0 || quantities.Compare(part, whole) >= 0 {
		return 1
	}
	return max(0, part.AsApproximateFloat64()/whole.AsApproximateFloat64())
}
