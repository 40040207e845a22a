package reclaim

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/pvbind/pvbind/phase"
	"github.com/pvbind/pvbind/storageclass"
)

// Rules is what a decision must know of the controller that asks. In its zero
// value nobody is registered and nothing is migrated. No name in it is empty.
type Rules struct {
	// Migrations says which in-tree provisioners a CSI driver replaced. Their
	// volumes are that driver's to reclaim.
	Migrations storageclass.Migrations

	// Deleters holds the provisioners for which deleters are registered: they
	// delete the volumes that those made.
	Deleters sets.Set[string]

	// SourceDeleters holds the volume sources, as SourceName spells them, for
	// which deleters are registered: they delete the volumes of that source that
	// nobody is said to have made.
	SourceDeleters sets.Set[string]

	// Recyclers holds the volume sources, as SourceName spells them, for which
	// recyclers are registered.
	Recyclers sets.Set[string]
}

func (r Rules) migrated(provisioner string) bool {
	return r.Migrations.Driver(provisioner) != ""
}

// provisioner returns who made the volume, "" if nobody is said to have.
func provisioner(volume *corev1.PersistentVolume) string {
	return volume.Annotations[phase.ProvisionedByAnnotation]
}
