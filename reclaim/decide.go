package reclaim

import (
	"cmp"
	"fmt"
	"reflect"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/pvbind/pvbind/phase"
	"github.com/pvbind/pvbind/storageclass"
)

// Options holds what a decision depends on beside the volume. In its zero value
// nothing is registered and nothing is migrated. No name in it is empty.
type Options struct {
	// Migrations says which in-tree provisioners a CSI driver replaced. That driver
	// reclaims their volumes.
	Migrations storageclass.Migrations

	// Deleters holds the provisioners for which deleters are registered. They
	// delete the volumes that those made.
	Deleters sets.Set[string]

	// SourceDeleters holds the volume sources, as SourceName spells them, for
	// which deleters are registered. They delete the volumes of that source that
	// no provisioner made.
	SourceDeleters sets.Set[string]

	// Recyclers holds the volume sources, as SourceName spells them, for which
	// recyclers are registered.
	Recyclers sets.Set[string]
}

// Action is what to do with a volume that is to be reclaimed.
type Action string

// The actions.
const (
	// LeaveToProvisioner means that an external provisioner or a CSI driver reclaims
	// the volume: do not touch it, not even its phase (R1, R3).
	LeaveToProvisioner Action = "LeaveToProvisioner"
	// Keep means that the policy is Retain: the storage is never touched (R2).
	Keep Action = "Keep"
	// RunDeleter means to run the deleter that is registered under Hook: for the
	// provisioner that made the volume or, if none did, for its source (R3).
	RunDeleter Action = "RunDeleter"
	// RunRecycler means to run the recycler that is registered for the source Hook,
	// once no pod uses the volume (R4).
	RunRecycler Action = "RunRecycler"
	// Fail means that the volume cannot be reclaimed: phase Failed, with an event
	// (R3 to R5).
	Fail Action = "Fail"
)

// Reasons of the Warning events that go with a reclaim that fails.
const (
	EventFailedDelete  = "VolumeFailedDelete"
	EventFailedRecycle = "VolumeFailedRecycle"
	EventUnknownPolicy = "VolumeUnknownReclaimPolicy"
)

// A Decision is what Decide returns.
type Decision struct {
	Action      Action
	Hook        string // the registered name to run, for RunDeleter and RunRecycler
	By          string // the CSI driver or provisioner that reclaims it, for LeaveToProvisioner
	EventReason string // the reason of the Warning event, for Fail
	Message     string // why, in one line; never empty
}

// Decide returns what to do with a volume that is to be reclaimed, whatever its
// policy. It does not look at pods: see BlockRecycling (R1 to R5).
func Decide(volume *corev1.PersistentVolume, options Options) Decision {
	if driver := migratedTo(volume, options); driver != "" {
		return leaveTo("CSI driver %q reclaims it", driver)
	}
	switch policy := volume.Spec.PersistentVolumeReclaimPolicy; policy {
	case corev1.PersistentVolumeReclaimRetain:
		return Decision{Action: Keep, Message: "its reclaim policy is Retain"}
	case corev1.PersistentVolumeReclaimDelete:
		return decideDelete(volume, options)
	case corev1.PersistentVolumeReclaimRecycle:
		return decideRecycle(volume, options)
	default:
		return fail(EventUnknownPolicy, "persistentVolumeReclaimPolicy %q is unknown", string(policy))
	}
}

// migratedTo returns the CSI driver that took the volume over, "" if none did. A
// migration counts before the annotation for it is written, for only the driver
// can reach the storage.
func migratedTo(volume *corev1.PersistentVolume, options Options) string {
	return cmp.Or(volume.Annotations[storageclass.MigratedToAnnotation], options.Migrations.Driver(provisioner(volume)))
}

// decideDelete decides by the provisioner alone, if there is one: only what made the storage can find it, whatever source
// the volume has.
func decideDelete(volume *corev1.PersistentVolume, options Options) Decision {
	name, source := provisioner(volume), SourceName(volume)
	switch {
	case name == "" && volume.Spec.CSI != nil:
		return leaveTo("CSI driver %q deletes it", volume.Spec.CSI.Driver)
	case name == "" && options.SourceDeleters.Has(source):
		return Decision{Action: RunDeleter, Hook: source, Message: fmt.Sprintf("the deleter for %s volumes deletes it", source)}
	case name == "":
		return fail(EventFailedDelete, "no deleter for %s volumes is registered", cmp.Or(source, "sourceless"))
	case options.Deleters.Has(name):
		return Decision{Action: RunDeleter, Hook: name, Message: fmt.Sprintf("provisioner %q, which made it, deletes it", name)}
	case !storageclass.InTree(name):
		return leaveTo("external provisioner %q, which made it, deletes it", name)
	}
	return fail(EventFailedDelete, "no deleter for provisioner %q is registered", name)
}

func decideRecycle(volume *corev1.PersistentVolume, options Options) Decision {
	source := SourceName(volume)
	if options.Recyclers.Has(source) {
		return Decision{Action: RunRecycler, Hook: source, Message: fmt.Sprintf("the recycler for %s volumes scrubs it", source)}
	}
	return fail(EventFailedRecycle, "no recycler for %s volumes is registered", cmp.Or(source, "sourceless"))
}

func leaveTo(format, name string) Decision {
	return Decision{Action: LeaveToProvisioner, By: name, Message: fmt.Sprintf(format, name)}
}

func fail(reason, format, name string) Decision {
	return Decision{Action: Fail, EventReason: reason, Message: fmt.Sprintf(format, name)}
}

// provisioner returns the provisioner that made the volume, "" if none did.
func provisioner(volume *corev1.PersistentVolume) string {
	return volume.Annotations[phase.ProvisionedByAnnotation]
}

// SourceName returns the volume's source, by the name of the field of its spec:
// "hostPath", "nfs", "csi", "local" and so on. It returns "" if no such field is
// set, and the first in the order of the API if several are, which the API server
// does not admit.
func SourceName(volume *corev1.PersistentVolume) string {
	// By reflection, for a list of the fields kept here would miss new ones.
	source := reflect.ValueOf(&volume.Spec.PersistentVolumeSource).Elem()
	for i := range source.NumField() {
		if !source.Field(i).IsNil() {
			name, _, _ := strings.Cut(source.Type().Field(i).Tag.Get("json"), ",")
			return name
		}
	}
	return ""
}
