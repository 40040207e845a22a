package requirements

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	schedulingcorev1 "k8s.io/component-helpers/scheduling/corev1"
)

func pick[T any](r *rand.Rand, from ...T) T { return from[r.IntN(len(from))] }

func some(r *rand.Rand, most int, from ...string) (values []string) {
	for range r.IntN(most + 1) {
		values = append(values, pick(r, from...))
	}
	return values
}

func randomLabels(r *rand.Rand) map[string]string {
	made := map[string]string{}
	for _, key := range some(r, 5, "a", "b", "c", "d", "e", "f") {
		made[key] = pick(r, "", "1", "2", "x", "-9", "10")
	}
	return made
}

// M8 X9: a set selects what the selector of apimachinery does, whatever is in it, and is malformed where that is.
func TestM8SetSelectsAsALabelSelectorDoes(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	matched, malformed := 0, 0
	for range 5_000 {
		selector := &metav1.LabelSelector{}
		if r.IntN(2) == 0 {
			selector.MatchLabels = randomLabels(r)
		}
		for range r.IntN(4) {
			selector.MatchExpressions = append(selector.MatchExpressions, metav1.LabelSelectorRequirement{
				Key:      pick(r, "a", "b", "c", "d", "a b"),
				Operator: pick(r, metav1.LabelSelectorOpIn, metav1.LabelSelectorOpNotIn, metav1.LabelSelectorOpExists, metav1.LabelSelectorOpDoesNotExist, "Near"),
				Values:   some(r, 3, "", "1", "2", "x", "x"),
			})
			if last := &selector.MatchExpressions[len(selector.MatchExpressions)-1]; r.IntN(4) > 0 {
				if last.Operator == metav1.LabelSelectorOpExists || last.Operator == metav1.LabelSelectorOpDoesNotExist {
					last.Values = nil
				}
			}
		}
		want, wrong := metav1.LabelSelectorAsSelector(selector)
		got, err := OfSelector(selector)
		require.Equal(t, wrong == nil, err == nil, "%v: %v and %v", selector, wrong, err)
		if err != nil {
			malformed++
			continue
		}
		for range 5 {
			actual := randomLabels(r)
			require.Equal(t, want.Matches(labels.Set(actual)), got.Matches(actual), "%v on %v", selector, actual)
			if got.Matches(actual) {
				matched++
			}
		}
	}
	assert.Greater(t, matched, 500)
	assert.Greater(t, malformed, 500)
}

// M10 X9: a set selects the nodes that component-helpers selects by their labels.
func TestM10SetSelectsAsANodeSelectorTermDoes(t *testing.T) {
	r := rand.New(rand.NewPCG(2, 2))
	matched := 0
	for range 5_000 {
		var term corev1.NodeSelectorTerm
		for range r.IntN(4) {
			term.MatchExpressions = append(term.MatchExpressions, corev1.NodeSelectorRequirement{
				Key: pick(r, "a", "b", "c", "a"),
				Operator: pick(r, corev1.NodeSelectorOpIn, corev1.NodeSelectorOpNotIn, corev1.NodeSelectorOpExists, corev1.NodeSelectorOpDoesNotExist,
					corev1.NodeSelectorOpGt, corev1.NodeSelectorOpLt),
				Values: some(r, 2, "1", "2", "x", "5"),
			})
		}
		if r.IntN(4) == 0 {
			term.MatchFields = []corev1.NodeSelectorRequirement{{Key: "metadata.name", Operator: pick(r, corev1.NodeSelectorOpIn, corev1.NodeSelectorOpGt), Values: some(r, 2, "node")}}
		}
		got, err := OfTerm(&term)
		for range 5 {
			node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Labels: randomLabels(r)}}
			want, _ := schedulingcorev1.MatchNodeSelectorTerms(node, &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{term}})
			require.Equal(t, want, err == nil && got.Matches(node.Labels), "%v on %v: %v", term, node.Labels, err)
			if want {
				matched++
			}
		}
	}
	assert.Greater(t, matched, 500)
}
