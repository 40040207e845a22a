package quantities_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/pvbind/pvbind/binding/internal/quantities"
)

func TestPercent(t *testing.T) {
	for _, c := range []struct {
		part, whole string
		want        int
	}{
		{"0", "100", 0}, {"29", "100", 29}, {"57", "100", 57}, {"1", "3", 33}, {"2", "3", 66}, {"99999", "100000", 99},
		{"100", "100", 100}, {"101", "100", 100}, {"0", "0", 100}, {"5", "0", 100}, {"-5", "100", 0}, {"5", "-100", 100},
		{"4Ei", "7Ei", 57}, {"500m", "1", 50}, {"1e10000000", "3e10000000", 33},
		{"1", "1e10000000", 0}, {"1e10000000", "1", 100},
	} {
		assert.Equal(t, c.want, quantities.Percent(resource.MustParse(c.part), resource.MustParse(c.whole)), "%s of %s", c.part, c.whole)
	}
}
