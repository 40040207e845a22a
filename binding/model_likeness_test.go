package binding_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pvbind/pvbind/binding/bindingtest"
	"github.com/pvbind/pvbind/binding/obj"
)

// likeness compares the model's server with bindingtest.Server. They number UIDs and versions in their own ways.
type likeness struct {
	tiny  *tinyServer
	large *bindingtest.Server
	uids  map[string]string // of the large one, as the tiny one has them
}

// meet notes the UIDs of objects that have been created.
func (l *likeness) meet() {
	for at, key := range l.tiny.things.keys {
		object, err := l.large.Get(context.Background(), l.keyOf(key))
		if err == nil && l.tiny.objects[at] != nil && l.uids[string(object.GetUID())] == "" {
			l.uids[string(object.GetUID())] = string(l.tiny.objects[at].object.GetUID())
		}
	}
}

// larger is the name that the large server has for what was made for a claim: it has its UID in it.
func (l *likeness) larger(name string) string {
	for large, tiny := range l.uids {
		if name == "pvc-"+tiny {
			return "pvc-" + large
		}
	}
	return name
}

func (l *likeness) keyOf(key obj.Key) obj.Key {
	key.Name = l.larger(key.Name)
	return key
}

// differ says how what the two have under a name differs; empty if it does not.
func (l *likeness) differ() string {
	l.meet()
	for at, key := range l.tiny.things.keys {
		if isList(key) {
			continue
		}
		object, err := l.large.Get(context.Background(), l.keyOf(key))
		stored := l.tiny.objects[at]
		switch {
		case (err != nil) != (stored == nil):
			return fmt.Sprintf("%s: the model has %v, the other %v", key, stored != nil, err)
		case stored != nil:
			if difference := bindingtest.Diff(bare(stored.object, nil), bare(object, l.uids)); difference != "" {
				return fmt.Sprintf("%s: the other has %s", key, difference)
			}
		}
	}
	return ""
}

// bare is an object without what the two servers number by themselves.
func bare(object obj.Object, uids map[string]string) obj.Object {
	object = object.DeepCopyObject().(obj.Object)
	object.SetResourceVersion("")
	object.SetCreationTimestamp(metav1.Time{})
	if object.GetDeletionTimestamp() != nil {
		object.SetDeletionTimestamp(&metav1.Time{Time: deletionTime})
	}
	object.SetUID(translated(object.GetUID(), uids))
	if claim, ok := object.(*corev1.PersistentVolumeClaim); ok {
		claim.Spec.VolumeName = smaller(claim.Spec.VolumeName, uids)
	}
	if volume, ok := object.(*corev1.PersistentVolume); ok {
		volume.Name = smaller(volume.Name, uids)
		volume.Spec.NFS = nil // it has the name in it
		volume.Status.LastPhaseTransitionTime = nil
		if ref := volume.Spec.ClaimRef; ref != nil {
			ref.ResourceVersion = ""
			ref.UID = translated(ref.UID, uids)
		}
	}
	return object
}

// smaller is the name that the tiny server has for what was made for a claim.
func smaller(name string, uids map[string]string) string {
	if uid, made := strings.CutPrefix(name, "pvc-"); made {
		return "pvc-" + translated(uid, uids)
	}
	return name
}

func translated[S ~string](uid S, uids map[string]string) S {
	if known, ok := uids[string(uid)]; ok {
		return S(known)
	}
	return uid
}

const likenessTables = `
	PV  CAPACITY
	x   1Gi

	PVC        REQUEST  CLASS
	default/a  1Gi      ""
	default/b  1Gi      -

	POD        NODE   CLAIMS
	default/p  node   a

	VA  VOLUME  NODE
	x   x       node
`

// TestModelServerIsLikeTheOther makes the same calls on the model's server and on bindingtest.Server, wild ones too,
// on old versions and on none, and compares every answer and all objects after each.
func TestModelServerIsLikeTheOther(t *testing.T) {
	const seed = 1
	runs := uint64(100)
	if testing.Short() {
		runs = 5
	}
	for run := range runs {
		random := rand.New(rand.NewPCG(seed, run))
		m := newModel(modelWorld{tables: likenessTables})
		now := m.beginning()
		l := &likeness{tiny: &now.server, large: bindingtest.NewServer(), uids: map[string]string{}}
		for _, name := range m.start {
			object, _ := m.rows[name].object(l.tiny)
			_, err := l.large.Create(context.Background(), object)
			require.NoError(t, err)
		}
		caller := &wildCaller{Rand: random, likeness: l, m: m}
		for range 60 {
			call, tiny, large := caller.call()
			require.Equal(t, tiny, large, "seed %d, run %d: %s", seed, run, call)
			require.Empty(t, l.differ(), "seed %d, run %d: after %s", seed, run, call)
		}
	}
}

// wildCaller makes a call of any kind on both servers.
type wildCaller struct {
	*rand.Rand
	*likeness
	m    *model
	olds []pairOfVersions
}

// pairOfVersions is one state of an object as both servers have it.
type pairOfVersions struct{ tiny, large obj.Object }

