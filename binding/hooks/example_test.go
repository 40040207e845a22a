package hooks_test

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"

	"github.com/pvbind/pvbind/binding/bindingtest"
	"github.com/pvbind/pvbind/binding/hooks"
)

// diskMaker is a Provisioner and a Deleter.
type diskMaker struct{}

func (diskMaker) Provision(_ context.Context, request hooks.ProvisionRequest) (*corev1.PersistentVolume, error) {
	if mode := request.Claim.Spec.VolumeMode; mode != nil && *mode == corev1.PersistentVolumeBlock {
		return nil, &hooks.Error{Meaning: hooks.Refused, Err: errors.New("these disks are no block devices")}
	}
	volume := request.Volume
	fmt.Println("make", volume.Name)
	volume.Spec.NFS = &corev1.NFSVolumeSource{Server: "nfs.example.com", Path: "/" + volume.Name}
	return volume, nil
}

func (diskMaker) Delete(_ context.Context, request hooks.ReclaimRequest) error {
	fmt.Println("delete", request.Volume.Name)
	return nil
}

// A claim whose class names the provisioner gets a volume that is provisioned for it. One that the provisioner refuses gets
// an event with the reason.
func Example() {
	hookSet := hooks.Set{
		Provisioners: map[string]hooks.Provisioner{"example.com/disks": diskMaker{}},
		Deleters:     map[string]hooks.Deleter{"example.com/disks": diskMaker{}},
	}
	disks := bindingtest.Class("disks", func(class *storagev1.StorageClass) { class.Provisioner = "example.com/disks" })
	ofDisks := func(claim *corev1.PersistentVolumeClaim) { claim.Spec.StorageClassName = new("disks") }
	raw := func(claim *corev1.PersistentVolumeClaim) { claim.Spec.VolumeMode = new(corev1.PersistentVolumeBlock) }
	cluster := bindingtest.NewClusterWith(bindingtest.SettleOptions{Hooks: hookSet}, disks,
		bindingtest.Claim("default", "data", "5Gi", ofDisks), bindingtest.Claim("default", "raw", "5Gi", ofDisks, raw))
	if _, err := cluster.Settle(context.Background()); err != nil {
		fmt.Println(err)
	}
	fmt.Println(cluster.Claim("default", "data").Spec.VolumeName)
	for _, event := range cluster.Events() {
		fmt.Println(event)
	}
	// Output:
	// make pvc-uid-2
	// pvc-uid-2
	// Normal ProvisioningSucceeded pvc/default/data: the provisioner "example.com/disks" made volume "pvc-uid-2"
	// Warning ProvisioningFailed pvc/default/raw: the provisioner failed: these disks are no block devices
}
