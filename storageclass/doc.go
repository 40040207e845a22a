// Package storageclass reads what the storage class of a claim or a volume says
// about it.
//
// A claim states its class in one of three ways, and they mean different things:
//
//   - not at all (spec.storageClassName is nil): the cluster's default class may
//     be assigned to it; see [Unset] and [Default];
//   - as "": it requests a volume without a class, and no default may be assigned;
//   - by name.
//
// When claims are compared with volumes the first two are the same, no class,
// and so [OfClaim] and [OfVolume] return "" for both. An annotation that predates
// the field, volume.beta.kubernetes.io/storage-class, still wins over it.
//
// The class object then says when a claim is bound ([WaitsForFirstConsumer]),
// whether volumes can be made for it ([Provisions]) and for which nodes
// ([AllowsNode]). A volume of a provisioner that was once compiled into Kubernetes
// is today served by a CSI driver; [Migrations] says by which.
//
// # Files
//
//   - name.go reads the name of a class from claims and volumes,
//   - class.go reads the class object,
//   - provisioner.go tells provisioners apart.
package storageclass
