package scheduling_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"

	"github.com/pvbind/pvbind/binding/index"
	. "github.com/pvbind/pvbind/binding/internal/testkit"
	"github.com/pvbind/pvbind/binding/scheduling"
)

func TestScore(t *testing.T) {
	claim := claimNamed("data") // asks for 10Gi
	gets := func(capacity string) index.Binding {
		return index.Binding{Claim: claim, Volume: storedVolume("pv-a", Sized(capacity))}
	}
	from := func(c *storagev1.CSIStorageCapacity) scheduling.Provision {
		return scheduling.Provision{Claim: claim, Capacity: c}
	}
	pool := capacityIn("a", "40Gi")
	onlyLimit := &storagev1.CSIStorageCapacity{MaximumVolumeSize: quantity("20Gi")}
	zero := claimNamed("zero", Requesting("0"))
	for name, c := range map[string]struct {
		bindings   []index.Binding
		provisions []scheduling.Provision
		want       int
	}{
		"nothing to do":              {nil, nil, 0},
		"no waste":                   {[]index.Binding{gets("10Gi")}, nil, 100},
		"a quarter used":             {[]index.Binding{gets("40Gi")}, nil, 25},
		"a third, rounded":           {[]index.Binding{gets("30Gi")}, nil, 33},
		"two volumes":                {[]index.Binding{gets("10Gi"), gets("40Gi")}, nil, 63},
		"an empty volume":            {[]index.Binding{{Claim: zero, Volume: storedVolume("pv-a", Sized("0"))}}, nil, 100},
		"nothing requested":          {[]index.Binding{{Claim: zero, Volume: storedVolume("pv-a")}}, nil, 0},
		"three quarters left":        {nil, []scheduling.Provision{from(pool)}, 75},
		"two from one pool":          {nil, []scheduling.Provision{from(pool), from(pool)}, 50},
		"more than there is":         {nil, []scheduling.Provision{from(pool), from(pool), from(pool), from(pool), from(pool)}, 0},
		"from two pools":             {nil, []scheduling.Provision{from(pool), from(onlyLimit)}, 63},
		"nobody knows what is left":  {nil, []scheduling.Provision{from(nil)}, 0},
		"nothing is said of it":      {nil, []scheduling.Provision{from(&storagev1.CSIStorageCapacity{})}, 0},
		"a volume and a pool":        {[]index.Binding{gets("10Gi")}, []scheduling.Provision{from(onlyLimit)}, 75},
		"a volume and who knows":     {[]index.Binding{gets("10Gi")}, []scheduling.Provision{from(nil)}, 50},
		"beyond what 64 bits can do": {[]index.Binding{gets("10Ei"), gets("20Gi")}, nil, 25},
	} {
		t.Run(name, func(t *testing.T) {
			plan := scheduling.Plan{Node: &corev1.Node{}, Bindings: c.bindings, Provisions: c.provisions}
			assert.Equal(t, c.want, scheduling.Score(plan))
		})
	}
}
