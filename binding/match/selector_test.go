package match

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// M8: a list of labels that is not compiled selects what it would select compiled, and is malformed only
// where that would be.
func TestSelectorOfLabels(t *testing.T) {
	long := strings.Repeat("x", 63)
	parts := []string{"", "a", "B", "7", "-", ".", "_", "/", "a.b", "a-b", "a..b", "a.-b", "-a", "a-", "A.b/c", "a.b/C", "a/b/c", "é", " ", long, long + "x",
		strings.Repeat("d.", 126) + "d", strings.Repeat("d.", 127) + "d"}
	var words []string
	for _, a := range parts {
		for _, b := range append(parts, "/x") {
			words = append(words, a, a+b, a+"/"+b)
		}
	}
	r := rand.New(rand.NewPCG(1, 1))
	claim, _ := plainPair()
	quick := 0
	for _, key := range words {
		for _, value := range []string{"", "gold", words[r.IntN(len(words))]} {
			claim.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{key: value, "tier": "gold"}}
			compiled, wantErr := metav1.LabelSelectorAsSelector(claim.Spec.Selector)
			got, err := selectorOf(claim.Spec.Selector)
			require.Equal(t, wantErr, err, "%q=%q", key, value)
			if err != nil {
				continue
			}
			if _, ok := got.(allOf); ok {
				quick++
			}
			for _, has := range []labels.Set{nil, {key: value}, {key: value, "tier": "gold"}, {key: value + "x", "tier": "gold"}, {"tier": "gold"}} {
				require.Equal(t, compiled.Matches(has), got.Matches(has), "%q=%q and %v", key, value, has)
			}
		}
	}
	assert.Greater(t, quick, 100, "some are not compiled")
}

// The labels that there are in practice are not compiled.
func TestUsualLabelsArePlain(t *testing.T) {
	for key, value := range map[string]string{
		"tier": "gold", "app.kubernetes.io/name": "db-0", "topology.kubernetes.io/zone": "eu-1a", "x": "", "release": "v1.2_3",
	} {
		assert.True(t, plainLabels(map[string]string{key: value}), "%s=%s", key, value)
	}
}
