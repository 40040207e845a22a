package scheduling

import (
	"fmt"
	"math"
	"slices"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/pvbind/pvbind/binding/internal/quantities"
	"github.com/pvbind/pvbind/binding/obj"
	"github.com/pvbind/pvbind/storageclass"
)

// MaxScore is the best score that a Shape gives.
const MaxScore = 100

// Shape says how good it is that a plan uses so much of the storage on its node. It is the shape in kube-scheduler's
// VolumeBindingArgs: straight lines between the points, and beyond the first and the last one the score of that point.
//
// The zero Shape scores every plan 0, which is what kube-scheduler does until 1.36 unless its feature gate
// StorageCapacityScoring is on. DefaultShape returns that of 1.37.
type Shape []ShapePoint

// ShapePoint is a point of a Shape. It can be converted from kube-scheduler's UtilizationShapePoint.
type ShapePoint struct {
	// Utilization is how much of the storage is used, in percent.
	Utilization int32
	// Score is how good that is, from 0 to 10.
	Score int32
}

// maxPointScore is the best score of a ShapePoint.
const maxPointScore = 10

// DefaultShape returns the shape that kube-scheduler has by default where it scores at all: the less is used, the better.
func DefaultShape() Shape { return Shape{{0, maxPointScore}, {100, 0}} }

// PackingShape returns the shape that strands least: the more is used, the better. A volume then goes to a claim that
// requests nearly all of it, and large storage stays free for large claims.
func PackingShape() Shape { return Shape{{0, 0}, {100, maxPointScore}} }

// Validate returns an *obj.InvalidError if kube-scheduler would not take the shape for its configuration. It would not take
// one without points either.
func (s Shape) Validate() error {
	for i, point := range s {
		field := fmt.Sprintf("[%d]", i)
		switch {
		case point.Utilization < 0 || point.Utilization > 100:
			return invalidShape(field+".utilization", fmt.Sprintf("%d is not between 0 and 100", point.Utilization))
		case i > 0 && point.Utilization <= s[i-1].Utilization:
			return invalidShape(field+".utilization", fmt.Sprintf("%d is not more than that of the point before", point.Utilization))
		case point.Score < 0 || point.Score > maxPointScore:
			return invalidShape(field+".score", fmt.Sprintf("%d is not between 0 and %d", point.Score, maxPointScore))
		}
	}
	return nil
}

func invalidShape(field, problem string) error {
	return &obj.InvalidError{Object: "shape", Field: field, Problem: problem}
}

// Score returns from 0 to MaxScore how well a plan that fits uses the storage on its node, so that nodes can be compared, as
// kube-scheduler does: the mean of the scores of its classes (S10). If the plan gives any claim a volume that exists, only
// these volumes count: of each class, the part of their capacity that the claims request. Otherwise what is provisioned
// counts: of each class, the part of the free storage that the claims request. Claims whose storage is not known do not
// count. A plan in which nothing counts scores 0.
func (s Shape) Score(plan Plan) int {
	if len(s) == 0 {
		return 0
	}
	uses := usesOf(plan)
	if len(uses) == 0 {
		return 0
	}
	total := 0
	for _, use := range uses {
		total += s.at(quantities.Percent(use.requested, use.capacity))
	}
	return int(math.Round(float64(total) / float64(len(uses))))
}

// at returns the score for so many percent. Between two points it is rounded towards the first one's.
func (s Shape) at(utilization int) int {
	const scale = MaxScore / maxPointScore
	after := slices.IndexFunc(s, func(point ShapePoint) bool { return utilization <= int(point.Utilization) })
	switch after {
	case 0:
		return int(s[0].Score) * scale
	case -1:
		return int(s[len(s)-1].Score) * scale
	}
	from, to := s[after-1], s[after]
	rise, run := int(to.Score-from.Score)*scale, int(to.Utilization-from.Utilization)
	return int(from.Score)*scale + rise*(utilization-int(from.Utilization))/run
}

// use is how much of the storage of a class a plan uses.
type use struct {
	class               string
	requested, capacity resource.Quantity
}

// usesOf returns what the plan uses of each class: of volumes, or if it has none of what can be provisioned from.
func usesOf(plan Plan) []use {
	var uses []use
	of := func(class string) *use {
		at := slices.IndexFunc(uses, func(u use) bool { return u.class == class })
		if at < 0 {
			at, uses = len(uses), append(uses, use{class: class})
		}
		return &uses[at]
	}
	for _, b := range plan.Bindings {
		u := of(storageclass.OfVolume(b.Volume))
		u.requested = quantities.Sum(u.requested, *b.Claim.Spec.Resources.Requests.Storage())
		u.capacity = quantities.Sum(u.capacity, *b.Volume.Spec.Capacity.Storage())
	}
	if len(plan.Bindings) > 0 {
		return uses
	}
	for _, p := range plan.Provisions {
		if p.Capacity != nil {
			u := of(storageclass.OfClaim(p.Claim))
			u.requested = quantities.Sum(u.requested, *p.Claim.Spec.Resources.Requests.Storage())
			u.capacity = freeIn(p.Capacity) // once, however many claims take from it
		}
	}
	return uses
}
