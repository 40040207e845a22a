package apitest

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/kubernetes/scheme"
	clienttesting "k8s.io/client-go/testing"

	"github.com/pvbind/pvbind/binding/bindingtest"
	"github.com/pvbind/pvbind/binding/obj"
)

// Back makes a fake clientset answer as an API server where binding depends on it: for volumes, claims, classes, nodes, CSINodes,
// pods and attachments it has UIDs, resourceVersions and conflicts, a status apart from the rest, defaults, finalizers that hold what
// is deleted, and watches that begin where a list ended. Call it once, after the clientset is made and before anything watches:
//
//	clientset := fake.NewClientset(volume, claim)
//	apitest.Back(clientset)
//
// The objects that the clientset has by then are taken as they are; a UID, a resourceVersion and defaults are added where
// they have none. From then on they are on the Server that Back returns, where a test injects faults and reads the log of
// calls, and no longer in the Tracker of the clientset: what is done to that is not seen. All other kinds stay with the
// Tracker, events among them. Reactors of the test go first, whether they are added before or after.
//
// A clientset that has a Server is not given another. Back panics on an object that has no name. A fault of the Server's Client
// must not call the clientset, which is locked meanwhile.
func Back(clientset *fake.Clientset) *Server {
	clientset.Lock()
	defer clientset.Unlock()
	for _, reactor := range clientset.ReactionChain {
		if known, ok := reactor.(*backing); ok {
			return known.server
		}
	}
	behind := bindingtest.NewServer()
	if err := load(behind, clientset.Tracker()); err != nil {
		panic(fmt.Sprintf("apitest.Back: %v", err))
	}
	b := &backing{server: New(behind), watches: map[*fakeWatch]bool{}}
	b.server.Client = behind.NewClient("clientset")
	clientset.ReactionChain = insertBefore[clienttesting.Reactor](clientset.ReactionChain, b, func(r clienttesting.Reactor) bool {
		simple, ok := r.(*clienttesting.SimpleReactor)
		return ok && simple.Verb == "*" && simple.Resource == "*"
	})
	clientset.WatchReactionChain = insertBefore[clienttesting.WatchReactor](clientset.WatchReactionChain, watching{b}, func(r clienttesting.WatchReactor) bool {
		simple, ok := r.(*clienttesting.SimpleWatchReactor)
		return ok && simple.Resource == "*"
	})
	return b.server
}

// load has the server take over what the tracker of a clientset has, as if it had been stored by an API server.
func load(behind *bindingtest.Server, tracker clienttesting.ObjectTracker) error {
	if tracker == nil { // a clientset that no constructor made
		return nil
	}
	var objects []obj.Object
	for _, kind := range bindingtest.Kinds() {
		resource := resourceOf(kind)
		list, err := tracker.List(resource, resource.GroupVersion().WithKind(string(kind)), "")
		if err != nil {
			return err
		}
		err = meta.EachListItem(list, func(item runtime.Object) error {
			object := item.DeepCopyObject().(obj.Object)
			bindingtest.SetDefaults(object)
			objects = append(objects, object)
			return nil
		})
		if err != nil {
			return err
		}
	}
	return behind.Load(objects...)
}

// insertBefore inserts a reactor before the last one of those that are given, which is the clientset's own; at the end, if there
// is none.
func insertBefore[T any](chain []T, reactor T, own func(T) bool) []T {
	at := len(chain)
	for i, other := range slices.Backward(chain) {
		if own(other) {
			at = i
			break
		}
	}
	return slices.Insert(slices.Clone(chain), at, reactor)
}

// backing is the reactor that has a Server answer for a fake clientset.
type backing struct {
	server *Server

	mu      sync.Mutex
	watches map[*fakeWatch]bool
}

// Handles returns true for what the Server stores.
func (b *backing) Handles(action clienttesting.Action) bool {
	resource := action.GetResource()
	return resource.Version == "v1" && kinds()[resource.GroupResource()] != ""
}

// React answers an action. What a write has changed is in the channels of all watches when it returns, as with the fake's own.
func (b *backing) React(action clienttesting.Action) (handled bool, answer runtime.Object, err error) {
	op, ok := operationOf(action)
	switch {
	case !ok:
		return false, nil, nil
	case b.server.forbids(op.Request):
		return true, nil, forbidden(op.Request)
	case op.Verb == "list":
		answer, err = b.list(op, action.(clienttesting.ListActionImpl).Kind)
		return true, answer, err
	}
	defer b.deliver()
	object, err := b.server.do(context.Background(), op)
	if err != nil || object == nil {
		return true, nil, err
	}
	return true, object, nil
}

// operationOf reads an action. It returns false for one that is not about objects that are stored, such as reading a log.
func operationOf(action clienttesting.Action) (operation, bool) {
	resource := action.GetResource()
	op := operation{Request: Request{
		Verb:        action.GetVerb(),
		Group:       resource.Group,
		Resource:    resource.Resource,
		Subresource: action.GetSubresource(),
		Namespace:   action.GetNamespace(),
	}}
	switch action := action.(type) {
	case clienttesting.GetActionImpl:
		op.Name = action.Name
	case clienttesting.ListActionImpl:
		op.selected = action.ListOptions
	case clienttesting.CreateActionImpl:
		op.Name, op.sent, op.dryRun = action.Name, action.Object, action.CreateOptions.DryRun
	case clienttesting.UpdateActionImpl:
		op.sent, op.dryRun = action.Object, action.UpdateOptions.DryRun
	case clienttesting.PatchActionImpl:
		op.Name, op.patch, op.dryRun = action.Name, action, action.PatchOptions.DryRun
	case clienttesting.DeleteActionImpl:
		op.Name, op.options, op.dryRun = action.Name, action.DeleteOptions, action.DeleteOptions.DryRun
	case clienttesting.DeleteCollectionActionImpl:
		op.Verb, op.options, op.selected, op.dryRun = "deletecollection", action.DeleteOptions, action.ListOptions, action.DeleteOptions.DryRun
	default:
		return op, false
	}
	return op, true
}

// list returns the objects in a list of their type.
func (b *backing) list(op operation, kind schema.GroupVersionKind) (runtime.Object, error) {
	items, version, err := b.server.list(context.Background(), op.Request, op.selected)
	if err != nil {
		return nil, err
	}
	list, err := scheme.Scheme.New(kind.GroupVersion().WithKind(kind.Kind + "List"))
	if err != nil {
		return nil, err
	}
	copies := make([]runtime.Object, len(items))
	for i, item := range items {
		copies[i] = untyped(item)
	}
	list.(metav1.ListInterface).SetResourceVersion(version)
	return list, meta.SetList(list, copies)
}

// untyped returns a copy without kind and apiVersion, as a typed client does.
func untyped(object runtime.Object) runtime.Object {
	object = object.DeepCopyObject()
	object.GetObjectKind().SetGroupVersionKind(schema.GroupVersionKind{})
	return object
}
