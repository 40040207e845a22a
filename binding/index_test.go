package binding_test

import (
	"testing"
)

// A hundred thousand times, in worlds of few volumes and of many, after random changes.
func TestIndexAgreesWithTheList(t *testing.T) {
	for _, c := range []struct {
		name                    string
		worlds, volumes, rounds int
	}{
		{"few volumes", 30_000, 10, 3},
		{"some volumes", 1_000, 40, 10},
		{"many volumes", 5, 4_000, 40},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			seed := seedOf(t)
			for n := range max(1, worlds(c.worlds)) {
				x := newIndexed(seed, uint64(n), c.volumes)
				x.load(x.IntN(c.volumes + 1))
				for range c.rounds {
					for range x.IntN(1 + c.volumes/2) {
						x.change(t)
					}
					x.requireAgreement(t)
				}
			}
		})
	}
}
