package scheduling_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	storagev1 "k8s.io/api/storage/v1"

	"github.com/pvbind/pvbind/binding/index"
	. "github.com/pvbind/pvbind/binding/internal/testkit"
	"github.com/pvbind/pvbind/binding/obj"
	"github.com/pvbind/pvbind/binding/scheduling"
)

// What a plan uses, in percent of what there is. The packing shape scores as many.
func TestS10Score(t *testing.T) {
	gets := func(request, capacity, class string) index.Binding {
		return index.Binding{Claim: claimNamed("data", Requesting(request), RequestingClass(&class)), Volume: storedVolume("pv-a", Sized(capacity), OfClass(class))}
	}
	from := func(request, class string, pool *storagev1.CSIStorageCapacity) scheduling.Provision {
		return scheduling.Provision{Claim: claimNamed("data", Requesting(request), RequestingClass(&class)), Capacity: pool}
	}
	holding := func(size string) *storagev1.CSIStorageCapacity { return capacityIn("a", size) }
	onlyLimit := &storagev1.CSIStorageCapacity{MaximumVolumeSize: quantity("20Gi")}
	unsized := gets("0", "1Gi", "fast")
	unsized.Volume.Spec.Capacity = nil
	type (
		volumes = []index.Binding
		storage = []scheduling.Provision
	)
	for name, c := range map[string]struct {
		bindings   volumes
		provisions storage
		want       int
	}{
		"nothing to do":                    {nil, nil, 0},
		"no waste":                         {volumes{gets("10Gi", "10Gi", "fast")}, nil, 100},
		"a quarter used":                   {volumes{gets("10Gi", "40Gi", "fast")}, nil, 25},
		"a third, rounded down":            {volumes{gets("20Gi", "30Gi", "fast")}, nil, 66},
		"two of a class, summed up":        {volumes{gets("10Gi", "10Gi", "fast"), gets("10Gi", "40Gi", "fast")}, nil, 40},
		"two classes, the mean":            {volumes{gets("10Gi", "10Gi", "fast"), gets("10Gi", "40Gi", "slow")}, nil, 63},
		"an empty volume":                  {volumes{gets("0", "0", "fast")}, nil, 100},
		"without capacity":                 {volumes{unsized}, nil, 100},
		"nothing requested":                {volumes{gets("0", "10Gi", "fast")}, nil, 0},
		"beyond what 64 bits can do":       {volumes{gets("4Ei", "4Ei", "fast"), gets("1Gi", "7Ei", "fast")}, nil, 36},
		"10 of 100, provisioned":           {nil, storage{from("10Gi", "fast", holding("100Gi"))}, 10},
		"10 of 50":                         {nil, storage{from("10Gi", "fast", holding("50Gi"))}, 20},
		"10 of 10":                         {nil, storage{from("10Gi", "fast", holding("10Gi"))}, 100},
		"two that fill the pool":           {nil, storage{from("50Gi", "fast", holding("100Gi")), from("50Gi", "fast", holding("100Gi"))}, 100},
		"more than there is (S7)":          {nil, storage{from("60Gi", "fast", holding("100Gi")), from("60Gi", "fast", holding("100Gi"))}, 100},
		"two classes, provisioned":         {nil, storage{from("10Gi", "fast", holding("100Gi")), from("10Gi", "slow", holding("50Gi"))}, 15},
		"only the largest volume is known": {nil, storage{from("10Gi", "fast", onlyLimit)}, 50},
		"nobody knows what is left":        {nil, storage{from("10Gi", "fast", nil)}, 0},
		"that does not count":              {nil, storage{from("10Gi", "fast", nil), from("10Gi", "slow", holding("50Gi"))}, 20},
		"a volume and a pool":              {volumes{gets("50Gi", "100Gi", "slow")}, storage{from("10Gi", "fast", holding("10Gi"))}, 50},
	} {
		t.Run(name, func(t *testing.T) {
			plan := scheduling.Plan{Bindings: c.bindings, Provisions: c.provisions}
			assert.Equal(t, c.want, scheduling.PackingShape().Score(plan))
			assert.Zero(t, scheduling.Shape{}.Score(plan), "scoring is off")
			if len(c.bindings)+len(c.provisions) == 1 && c.want > 0 {
				assert.Equal(t, 100-c.want, scheduling.DefaultShape().Score(plan))
			}
		})
	}
}

// What kube-scheduler's own tests expect of shapes.
func TestS10Shape(t *testing.T) {
	steep := scheduling.Shape{{50, 0}, {80, 3}, {100, 5}}
	for _, c := range []struct {
		shape    scheduling.Shape
		hdd, ssd string // what is requested of 100Gi of each
		want     int
	}{
		{scheduling.PackingShape(), "0", "0", 0},
		{scheduling.PackingShape(), "0", "30Gi", 15},
		{scheduling.PackingShape(), "30Gi", "60Gi", 45},
		{scheduling.PackingShape(), "50Gi", "100Gi", 75},
		{scheduling.PackingShape(), "100Gi", "100Gi", 100},
		{scheduling.DefaultShape(), "0", "0", 100},
		{scheduling.DefaultShape(), "10Gi", "10Gi", 90},
		{scheduling.DefaultShape(), "100Gi", "100Gi", 0},
		{steep, "0", "30Gi", 0},
		{steep, "30Gi", "60Gi", 5},
		{steep, "50Gi", "100Gi", 25},
		{steep, "90Gi", "90Gi", 40},
		{steep, "100Gi", "100Gi", 50},
		{scheduling.Shape{{0, 9}, {30, 0}}, "7Gi", "7Gi", 69}, // 90 - 21
		{scheduling.Shape{{0, 9}, {70, 0}}, "1Gi", "1Gi", 89}, // 90 - 1.28…
		{scheduling.Shape{{40, 7}}, "10Gi", "90Gi", 70},
	} {
		t.Run(c.hdd+" "+c.ssd, func(t *testing.T) {
			var plan scheduling.Plan
			for class, request := range map[string]string{"hdd": c.hdd, "ssd": c.ssd} {
				plan.Bindings = append(plan.Bindings, index.Binding{Claim: claimNamed(class, Requesting(request)),
					Volume: storedVolume("pv-"+class, Sized("100Gi"), OfClass(class))})
			}
			assert.Equal(t, c.want, c.shape.Score(plan), c.shape)
			assert.NoError(t, c.shape.Validate())
		})
	}
}

func TestS10ShapeIsValidated(t *testing.T) {
	for field, shape := range map[string]scheduling.Shape{
		"[0].utilization": {{-1, 0}},
		"[1].utilization": {{0, 0}, {101, 0}},
		"[2].utilization": {{0, 0}, {50, 0}, {50, 1}},
		"[1].score":       {{0, 0}, {50, 11}},
		"[0].score":       {{0, -1}},
	} {
		var invalid *obj.InvalidError
		require.ErrorAs(t, shape.Validate(), &invalid)
		assert.Equal(t, "shape", invalid.Object)
		assert.Equal(t, field, invalid.Field)
	}
	assert.NoError(t, scheduling.Shape{}.Validate())
}
