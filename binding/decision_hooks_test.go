package binding_test

import (
	"errors"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/pvbind/pvbind/binding"
	"github.com/pvbind/pvbind/binding/obj"
)

// own is the provisioner whose hooks are registered in these tests.
const own = "own.example.com"

var errBroken = errors.New("the disk is broken")

// hooked are rules with every hook there is for own and for hostPath.
func hooked(edits ...func(*binding.HookNames)) binding.Rules {
	names := binding.HookNames{
		Provisioners: sets.New(own), Deleters: sets.New(own), SourceDeleters: sets.New("hostPath"), Recyclers: sets.New("hostPath"),
	}
	for _, edit := range edits {
		edit(&names)
	}
	return binding.Rules{Hooks: names}
}

func withoutDeleters(names *binding.HookNames) { names.Deleters = nil }

// ownKey is the volume that is provisioned for knownClaim.
var ownKey = obj.VolumeKey("pvc-uid-1")

// provisioningClaim is of class fast and has what own needs before it is run.
func provisioningClaim(edits ...claimEdit) *corev1.PersistentVolumeClaim {
	asks := []claimEdit{askingClass(new("fast")), claimNote(provisioner, own), claimNote(betaProvisioner, own), claimFinalizers(provisioningFinalizer)}
	return knownClaim(append(asks, edits...)...)
}

// madeVolume is what own returns for provisioningClaim.
func madeVolume(edits ...volumeEdit) *corev1.PersistentVolume {
	volume := &corev1.PersistentVolume{}
	volume.Name = ownKey.Name
	volume.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}
	volume.Spec.Capacity = storage("10Gi")
	volume.Spec.HostPath = &corev1.HostPathVolumeSource{Path: "/pool/" + ownKey.Name}
	for _, edit := range edits {
		edit(volume)
	}
	return volume
}

// answering is what was known, with answers of hooks.
func answering(known binding.Snapshot, answers ...binding.Answer) binding.Snapshot {
	known.Answers = append(known.Answers[:len(known.Answers):len(known.Answers)], answers...)
	return known
}

// made and notMade are answers of own's provisioner, deleted one of its deleter, to provisioningClaim.
func made(volume *corev1.PersistentVolume) binding.Answer {
	return binding.Answer{Of: binding.RunProvisioner, Hook: own, For: "uid-1", Volume: volume}
}

func notMade(err error) binding.Answer {
	return binding.Answer{Of: binding.RunProvisioner, Hook: own, For: "uid-1", Err: err}
}

func deletedAgain(err error) binding.Answer {
	return binding.Answer{Of: binding.RunDeleter, Hook: own, For: "uid-1", Err: err}
}

func notStored(err error) binding.Answer {
	return binding.Answer{Of: binding.CreateVolume, For: "uid-1", Err: err}
}

func meaning(meaning binding.HookMeaning) error {
	return &binding.HookError{Meaning: meaning, Err: errBroken}
}

func inProgress(after time.Duration) error {
	return &binding.HookError{Meaning: binding.HookInProgress, After: after}
}

func placedOn(name string) claimEdit { return claimNote(selectedNode, name) }
