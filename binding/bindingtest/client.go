package bindingtest

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pvbind/pvbind/binding"
	"github.com/pvbind/pvbind/binding/decision"
	"github.com/pvbind/pvbind/binding/obj"
)

var (
	_ binding.Client   = (*Client)(nil)
	_ binding.Recorder = (*Client)(nil)

	_ binding.AttachmentLister = (*Client)(nil)
)

var (
	// ErrCrashed is what a crashed Client answers to everything.
	ErrCrashed = errors.New("bindingtest: the client has crashed")
	// ErrAnswerLost says that a connection broke before the answer came. The call took effect.
	ErrAnswerLost = errors.New("bindingtest: connection lost while waiting for the answer")
)

// Hook stands between a Client and its Server. It may look at the call, do things before and after it,
// not make it at all, or answer with another error than the server did. To make the call it calls do,
// once; call.Before and call.After are set then.
//
// No lock is held while a hook runs, so it may call the server itself.
type Hook func(call *Call, do func() error) error

// Client is one user of a Server, with a name in the log and with faults of its own. It has all the
// calls that the Server has. It may be used from many goroutines at once.
type Client struct {
	verbs
	server *Server
	name   string

	mu      sync.Mutex
	hooks   []Hook
	crash   crash
	writing int // writes until the crash, if one is planned
}

// crash is where a Client stands on its way to a crash.
type crash string

const (
	noCrash crash = ""
	planned crash = "Planned"
	crashed crash = "Crashed"
)

// NewClient returns another client of the server. Calls made through it carry its name in the log.
func (s *Server) NewClient(name string) *Client {
	c := &Client{server: s, name: name}
	c.verbs.perform = c.perform
	return c
}

// Now returns the time on the server's clock.
func (c *Client) Now() time.Time { return c.server.Now() }

func (c *Client) itself() *Server { return c.server }

// Use adds hooks around every call from now on. The first one added is the outermost.
func (c *Client) Use(added ...Hook) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.hooks = append(slices.Clip(c.hooks), added...)
}

// CrashAfter makes the client crash when n more writes have been made: the last one takes effect, but
// nobody hears of it any more, and every later call fails with ErrCrashed. With n = 0 it has crashed.
func (c *Client) CrashAfter(n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.crash, c.writing = planned, n
	if n <= 0 {
		c.crash = crashed
	}
}

// Crashed reports whether the client has crashed.
func (c *Client) Crashed() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.crash == crashed
}

// Restart ends a crash, or cancels one that is planned. Hooks stay.
func (c *Client) Restart() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.crash = noCrash
}

func (c *Client) perform(call *Call) error {
	if c.Crashed() {
		return ErrCrashed
	}
	call.Actor = c.name
	err := c.chain(call)()
	if err == nil && call.Writes() && c.countDown() {
		err = ErrCrashed
	}
	c.server.finish(call, err)
	return err
}

// chain returns the call with every hook around it.
func (c *Client) chain(call *Call) func() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	do := func() error { return c.server.perform(call) }
	for _, hook := range slices.Backward(c.hooks) {
		inner := do
		do = func() error { return hook(call, inner) }
	}
	return do
}

// countDown counts a write and reports whether it was the last one before the crash.
func (c *Client) countDown() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.crash != planned {
		return false
	}
	c.writing--
	if c.writing > 0 {
		return false
	}
	c.crash = crashed
	return true
}

// verbs are the calls that a Server and each of its Clients answer, all made of one function.
type verbs struct {
	perform func(*Call) error
}

func (v verbs) do(ctx context.Context, call *Call) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	return v.perform(call)
}

func (v verbs) write(ctx context.Context, verb Verb, sub Subresource, object obj.Object) (obj.Object, error) {
	key, err := KeyOf(object)
	if err != nil {
		return nil, err
	}
	call := &Call{Verb: verb, Subresource: sub, Key: key, Sent: copyOf(object)}
	if err := v.do(ctx, call); err != nil {
		return nil, err
	}
	return copyOf(call.answer), nil
}

// Create stores a new object and returns it as stored (A1, A6).
func (v verbs) Create(ctx context.Context, object obj.Object) (obj.Object, error) {
	return v.write(ctx, VerbCreate, "", object)
}

// Update stores metadata and spec, and returns the object as stored (A2 to A5). With an empty
// resourceVersion it overwrites whatever is there, as the API does.
func (v verbs) Update(ctx context.Context, object obj.Object) (obj.Object, error) {
	return v.write(ctx, VerbUpdate, "", object)
}

// UpdateStatus stores metadata and status, and returns the object as stored (A2).
func (v verbs) UpdateStatus(ctx context.Context, object obj.Object) (obj.Object, error) {
	return v.write(ctx, VerbUpdate, Status, object)
}

// Delete deletes an object, or marks it as being deleted while it has finalizers (A5).
//
// A pod that runs on a node and has a grace period, from the options or from its own
// terminationGracePeriodSeconds, is only marked; FinishPod does what the kubelet does at the end.
func (v verbs) Delete(ctx context.Context, key obj.Key, options metav1.DeleteOptions) error {
	return v.do(ctx, &Call{Verb: VerbDelete, Key: key, Options: *options.DeepCopy()})
}

