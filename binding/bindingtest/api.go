package bindingtest

import (
	"context"

	corev1 "k8s.io/api/core/v1"

	"github.com/pvbind/pvbind/binding"
	"github.com/pvbind/pvbind/binding/decision"
	"github.com/pvbind/pvbind/binding/hooks"
	"github.com/pvbind/pvbind/binding/obj"
)

var (
	_ API = (*Server)(nil)
	_ API = (*Client)(nil)
)

// API is an API server as SettleOn uses it. A Server is one, and so is a Client of it; those of other clients are in the modules
// binding/clientgo and binding/controllerruntime.
//
// All methods read from the server itself, never from a cache, and must not keep or modify their arguments. An error of a List
// ends SettleOn.
type API interface {
	binding.Client
	binding.AttachmentLister

	// List reads the objects of a kind, one of Kinds, in all namespaces if the namespace is empty.
	List(ctx context.Context, kind obj.Kind, namespace string) ([]obj.Object, error)
	// Create stores a new object and returns it as stored. It is called for the claims of generic ephemeral volumes.
	Create(ctx context.Context, object obj.Object) (obj.Object, error)
	// Update stores metadata and spec and returns the object as stored. It is called for what a fake left out of an object.
	Update(ctx context.Context, object obj.Object) (obj.Object, error)
	// BindPod sets the pod's spec.nodeName, as a scheduler does.
	BindPod(ctx context.Context, pod *corev1.Pod, node string) error
}

// SettleOptions say what SettleOn does. The zero value does what a cluster would have done by now that has
// kube-controller-manager, a CSI driver with its external-provisioner for each class that names one, and, where there are nodes,
// a scheduler that looks at nothing but volumes.
type SettleOptions struct {
	// Provisioners are the names of the CSI drivers that are played: they make and delete storage. Nil: all that a class names, or
	// a volume as the one it was provisioned by. Empty, and not nil: none. Those of Hooks are never played, nor are in-tree names
	// ("kubernetes.io/…"), for which there is nobody in a cluster either; where one is migrated, its CSI driver is.
	Provisioners []string
	// Pods says whether pods without a node are placed on one.
	Pods PodPlacement
	// Binding are the options of the controller.
	Binding decision.Options
	// Hooks are those of the controller: storage of your own.
	Hooks hooks.Set
	// Storage has the storage of the drivers that are played; nil: one that is forgotten afterwards. With one that stays, a test
	// can look at what exists (Storage.Kept) and have calls fail (Storage.Use).
	Storage *Storage
}

// PodPlacement says what becomes of pods that name claims and have no node.
type PodPlacement string

const (
	// PodsPlaced means that each is placed on a node where it can have its volumes.
	PodsPlaced PodPlacement = ""
	// PodsLeft means that they are left to somebody else, and not reported. Claims of a pod whose node is set get it nevertheless.
	PodsLeft PodPlacement = "Left"
)
