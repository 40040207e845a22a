package reclaim

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/pvbind/pvbind/storageclass"
)

// Verb is what to do with a volume that is to be reclaimed.
type Verb string

// The verbs.
const (
	// StandDown: somebody else reclaims the volume; do not touch it, not even
	// its phase (rules R1 and R3).
	StandDown Verb = "StandDown"
	// Keep: the policy is Retain; the storage is never touched (R2).
	Keep Verb = "Keep"
	// RunDeleter: run the deleter that is registered under Hook: for the
	// provisioner that made the volume or, if nobody is said to have, for its
	// source (R3).
	RunDeleter Verb = "RunDeleter"
	// RunRecycler: run the recycler that is registered for the source Hook, once
	// no pod uses the volume (R4).
	RunRecycler Verb = "RunRecycler"
	// Fail: the volume cannot be reclaimed; phase Failed, with an event (R3 to
	// R5).
	Fail Verb = "Fail"
)

// Reasons of the Warning events that go with a reclaim that fails.
const (
	EventFailedDelete  = "VolumeFailedDelete"
	EventFailedRecycle = "VolumeFailedRecycle"
	EventUnknownPolicy = "VolumeUnknownReclaimPolicy"
)

// Decision is the answer of Decide.
type Decision struct {
	Verb        Verb
	Hook        string // the registered name to run, for RunDeleter and RunRecycler
	By          string // the CSI driver or provisioner that reclaims it, for StandDown
	EventReason string // the reason of the Warning event, for Fail
	Message     string // why, in one line; never empty
}

// Decide returns what to do with a volume that is to be reclaimed (rules R1 to
// R5), whatever its policy. It does not look at pods: see BlockRecycling.
func Decide(volume *corev1.PersistentVolume, rules Rules) Decision {
	if driver := servedBy(volume, rules); driver != "" {
		return standDown(driver, "CSI driver %q reclaims it")
	}
	switch policy := volume.Spec.PersistentVolumeReclaimPolicy; policy {
	case corev1.PersistentVolumeReclaimRetain:
		return Decision{Verb: Keep, Message: "its reclaim policy is Retain"}
	case corev1.PersistentVolumeReclaimDelete:
		return decideDelete(volume, rules)
	case corev1.PersistentVolumeReclaimRecycle:
		return decideRecycle(volume, rules)
	default:
		return fail(EventUnknownPolicy, "persistentVolumeReclaimPolicy %q is unknown", string(policy))
	}
}

// servedBy returns the CSI driver that took the volume over, "" if none did. A
// migration counts before the annotation for it is written, for only the driver
// can reach the storage.
func servedBy(volume *corev1.PersistentVolume, rules Rules) string {
	if driver := volume.Annotations[storageclass.MigratedToAnnotation]; driver != "" {
		return driver
	}
	return rules.Migrations.Driver(provisioner(volume))
}

func decideDelete(volume *corev1.PersistentVolume, rules Rules) Decision {
	if name := provisioner(volume); name != "" {
		return deleteProvisioned(name, rules)
	}
	source := SourceName(volume)
	switch {
	case volume.Spec.CSI != nil:
		return standDown(volume.Spec.CSI.Driver, "CSI driver %q deletes it")
	case rules.SourceDeleters.Has(source):
		return Decision{Verb: RunDeleter, Hook: source, Message: fmt.Sprintf("the deleter for %s volumes deletes it", source)}
	}
	return fail(EventFailedDelete, "no deleter for %s volumes is registered", sourceInWords(source))
}

// deleteProvisioned decides by the provisioner alone, for whoever made the storage
// knows where it is; what the volume's source says does not count.
func deleteProvisioned(name string, rules Rules) Decision {
	switch {
	case rules.Deleters.Has(name):
		return Decision{Verb: RunDeleter, Hook: name, Message: fmt.Sprintf("provisioner %q, which made it, deletes it", name)}
	case !storageclass.InTree(name):
		return standDown(name, "external provisioner %q, which made it, deletes it")
	}
	return fail(EventFailedDelete, "no deleter for provisioner %q is registered", name)
}

func decideRecycle(volume *corev1.PersistentVolume, rules Rules) Decision {
	source := SourceName(volume)
	if rules.Recyclers.Has(source) {
		return Decision{Verb: RunRecycler, Hook: source, Message: fmt.Sprintf("the recycler for %s volumes scrubs it", source)}
	}
	return fail(EventFailedRecycle, "no recycler for %s volumes is registered", sourceInWords(source))
}

func standDown(by, format string) Decision {
	return Decision{Verb: StandDown, By: by, Message: fmt.Sprintf(format, by)}
}

func fail(reason, format string, args ...any) Decision {
	return Decision{Verb: Fail, EventReason: reason, Message: fmt.Sprintf(format, args...)}
}

func sourceInWords(source string) string {
	if source == "" {
		return "sourceless"
	}
	return source
}
