package testkit

import (
	"cmp"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/pvbind/pvbind/binding/decision"
	"github.com/pvbind/pvbind/binding/hooks"
	"github.com/pvbind/pvbind/binding/match"
	"github.com/pvbind/pvbind/binding/obj"
)

// Knowing returns a Snapshot of the objects.
func Knowing(objects ...obj.Object) decision.Snapshot {
	var known decision.Snapshot
	for _, object := range objects {
		switch object := object.(type) {
		case *corev1.PersistentVolume:
			known.Volumes = append(known.Volumes, object)
		case *corev1.PersistentVolumeClaim:
			known.Claims = append(known.Claims, object)
		case *storagev1.StorageClass:
			known.Classes = append(known.Classes, object)
		case *corev1.Pod:
			known.Pods = append(known.Pods, object)
		case *storagev1.VolumeAttachment:
			known.Attachments = append(known.Attachments, object)
		}
	}
	return known
}

// Proving returns what is known with these keys read live.
func Proving(known decision.Snapshot, live ...obj.Key) decision.Snapshot {
	known.LiveReads = live
	return known
}

// Answering returns what is known with answers of hooks added.
func Answering(known decision.Snapshot, answers ...decision.Answer) decision.Snapshot {
	known.Answers = append(known.Answers[:len(known.Answers):len(known.Answers)], answers...)
	return known
}

// Made returns the answer of Own's provisioner that it made the volume for ProvisioningClaim.
func Made(volume *corev1.PersistentVolume) decision.Answer {
	return decision.Answer{Of: decision.RunProvisioner, Hook: Own, For: "uid-1", Volume: volume}
}

// NotMade returns the answer of Own's provisioner that it failed.
func NotMade(err error) decision.Answer {
	return decision.Answer{Of: decision.RunProvisioner, Hook: Own, For: "uid-1", Err: err}
}

// DeletedAgain returns the answer of Own's deleter about what was made for ProvisioningClaim; nil is success.
func DeletedAgain(err error) decision.Answer {
	return decision.Answer{Of: decision.RunDeleter, Hook: Own, For: "uid-1", Err: err}
}

// NotStored returns the answer of the API server that it did not store the volume made for ProvisioningClaim.
func NotStored(err error) decision.Answer {
	return decision.Answer{Of: decision.CreateVolume, For: "uid-1", Err: err}
}

// Stored returns the answer of the API server that it stored the volume made for ProvisioningClaim, with this UID. It was made after the
// announcement with this token, 0 if there was none.
func Stored(volume types.UID, standing int64) decision.Answer {
	return decision.Answer{Of: decision.CreateVolume, For: "uid-1", Standing: standing, Volume: &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{UID: volume}}}
}

// Hooked returns options with every hook there is for Own and for hostPath.
func Hooked(edits ...func(*hooks.Names)) decision.Options {
	names := hooks.Names{
		Provisioners: sets.New(Own), Deleters: sets.New(Own), SourceDeleters: sets.New("hostPath"), Recyclers: sets.New("hostPath"),
	}
	for _, edit := range edits {
		edit(&names)
	}
	return Unprotected(decision.Options{Hooks: names, Identity: "me"})
}

// Unprotected returns the options with protection off, unless they say otherwise: most tests are about something else.
func Unprotected(options decision.Options) decision.Options {
	options.Protection = cmp.Or(options.Protection, decision.ProtectionOff)
	return options
}

// WithoutDeleters takes the deleters of provisioners away.
func WithoutDeleters(names *hooks.Names) { names.Deleters = nil }

// Waiting returns the Terms of a class that waits for its first consumer.
func Waiting() match.Terms {
	return match.Terms{Class: ClassWith(new(storagev1.VolumeBindingWaitForFirstConsumer))}
}

// OwnedBy returns Terms under which every volume without claimRef belongs to these claims.
func OwnedBy(owners ...obj.Key) match.Terms {
	return match.Terms{Owners: func(string) []obj.Key { return owners }}
}

// OnNode returns the Terms on a node.
func OnNode(terms match.Terms, node *corev1.Node) match.Terms {
	terms.Node = node
	return terms
}