func (w *wildCaller) call() (call string, tiny, large failure) {
	at := w.IntN(len(w.m.rows))
	key := w.m.keys[at]
	switch w.IntN(9) {
	case 0:
		return "delete " + key.String(), w.tiny.delete(at).fail, reasonOf(w.large.Delete(context.Background(), key, metav1.DeleteOptions{}))
	case 1:
		object, _ := w.m.rows[display(key)].object(w.tiny)
		_, err := w.large.Create(context.Background(), object)
		return "create " + key.String(), w.tiny.create(object).fail, reasonOf(err)
	case 2:
		return w.deleteExactly()
	}
	if w.tiny.objects[at] != nil && key.Kind != bindingtest.KindPod && key.Kind != bindingtest.KindAttachment {
		object, _ := w.large.Get(context.Background(), key)
		w.olds = append(w.olds, pairOfVersions{w.tiny.objects[at].object, object})
	}
	if len(w.olds) == 0 {
		return "nothing", "", ""
	}
	chosen := w.olds[len(w.olds)-1]
	if w.IntN(4) == 0 {
		chosen = w.olds[w.IntN(len(w.olds))]
	}
	return w.update(chosen)
}

// deleteExactly deletes a volume if it still is the one that was read some time ago.
func (w *wildCaller) deleteExactly() (call string, tiny, large failure) {
	for _, old := range w.olds {
		volume, ok := old.tiny.(*corev1.PersistentVolume)
		if !ok || w.IntN(2) == 0 {
			continue
		}
		uid, version := old.large.GetUID(), old.large.GetResourceVersion()
		options := metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid, ResourceVersion: &version}}
		err := w.large.Delete(context.Background(), obj.VolumeKey(volume.Name), options)
		return "delete exactly " + volume.Name, w.tiny.deleteExactly(w.tiny.things.place(obj.VolumeKey(volume.Name)), volume).fail, reasonOf(err)
	}
	return "nothing", "", ""
}

func (w *wildCaller) update(of pairOfVersions) (call string, tiny, large failure) {
	edit, name := w.edit(of.tiny)
	a, b := of.tiny.DeepCopyObject().(obj.Object), of.large.DeepCopyObject().(obj.Object)
	edit(a, nil)
	edit(b, w.backwards())
	if w.IntN(10) == 0 {
		a.SetResourceVersion("")
		b.SetResourceVersion("")
	}
	if w.IntN(2) == 0 {
		_, err := w.large.UpdateStatus(context.Background(), b)
		return "status: " + name, w.tiny.update(a, statusHalf).fail, reasonOf(err)
	}
	_, err := w.large.Update(context.Background(), b)
	return name, w.tiny.update(a, specHalf).fail, reasonOf(err)
}

// backwards are the UIDs of the large server by those of the tiny one.
func (w *wildCaller) backwards() map[string]string {
	w.meet()
	back := map[string]string{}
	for large, tiny := range w.uids {
		back[tiny] = large
	}
	return back
}

// edit is a change of an object of that kind.
func (w *wildCaller) edit(of obj.Object) (edit func(obj.Object, map[string]string), name string) {
	common := []string{"finalizers gone", "another finalizer", "annotation", "nothing", "annotation gone"}
	volume := []string{"claimRef", "claimRef without UID", "no claimRef", "Released", "Bound", "Delete"}
	claim := []string{"volumeName x", "volumeName y", "no volumeName", "class", "Bound", "Lost"}
	if _, ok := of.(*corev1.PersistentVolume); ok {
		common = append(common, volume...)
	} else {
		common = append(common, claim...)
	}
	name = common[w.IntN(len(common))]
	uid := "a." + strconv.Itoa(1+w.IntN(2))
	return func(object obj.Object, uids map[string]string) {
		w.apply(object, name, translated(uid, uids))
	}, name + " " + of.GetName()
}

func (w *wildCaller) apply(object obj.Object, name, uid string) {
	switch name {
	case "finalizers gone":
		object.SetFinalizers(nil)
	case "another finalizer":
		object.SetFinalizers(append(object.GetFinalizers(), "example.com/mine"))
	case "annotation":
		annotate(object, []string{completed + "=yes"})
	case "annotation gone":
		annotate(object, []string{completed + "-"})
	}
	switch o := object.(type) {
	case *corev1.PersistentVolume:
		applyToVolume(o, name, uid)
	case *corev1.PersistentVolumeClaim:
		applyToClaim(o, name)
	}
}

func applyToVolume(volume *corev1.PersistentVolume, name, uid string) {
	switch name {
	case "claimRef":
		_ = setClaimRef(volume, "default/a:"+uid)
	case "claimRef without UID":
		_ = setClaimRef(volume, "default/a")
	case "no claimRef":
		volume.Spec.ClaimRef = nil
	case "Released", "Bound":
		volume.Status.Phase = corev1.PersistentVolumePhase(name)
	case "Delete":
		volume.Spec.PersistentVolumeReclaimPolicy = corev1.PersistentVolumeReclaimDelete
	}
}

func applyToClaim(claim *corev1.PersistentVolumeClaim, name string) {
	switch name {
	case "volumeName x", "volumeName y", "no volumeName":
		claim.Spec.VolumeName = strings.TrimPrefix(strings.TrimPrefix(name, "volumeName "), "no volumeName")
	case "class":
		claim.Spec.StorageClassName = new("fast")
	case "Bound", "Lost":
		claim.Status.Phase = corev1.PersistentVolumeClaimPhase(name)
	}
}

func reasonOf(err error) failure { return failure(apierrors.ReasonForError(err)) }
