package bindingtest

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pvbind/pvbind/binding/obj"
)

// watchedAPI remembers the writes of each object. One that is written more often than any end can take makes it unsettled.
type watchedAPI struct {
	API
	seen      map[obj.Key]obj.Object // as last listed, or answered
	wrote     bool                   // since the round began
	counts    map[obj.Key]int
	last      map[obj.Key][]Call // the last writes of each object
	unsettled error              // an *UnsettledError
}

func newWatchedAPI(api API) *watchedAPI {
	return &watchedAPI{API: api, seen: map[obj.Key]obj.Object{}, counts: map[obj.Key]int{}, last: map[obj.Key][]Call{}}
}

// note remembers a write that changed something.
func (w *watchedAPI) note(call Call) {
	w.wrote = true
	w.counts[call.Key]++
	calls := append(w.last[call.Key], call)
	w.last[call.Key] = calls[max(0, len(calls)-shownLast):]
	if w.counts[call.Key] > maxWrites && w.unsettled == nil {
		w.unsettled = w.unsettledAt(call.Key, w.counts[call.Key])
	}
}

func (w *watchedAPI) unsettledAt(key obj.Key, count int) error {
	e := &UnsettledError{Key: key, Count: count}
	for _, call := range w.last[key] {
		e.Last = append(e.Last, call.String())
	}
	return e
}

// written makes a write that sends an object, and returns the object as stored.
func written[T obj.Object](w *watchedAPI, call Call, write func(context.Context, T) (T, error), ctx context.Context, sent T) (T, error) {
	stored, err := write(ctx, sent)
	if err != nil {
		return stored, err
	}
	call.Key, _ = KeyOf(stored) // SettleOn writes nothing but the kinds there are
	call.Before, call.After = w.seen[call.Key], stored
	w.seen[call.Key] = stored
	if version := stored.GetResourceVersion(); version == "" || version != sent.GetResourceVersion() {
		w.note(call)
	}
	return stored, nil
}

// Create creates an object.
func (w *watchedAPI) Create(ctx context.Context, object obj.Object) (obj.Object, error) {
	return written(w, Call{Verb: VerbCreate}, w.API.Create, ctx, object)
}

// Update updates an object.
func (w *watchedAPI) Update(ctx context.Context, object obj.Object) (obj.Object, error) {
	return written(w, Call{Verb: VerbUpdate}, w.API.Update, ctx, object)
}

// BindPod sets the pod's node.
func (w *watchedAPI) BindPod(ctx context.Context, pod *corev1.Pod, node string) error {
	err := w.API.BindPod(ctx, pod, node)
	if err == nil {
		bound := pod.DeepCopy()
		bound.Spec.NodeName = node
		w.note(Call{Verb: VerbUpdate, Key: obj.KeyOfPod(pod), Before: pod, After: bound})
	}
	return err
}

// UpdateVolume updates a volume.
func (w *watchedAPI) UpdateVolume(ctx context.Context, volume *corev1.PersistentVolume) (*corev1.PersistentVolume, error) {
	return written(w, Call{Verb: VerbUpdate}, w.API.UpdateVolume, ctx, volume)
}

// UpdateVolumeStatus updates the status of a volume.
func (w *watchedAPI) UpdateVolumeStatus(ctx context.Context, volume *corev1.PersistentVolume) (*corev1.PersistentVolume, error) {
	return written(w, Call{Verb: VerbUpdate, Subresource: Status}, w.API.UpdateVolumeStatus, ctx, volume)
}

// UpdateClaim updates a claim.
func (w *watchedAPI) UpdateClaim(ctx context.Context, claim *corev1.PersistentVolumeClaim) (*corev1.PersistentVolumeClaim, error) {
	return written(w, Call{Verb: VerbUpdate}, w.API.UpdateClaim, ctx, claim)
}

// UpdateClaimStatus updates the status of a claim.
func (w *watchedAPI) UpdateClaimStatus(ctx context.Context, claim *corev1.PersistentVolumeClaim) (*corev1.PersistentVolumeClaim, error) {
	return written(w, Call{Verb: VerbUpdate, Subresource: Status}, w.API.UpdateClaimStatus, ctx, claim)
}

// CreateVolume creates a volume.
func (w *watchedAPI) CreateVolume(ctx context.Context, volume *corev1.PersistentVolume) (*corev1.PersistentVolume, error) {
	return written(w, Call{Verb: VerbCreate}, w.API.CreateVolume, ctx, volume)
}

// DeleteVolume deletes a volume.
func (w *watchedAPI) DeleteVolume(ctx context.Context, name string, preconditions metav1.Preconditions) error {
	err := w.API.DeleteVolume(ctx, name, preconditions)
	if err == nil {
		key := obj.VolumeKey(name)
		w.note(Call{Verb: VerbDelete, Key: key, Before: w.seen[key]})
	}
	return err
}
