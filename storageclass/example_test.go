package storageclass_test

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pvbind/pvbind/storageclass"
)

// A claim that states no class gets the default one.
func Example() {
	mode := storagev1.VolumeBindingWaitForFirstConsumer
	gold := &storagev1.StorageClass{
		ObjectMeta: metav1.ObjectMeta{
			Name:        "gold",
			Annotations: map[string]string{storageclass.IsDefaultAnnotation: "true"},
		},
		Provisioner:       storageclass.NoProvisioner,
		VolumeBindingMode: &mode,
	}
	claim := &corev1.PersistentVolumeClaim{}

	fmt.Printf("claim has class %q, unset: %t\n", storageclass.OfClaim(claim), storageclass.Unset(claim))

	class := storageclass.Default([]*storagev1.StorageClass{gold})
	waits, err := storageclass.WaitsForFirstConsumer(class)
	fmt.Printf("default is %s, waits: %t %v, provisions: %t\n",
		class.Name, waits, err, storageclass.Provisions(class))
	// Output:
	// claim has class "", unset: true
	// default is gold, waits: true <nil>, provisions: false
}

func ExampleMigrations_Driver() {
	migrations := storageclass.InTreeMigrations()
	fmt.Println(migrations.Driver("kubernetes.io/aws-ebs"))
	fmt.Printf("%q\n", migrations.Driver("kubernetes.io/host-path"))
	// Output:
	// ebs.csi.aws.com
	// ""
}
