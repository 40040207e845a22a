package model_test

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
	"github.com/pvbind/pvbind/binding/hooks"
	"github.com/pvbind/pvbind/binding/internal/scenario"
	. "github.com/pvbind/pvbind/binding/internal/testkit"
	"github.com/pvbind/pvbind/binding/obj"
)

// comparison compares the model's server with bindingtest.Server. They number UIDs and versions in their own ways.
type comparison struct {
	tiny  *tinyServer
	large *bindingtest.Server
	uids  map[string]string // of the large one, as the tiny one has them
}

// pairUIDs notes the UIDs of objects that have been created.
func (l *comparison) pairUIDs() {
	for at, key := range l.tiny.revisions.keys {
		object, err := l.large.Get(context.Background(), l.keyOf(key))
		if err == nil && l.tiny.objects[at] != nil && l.uids[string(object.GetUID())] == "" {
			l.uids[string(object.GetUID())] = string(l.tiny.objects[at].object.GetUID())
		}
	}
}

// largeName returns the name that the large server has for what was made for a claim: it has its UID in it.
func (l *comparison) largeName(name string) string {
	for large, tiny := range l.uids {
		if name == "pvc-"+tiny {
			return "pvc-" + large
		}
	}
	return name
}

func (l *comparison) keyOf(key obj.Key) obj.Key {
	key.Name = l.largeName(key.Name)
	return key
}

