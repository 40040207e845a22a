package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pvbind/pvbind/binding/bindingtest"
	"github.com/pvbind/pvbind/binding/obj"
)

// step is one thing that somebody does in the story, and its outcome.
type step struct {
	done string
	do   func(context.Context) error
	then string
}

// steps returns the story of a volume that is deleted, one that is retained, and one that is recycled.
func (t *teller) steps() []step {
	deleted, retained := class("fast", corev1.PersistentVolumeReclaimDelete), class("safe", corev1.PersistentVolumeReclaimRetain)
	return []step{
		{"An administrator makes two storage classes: fast, whose volumes are deleted, and safe, whose volumes are kept.",
			t.creates(deleted, retained), "Nobody has claimed anything yet."},
		{"A user claims 1Gi of class fast.", t.creates(claim("cache", "fast")),
			"The provisioner made a directory, and the claim is bound to its volume."},
		{"A pod uses the claim, and writes a file.", t.runsPod("web", "cache"), "It writes to the directory that the volume names."},
		{"The user deletes the claim while the pod uses it.", t.deletes(obj.ClaimKey(namespace, "cache")),
			"The claim is in use, so it stays, and so does the directory."},
		{"The pod ends.", t.deletes(bindingtest.PodKey(namespace, "web")),
			"The claim goes, its volume is released, and the policy is Delete: directory and volume are gone."},
		{"A user claims 1Gi of class safe, and a pod writes a file to it.", t.inTurn(t.creates(claim("mail", "safe")), t.runsPod("post", "mail")),
			"It has another directory."},
		{"The pod ends, and the claim is deleted.", t.deletes(bindingtest.PodKey(namespace, "post"), obj.ClaimKey(namespace, "mail")),
			"The policy is Retain: the volume is released, and its data stays."},
		{"An administrator makes a directory and a volume of it by hand. A user claims it, and a pod writes a file to it.",
			t.inTurn(t.makesDirectory("scratch"), t.creates(byHand("scratch", t.dirs), claim("builds", "")), t.runsPod("build", "builds")),
			"It is bound like any volume; nothing was provisioned."},
		{"The pod ends, and the claim is deleted.", t.deletes(bindingtest.PodKey(namespace, "build"), obj.ClaimKey(namespace, "builds")),
			"The policy is Recycle: the directory is scrubbed, and the volume is free for another claim."},
	}
}

func class(name string, policy corev1.PersistentVolumeReclaimPolicy) *storagev1.StorageClass {
	return bindingtest.Class(name, func(class *storagev1.StorageClass) { class.Provisioner, class.ReclaimPolicy = provisioner, &policy })
}

func claim(name, class string) *corev1.PersistentVolumeClaim {
	return bindingtest.Claim(namespace, name, "1Gi", func(claim *corev1.PersistentVolumeClaim) { claim.Spec.StorageClassName = &class })
}

func byHand(name string, dirs directories) *corev1.PersistentVolume {
	return bindingtest.Volume(name, "1Gi", func(volume *corev1.PersistentVolume) {
		volume.Spec.HostPath.Path = dirs.path(name)
		volume.Spec.PersistentVolumeReclaimPolicy = corev1.PersistentVolumeReclaimRecycle
	})
}

// inTurn does one thing after the other, each once the controller is idle.
func (t *teller) inTurn(parts ...func(context.Context) error) func(context.Context) error {
	return func(ctx context.Context) error {
		for _, do := range parts {
			if err := errors.Join(do(ctx), t.cluster.Settle(ctx)); err != nil {
				return err
			}
		}
		return nil
	}
}

func (t *teller) creates(objects ...obj.Object) func(context.Context) error {
	return func(ctx context.Context) error {
		for _, object := range objects {
			if _, err := t.cluster.Create(ctx, object); err != nil {
				return err
			}
		}
		return nil
	}
}

func (t *teller) deletes(keys ...obj.Key) func(context.Context) error {
	return func(ctx context.Context) error {
		for _, key := range keys {
			if err := t.cluster.Delete(ctx, key, metav1.DeleteOptions{}); err != nil {
				return err
			}
		}
		return nil
	}
}

func (t *teller) makesDirectory(name string) func(context.Context) error {
	return func(context.Context) error { return os.Mkdir(t.dirs.path(name), 0o777) }
}

// runsPod runs a pod on a node, which writes into the volume of its claim what it is called.
func (t *teller) runsPod(name, claimName string) func(context.Context) error {
	return func(ctx context.Context) error {
		if _, err := t.cluster.Create(ctx, bindingtest.Pod(namespace, name, "node-1", claimName)); err != nil {
			return err
		}
		volume := t.cluster.Volume(t.cluster.Claim(namespace, claimName).Spec.VolumeName)
		if volume == nil {
			return fmt.Errorf("the claim %s has no volume", claimName)
		}
		return os.WriteFile(filepath.Join(volume.Spec.HostPath.Path, name+".txt"), []byte(name), 0o600)
	}
}
