package quantities

import (
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
