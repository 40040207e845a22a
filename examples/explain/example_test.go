package main

import (
	"os"
	"strings"
	"time"
)

// Why is it Pending? The claim requests a class that no volume has, and nobody can make one.
func Example() {
	const manifests = `
apiVersion: v1
kind: PersistentVolume
metadata: {name: pv-7}
spec:
  accessModes: [ReadWriteOnce]
  capacity: {storage: 10Gi}
  storageClassName: slow
  hostPath: {path: /disk}
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: data, namespace: shop}
spec:
  accessModes: [ReadWriteOnce]
  resources: {requests: {storage: 8Gi}}
  storageClassName: fast
`
	env := environment{program: "explain", stdin: strings.NewReader(manifests), stdout: os.Stdout, stderr: &strings.Builder{}, now: time.Now}
	env.run([]string{"-claim", "shop/data"})
	// Output:
	// pvc/shop/data: NoProvisioner
	//     no volume fits, and the storage class "fast" that could provision one does not exist
	//     0/1 volumes fit: 1 StorageClass
	//
	//     VOLUMES   NEAREST   WHY NOT
	//     1         pv-7      its class: "slow", the claim requests "fast"
}
