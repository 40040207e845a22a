package e2e

import (
	"context"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/pvbind/pvbind/binding/bindingtest"
	"github.com/pvbind/pvbind/binding/clientgo"
	"github.com/pvbind/pvbind/binding/decision"
	"github.com/pvbind/pvbind/binding/hooks"
	"github.com/pvbind/pvbind/binding/obj"
)

// disks are storage of a program's own, by the name of the volume.
type disks struct {
	mu   sync.Mutex
	made map[string]bool
}

func (d *disks) Provision(_ context.Context, request hooks.ProvisionRequest) (*corev1.PersistentVolume, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.made[request.Volume.Name] = true
	request.Volume.Spec.PersistentVolumeSource = corev1.PersistentVolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/disks/" + request.Volume.Name}}
	return request.Volume, nil
}

func (d *disks) Delete(_ context.Context, request hooks.ReclaimRequest) error {
	volume := request.Volume
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.made, volume.Name)
	return nil
}

func (d *disks) Recycle(context.Context, hooks.ReclaimRequest) error { return nil }

func (d *disks) names() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	names := []string{}
	for name := range d.made {
		names = append(names, name)
	}
	return names
}

// P2, R3, R4: a program with storage of its own makes, deletes and scrubs it on a real API server.
func TestStorageOfOnesOwn(t *testing.T) {
	a, storage := newAPI(t), &disks{made: map[string]bool{}}
	run(t, &clientgo.Runner{
		Clientset: a,
		Options:   decision.Options{Protection: decision.ProtectionOn},
		Hooks: hooks.Set{
			Provisioners:   map[string]hooks.Provisioner{"example.com/disks": storage},
			Deleters:       map[string]hooks.Deleter{"example.com/disks": storage},
			SourceDeleters: map[string]hooks.Deleter{"hostPath": storage},
			Recyclers:      map[string]hooks.Recycler{"hostPath": storage},
		},
	})
	given(class("own", provisioner("example.com/disks")), claim("data", "5Gi", inClass("own")))(t, a)
	eventually(t, a.isBound("data"))
	made := a.claim(t, "data").Spec.VolumeName
	assert.Equal(t, []string{made}, storage.names(), "P2")
	deleting(obj.KindClaim, "data")(t, a)
	a.becomes(t, "")
	assert.Empty(t, storage.names(), "R3")

	given(volume("a", "5Gi", policy(corev1.PersistentVolumeReclaimDelete)), data)(t, a)
	a.becomes(t, "pv a Bound data, pvc data Bound a")
	given(bindingtest.Attachment("a", "n1"))(t, a)
	deleting(obj.KindClaim, "data")(t, a)
	a.tells(t, "VolumeDelete", "a")
	a.becomes(t, "pv a Released data!")
	deleting(obj.KindAttachment, "a-n1")(t, a)
	a.becomes(t, "")

	given(volume("a", "5Gi", policy(corev1.PersistentVolumeReclaimRecycle)), data)(t, a)
	a.becomes(t, "pv a Bound data, pvc data Bound a")
	deleting(obj.KindClaim, "data")(t, a)
	a.becomes(t, "pv a Available")
	a.tells(t, "VolumeRecycled", "a")
}

// run has the Runner work until the test ends.
func run(t *testing.T, runner *clientgo.Runner) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	ended := make(chan error)
	go func() { ended <- runner.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		require.NoError(t, <-ended)
	})
}