// differ says how what the two have under a name differs; empty if it does not.
func (l *comparison) differ() string {
	l.pairUIDs()
	for at, key := range l.tiny.revisions.keys {
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

// bare returns an object without what the two servers number by themselves.
func bare(object obj.Object, uids map[string]string) obj.Object {
	object = object.DeepCopyObject().(obj.Object)
	object.SetResourceVersion("")
	object.SetCreationTimestamp(metav1.Time{})
	if object.GetDeletionTimestamp() != nil {
		object.SetDeletionTimestamp(&metav1.Time{Time: deletionTime})
	}
	object.SetUID(translated(object.GetUID(), uids))
	object.SetAnnotations(withoutToken(object.GetAnnotations()))
	if claim, ok := object.(*corev1.PersistentVolumeClaim); ok {
		claim.Spec.VolumeName = tinyName(claim.Spec.VolumeName, uids)
	}
	if volume, ok := object.(*corev1.PersistentVolume); ok {
		volume.Name = tinyName(volume.Name, uids)
		volume.Spec.NFS = nil // it has the name in it
		volume.Status.LastPhaseTransitionTime = nil
		if ref := volume.Spec.ClaimRef; ref != nil {
			ref.ResourceVersion = ""
			ref.UID = translated(ref.UID, uids)
		}
	}
	return object
}

// tinyName returns the name that the model's server has for what was made for a claim.
func tinyName(name string, uids map[string]string) string {
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

const comparedTables = `
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

// TestModelServerMatchesBindingtest makes the same calls on the model's server and on bindingtest.Server, wild ones too,
// on old versions and on none, and compares every answer and all objects after each.
func TestModelServerMatchesBindingtest(t *testing.T) {
	const seed = 1
	runs := uint64(100)
	if testing.Short() {
		runs = 5
	}
	for run := range runs {
		random := rand.New(rand.NewPCG(seed, run))
		m := newModel(modelWorld{tables: comparedTables})
		now := m.beginning()
		l := &comparison{tiny: &now.server, large: bindingtest.NewServer(), uids: map[string]string{}}
		for _, name := range m.start {
			object, _ := m.rows[name].object(l.tiny)
			_, err := l.large.Create(context.Background(), object)
			require.NoError(t, err)
		}
		caller := &randomCaller{Rand: random, comparison: l, m: m}
		for range 60 {
			call, tiny, large := caller.call()
			require.Equal(t, tiny, large, "seed %d, run %d: %s", seed, run, call)
			require.Empty(t, l.differ(), "seed %d, run %d: after %s", seed, run, call)
		}
	}
}

// randomCaller makes a call of any kind on both servers.
type randomCaller struct {
	*rand.Rand
	*comparison
	m    *model
	olds []versionPair
}

// versionPair is one state of an object as both servers have it.
type versionPair struct{ tiny, large obj.Object }

func (w *randomCaller) call() (call string, tiny, large failure) {
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
	if w.tiny.objects[at] != nil && key.Kind != obj.KindPod && key.Kind != obj.KindAttachment {
		object, _ := w.large.Get(context.Background(), key)
		w.olds = append(w.olds, versionPair{w.tiny.objects[at].object, object})
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
func (w *randomCaller) deleteExactly() (call string, tiny, large failure) {
	for _, old := range w.olds {
		volume, ok := old.tiny.(*corev1.PersistentVolume)
		if !ok || w.IntN(2) == 0 {
			continue
		}
		uid, version := old.large.GetUID(), old.large.GetResourceVersion()
		options := metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid, ResourceVersion: &version}}
		err := w.large.Delete(context.Background(), obj.VolumeKey(volume.Name), options)
		return "delete exactly " + volume.Name, w.tiny.deleteExactly(w.tiny.revisions.indexOf(obj.VolumeKey(volume.Name)), volume).fail, reasonOf(err)
	}
	return "nothing", "", ""
}

func (w *randomCaller) update(of versionPair) (call string, tiny, large failure) {
	edit, name := w.edit(of.tiny)
	a, b := of.tiny.DeepCopyObject().(obj.Object), of.large.DeepCopyObject().(obj.Object)
	edit(a, nil)
	edit(b, w.tinyToLarge())
	if w.IntN(10) == 0 {
		a.SetResourceVersion("")
		b.SetResourceVersion("")
	}
	if w.IntN(2) == 0 {
		_, err := w.large.UpdateStatus(context.Background(), b)
		return "status: " + name, w.tiny.update(a, statusPart).fail, reasonOf(err)
	}
	_, err := w.large.Update(context.Background(), b)
	return name, w.tiny.update(a, specPart).fail, reasonOf(err)
}

// tinyToLarge returns the UIDs of the large server by those of the tiny one.
func (w *randomCaller) tinyToLarge() map[string]string {
	w.pairUIDs()
	back := map[string]string{}
	for large, tiny := range w.uids {
		back[tiny] = large
	}
	return back
}

// edit returns a change of an object of that kind.
func (w *randomCaller) edit(of obj.Object) (edit func(obj.Object, map[string]string), name string) {
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

func (w *randomCaller) apply(object obj.Object, name, uid string) {
	switch name {
	case "finalizers gone":
		object.SetFinalizers(nil)
	case "another finalizer":
		object.SetFinalizers(append(object.GetFinalizers(), "example.com/mine"))
	case "annotation":
		annotate(object, []string{Completed + "=yes"})
	case "annotation gone":
		annotate(object, []string{Completed + "-"})
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
		_ = scenario.SetClaimRef(volume, "default/a:"+uid)
	case "claimRef without UID":
		_ = scenario.SetClaimRef(volume, "default/a")
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

// TestModelStorageMatchesBindingtest makes the same calls on the model's storage and on bindingtest.Storage, and compares
// what is there after each.
func TestModelStorageMatchesBindingtest(t *testing.T) {
	const seed = 1
	random := rand.New(rand.NewPCG(seed, 0))
	revisions := newRevisions([]obj.Key{obj.VolumeKey("a"), obj.VolumeKey("b"), obj.VolumeKey("c")})
	var tiny tinyStorage
	large := bindingtest.NewStorage()
	for range Worlds(2000) {
		at := random.IntN(len(revisions.keys))
		volume := bindingtest.Volume(revisions.keys[at].Name, "1Gi")
		claim := bindingtest.Claim("default", volume.Name, "1Gi")
		call := []string{"provision", "delete", "recycle", "write"}[random.IntN(4)]
		switch call {
		case "provision":
			tiny.provision(at)
			_, err := large.Provision(t.Context(), hooks.ProvisionRequest{Claim: claim, Volume: volume})
			require.NoError(t, err)
		case "delete":
			tiny.delete(at)
			require.NoError(t, large.Delete(t.Context(), hooks.ReclaimRequest{Volume: volume}))
		case "recycle":
			tiny.recycle(at)
			require.NoError(t, large.Recycle(t.Context(), hooks.ReclaimRequest{Volume: volume}))
		case "write":
			tiny.write(at)
			large.Write(volume.Name)
		}
		var kept, written nameSet
		for _, storage := range large.Kept() {
			here := nameAt(revisions.indexOf(obj.VolumeKey(storage.Volume)))
			kept |= here
			if storage.Content == bindingtest.Written {
				written |= here
			}
		}
		require.Equal(t, []nameSet{kept, written}, []nameSet{tiny.kept, tiny.written}, "seed %d: after %s %s", seed, call, volume.Name)
	}
}

// TestModelNoticesLostStorage holds the judgement of what is stored at the end to what it is there for.
func TestModelNoticesLostStorage(t *testing.T) {
	m := newModel(worldNamed("a provisioned claim"))
	now := m.beginning()
	made := m.indexOf(obj.VolumeKey("pvc-a.1"))
	require.True(t, now.storage.kept.has(made))
	require.Empty(t, judgeStorage(&now.server, now.storage))

	lost := *now
	lost.server.remove(made)
	require.Equal(t, []string{"P2: the storage of pvc-a.1 is lost track of"}, judgeStorage(&lost.server, lost.storage))

	gone := *now
	gone.storage.delete(made)
	require.Equal(t, []string{"R3: pvc-a.1 has no storage any more"}, judgeStorage(&gone.server, gone.storage))

	retained := *now
	editing(func(_ *tinyServer, object obj.Object) bool {
		object.(*corev1.PersistentVolume).Spec.PersistentVolumeReclaimPolicy = corev1.PersistentVolumeReclaimRetain
		return true
	})(&retained.server, made)
	before := retained.server.objects[made]
	retained.server.remove(made)
	m.retainStorage(&retained, made, before)
	require.Empty(t, judgeStorage(&retained.server, retained.storage))
}