// BindPod places a pod on a node as a scheduler does: it sets spec.nodeName.
func (v verbs) BindPod(ctx context.Context, pod *corev1.Pod, node string) error {
	bound := pod.DeepCopy()
	bound.Spec.NodeName = node
	_, err := v.Update(ctx, bound)
	return err
}

// FinishPod ends a pod as a kubelet does: it deletes it without grace.
func (v verbs) FinishPod(ctx context.Context, namespace, name string) error {
	return v.Delete(ctx, PodKey(namespace, name), metav1.DeleteOptions{GracePeriodSeconds: new(int64)})
}

// Get reads one object.
func (v verbs) Get(ctx context.Context, key obj.Key) (obj.Object, error) {
	call := &Call{Verb: VerbGet, Key: key}
	if err := v.do(ctx, call); err != nil {
		return nil, err
	}
	return copyOf(call.answer), nil
}

// List reads the objects of a kind, sorted by namespace and name. An empty namespace means all.
func (v verbs) List(ctx context.Context, kind obj.Kind, namespace string) ([]obj.Object, error) {
	call := &Call{Verb: VerbList, Key: obj.Key{Kind: kind, Namespace: namespace}}
	if err := v.do(ctx, call); err != nil {
		return nil, err
	}
	list := make([]obj.Object, len(call.list))
	for i := range list {
		list[i] = copyOf(call.list[i])
	}
	return list, nil
}

// Record keeps an event in the log of calls.
func (v verbs) Record(event decision.Event) {
	_ = v.perform(&Call{Verb: VerbRecord, Key: event.On, Event: event})
}

// GetVolume reads a volume.
func (v verbs) GetVolume(ctx context.Context, name string) (*corev1.PersistentVolume, error) {
	return as[*corev1.PersistentVolume](v.Get(ctx, obj.VolumeKey(name)))
}

// GetClaim reads a claim.
func (v verbs) GetClaim(ctx context.Context, namespace, name string) (*corev1.PersistentVolumeClaim, error) {
	return as[*corev1.PersistentVolumeClaim](v.Get(ctx, obj.ClaimKey(namespace, name)))
}

// ListClaims lists the claims of all namespaces, sorted by namespace and name.
func (v verbs) ListClaims(ctx context.Context) ([]*corev1.PersistentVolumeClaim, error) {
	return allAs[*corev1.PersistentVolumeClaim](v.List(ctx, obj.KindClaim, ""))
}

// ListPods lists the pods of a namespace, sorted by name.
func (v verbs) ListPods(ctx context.Context, namespace string) ([]*corev1.Pod, error) {
	return allAs[*corev1.Pod](v.List(ctx, obj.KindPod, namespace))
}

// ListAttachments lists the VolumeAttachments, sorted by name.
func (v verbs) ListAttachments(ctx context.Context) ([]*storagev1.VolumeAttachment, error) {
	return allAs[*storagev1.VolumeAttachment](v.List(ctx, obj.KindAttachment, ""))
}

// UpdateVolume updates a volume, as Update does.
func (v verbs) UpdateVolume(ctx context.Context, volume *corev1.PersistentVolume) (*corev1.PersistentVolume, error) {
	return as[*corev1.PersistentVolume](v.Update(ctx, volume))
}

// UpdateVolumeStatus updates the status of a volume, as UpdateStatus does.
func (v verbs) UpdateVolumeStatus(ctx context.Context, volume *corev1.PersistentVolume) (*corev1.PersistentVolume, error) {
	return as[*corev1.PersistentVolume](v.UpdateStatus(ctx, volume))
}

// UpdateClaim updates a claim, as Update does.
func (v verbs) UpdateClaim(ctx context.Context, claim *corev1.PersistentVolumeClaim) (*corev1.PersistentVolumeClaim, error) {
	return as[*corev1.PersistentVolumeClaim](v.Update(ctx, claim))
}

// UpdateClaimStatus updates the status of a claim, as UpdateStatus does.
func (v verbs) UpdateClaimStatus(ctx context.Context, claim *corev1.PersistentVolumeClaim) (*corev1.PersistentVolumeClaim, error) {
	return as[*corev1.PersistentVolumeClaim](v.UpdateStatus(ctx, claim))
}

// CreateVolume creates a volume, as Create does.
func (v verbs) CreateVolume(ctx context.Context, volume *corev1.PersistentVolume) (*corev1.PersistentVolume, error) {
	return as[*corev1.PersistentVolume](v.Create(ctx, volume))
}

// DeleteVolume deletes a volume if the preconditions allow it, as Delete does.
func (v verbs) DeleteVolume(ctx context.Context, name string, preconditions metav1.Preconditions) error {
	return v.Delete(ctx, obj.VolumeKey(name), metav1.DeleteOptions{Preconditions: &preconditions})
}

// as gives an answer its type.
func as[T obj.Object](object obj.Object, err error) (T, error) {
	var none T
	if err != nil {
		return none, err
	}
	typed, ok := object.(T)
	if !ok {
		return none, errors.New("bindingtest: a hook answered the call without an object")
	}
	return typed, nil
}

// allAs gives what is in a list its type.
func allAs[T obj.Object](list []obj.Object, err error) ([]T, error) {
	typed := make([]T, len(list))
	for i := range list {
		typed[i] = list[i].(T)
	}
	return typed, err
}
