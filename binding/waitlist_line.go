package binding

import (
	"math"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pvbind/pvbind/binding/internal/zeromap"
	"github.com/pvbind/pvbind/binding/match"
)

// line are the waiting claims of one selector.
type line struct {
	rack[want]
	selector match.LabelSelector
	asked    []label // it is found by each of these
}

type lines map[*line]struct{}

// open begins a line. It is found by that part of its selector by which the fewest lines are found already: where
// all ask for the same application and each for a part of it, by the part.
func (q *queue) open(c *match.Criteria) *line {
	l := &line{selector: c.Selector}
	fewest := math.MaxInt
	for _, asked := range askedLabels(c.Claim.Spec.Selector) {
		count := 0
		for _, label := range asked {
			count += len(q.asking[label])
		}
		if count < fewest {
			l.asked, fewest = asked, count
		}
	}
	if len(l.asked) == 0 {
		zeromap.Put(&q.odd, l, struct{}{})
	}
	for _, label := range l.asked {
		if q.asking[label] == nil {
			zeromap.Put(&q.asking, label, lines{})
		}
		q.asking[label][l] = struct{}{}
	}
	return l
}

func (q *queue) close(l *line) {
	delete(q.odd, l)
	for _, label := range l.asked {
		if delete(q.asking[label], l); len(q.asking[label]) == 0 {
			delete(q.asking, label)
		}
	}
}

// askedLabels are the parts of a selector that ask for labels of one key, of which a volume must have one.
func askedLabels(selector *metav1.LabelSelector) (parts [][]label) {
	for key, value := range selector.MatchLabels {
		parts = append(parts, []label{{key, value}})
	}
	for _, part := range selector.MatchExpressions {
		if part.Operator != metav1.LabelSelectorOpIn {
			continue
		}
		var asked []label
		for i, value := range part.Values {
			if !slices.Contains(part.Values[:i], value) {
				asked = append(asked, label{part.Key, value})
			}
		}
		parts = append(parts, asked)
	}
	return parts
}
