package quantities

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/resource"
)

// Quantities are in this order, and each is equal to itself in another spelling. Those of the sizes that volumes have
// are compared in TestSizes.
func TestCompareQuantities(t *testing.T) {
	ordered := [][2]string{
		{"-1e10000000", "-10e9999999"}, {"-1e9999999", "-1e9999999"}, {"-1e20", "-100E"}, {"-1n", "-1n"}, {"0", "0e99999"}, {"1n", "1n"}, {"1m", "0.001"},
		{"9E", "9000P"}, {"9.5e20", "950E"}, {"1e21", "1000E"}, {"2e21", "2000E"}, {"1e22", "10000E"}, {"1e9999999", "10e9999998"},
		{"9e9999999", "0.9e10000000"}, {"1e10000000", "10e9999999"}, {"1e1000000000", "100e999999998"},
	}
	began := time.Now()
	for i, a := range ordered {
		for j, b := range ordered {
			want := min(1, max(-1, i-j))
			for _, text := range []string{a[0], a[1]} {
				assert.Equal(t, want, Compare(resource.MustParse(text), resource.MustParse(b[0])), "%s and %s", text, b[0])
			}
		}
	}
	assert.Less(t, time.Since(began), 10*time.Second)
}

// What an annotation says may be anything. The last two would take minutes to read.
func TestParseQuantity(t *testing.T) {
	for _, text := range []string{"5Gi", "5E", "5Ei", "5e9", "5e-3", "5e+999"} {
		got, err := Parse(text)
		require.NoError(t, err, text)
		assert.Equal(t, resource.MustParse(text), got)
	}
	for _, text := range []string{"", "much", "e", "5e-1000", "5e10000", "1e-1000000000", "1E-1000000000"} {
		_, err := Parse(text)
		assert.Error(t, err, text)
	}
}

// X9: sums and shares are those of arithmetic where that is quick, and in order where it is not.
func TestX9SumAndShare(t *testing.T) {
	q := resource.MustParse
	for _, test := range []struct {
		part, whole, sum string
		share            float64
	}{
		{"0", "0", "0", 1}, {"1Gi", "0", "1Gi", 1}, {"-1", "5", "4", 0}, {"0", "5Gi", "5Gi", 0},
		{"1Gi", "4Gi", "5Gi", 0.25}, {"5Gi", "4Gi", "9Gi", 1}, {"1", "1e10", "10000000001", 1e-10},
		{"1e10000000", "4e10000000", "5e10000000", 0.25}, {"1", "1e10000000", "1e10000000", 0},
		{"1e9999999", "1e10000000", "11e9999999", 0.1},
		{"1e1000000000", "2e1000000000", "3e1000000000", 0.5},
	} {
		assert.InDelta(t, test.share, Share(q(test.part), q(test.whole)), 1e-6, "%s of %s", test.part, test.whole)
		for _, sum := range []resource.Quantity{Sum(q(test.part), q(test.whole)), Sum(q(test.whole), q(test.part))} {
			assert.Zero(t, Compare(q(test.sum), sum), "%s and %s: %s", test.part, test.whole, sum.String())
		}
	}
}

// X9: a quantity of many digits is not written out, and takes no longer than others.
func TestX9Text(t *testing.T) {
	many := strings.Repeat("7", 100_000) + strings.Repeat("0", 100_000)
	for text, want := range map[string]string{
		"5Gi": "5Gi", "1500m": "1500m", "1e10000000": "10e9999999", "-1e10000000": "-10e9999999", many: "about 1e200000", "-" + many: "about -1e200000",
	} {
		began := time.Now()
		assert.Equal(t, want, Text(resource.MustParse(text)))
		assert.Less(t, time.Since(began), 5*time.Second)
	}
}
