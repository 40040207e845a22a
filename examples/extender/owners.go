package extender

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/pvbind/pvbind/binding"
	"github.com/pvbind/pvbind/phase"
)

// owners are the claims that were bound to a volume and name it, by the volume's name. Such a volume is theirs even if
// it has lost its claimRef (M2); of several the first by name counts.
type owners map[string][]binding.Key

// ownedBy is the volume that the claim owns; "" if none.
func ownedBy(claim *corev1.PersistentVolumeClaim) string {
	if claim == nil || !phase.BindCompleted(claim) {
		return ""
	}
	return claim.Spec.VolumeName
}

func (o owners) add(volume string, claim binding.Key) (first binding.Key) {
	if at, known := slices.BinarySearchFunc(o[volume], claim, compareKeys); !known {
		o[volume] = slices.Insert(o[volume], at, claim)
	}
	return o.first(volume)
}

func (o owners) remove(volume string, claim binding.Key) (first binding.Key) {
	if at, known := slices.BinarySearchFunc(o[volume], claim, compareKeys); known {
		o[volume] = slices.Delete(o[volume], at, at+1)
	}
	return o.first(volume)
}

func (o owners) first(volume string) binding.Key {
	if len(o[volume]) == 0 {
		delete(o, volume)
		return binding.Key{}
	}
	return o[volume][0]
}

func compareKeys(a, b binding.Key) int {
	return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
}
