package binding

import (
	"cmp"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/pvbind/pvbind/accessmode"
	"github.com/pvbind/pvbind/binding/internal/quantities"
	"github.com/pvbind/pvbind/binding/match"
	"github.com/pvbind/pvbind/storageclass"
)

// stock is a volume in an order: by capacity, then by name.
type stock struct{ *corev1.PersistentVolume }

func (s stock) amount() resource.Quantity {
	capacity, _ := match.CapacityOf(s.PersistentVolume)
	return capacity
}

func (s stock) tie(r rank) int {
	if !exact(r.size) {
		if order := quantities.Compare(s.amount(), r.quantity); order != 0 {
			return order
		}
	}
	return cmp.Compare(s.Name, r.name)
}

// group is what volumes have in common, and with a claim, to be chosen from by size alone (M5 to M7).
type group struct {
	volumeMode      corev1.PersistentVolumeMode
	class           string
	attributesClass string
}

func groupFor(c *match.Criteria) group {
	return group{volumeMode: c.VolumeMode, class: c.Class, attributesClass: c.AttributesClass}
}

func groupOf(volume *corev1.PersistentVolume) group {
	return group{
		volumeMode:      match.VolumeModeOf(volume.Spec.VolumeMode),
		class:           storageclass.OfVolume(volume),
		attributesClass: match.AttributesClassOf(volume),
	}
}

// filing is where on a shelf a volume is kept. It is worked out from the volume whenever that is put in
// or taken out.
type filing struct {
	stock
	rank
	modes  accessmode.Set
	places places
}

// fileOf is the filing of a well-formed volume.
func fileOf(volume *corev1.PersistentVolume) filing {
	capacity, _ := match.CapacityOf(volume)
	modes, _ := match.ModesOf(volume)
	return filing{
		stock:  stock{volume},
		rank:   rank{size: sizeOf(capacity), quantity: capacity, name: volume.Name},
		modes:  modes,
		places: placesOf(match.RequiredAffinity(volume)),
	}
}
