package binding_test

import (
	"fmt"
	"math/rand/v2"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pvbind/pvbind/binding/match"
	"github.com/pvbind/pvbind/binding/obj"
)

// world makes random requests. Every field has few values, and the one that fits is frequent, so that
// many volumes fail for one reason alone and many are equal.
type world struct{ *rand.Rand }

// pick is one of the values; repeat a value to make it more frequent.
func pick[T any](w world, values ...T) T { return values[w.IntN(len(values))] }

// rarely is true once in n times.
func (w world) rarely(n int) bool { return w.IntN(n) == 0 }

func (w world) request() match.Request {
	request := match.Request{Claim: w.claim()}
	if pick(w, true, false) {
		request.Node = w.node()
	}
	if !w.rarely(3) {
		immediate := storagev1.VolumeBindingImmediate
		request.Class = classWith(new(pick(w, immediate, immediate, storagev1.VolumeBindingWaitForFirstConsumer)))
	}
	owners, owns := map[string][]obj.Key{}, false
	request.Owners = func(volume string) []obj.Key { return owners[volume] }
	for i := range w.IntN(10) {
		volume := w.volume(fmt.Sprintf("pv-%d", i))
		request.Volumes = append(request.Volumes, volume)
		if w.rarely(15) {
			other := obj.ClaimKey("default", "logs-"+volume.Name)
			owners[volume.Name] = []obj.Key{other}
			if !owns && w.rarely(2) { // a claim owns one volume
				owns = true
				owners[volume.Name] = pick(w, []obj.Key{obj.KeyOf(request.Claim)}, []obj.Key{obj.KeyOf(request.Claim), other})
			}
		}
	}
	w.shuffle(request.Volumes)
	return request
}

func (w world) shuffle(volumes []*corev1.PersistentVolume) {
	w.Shuffle(len(volumes), func(i, j int) { volumes[i], volumes[j] = volumes[j], volumes[i] })
}

func (w world) claim() *corev1.PersistentVolumeClaim {
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "data", UID: "uid-1"}}
	claim.Spec.Resources.Requests = pick(w, nil, storage("0"), storage("1Gi"), storage("2Gi"), storage("2048Mi"))
	claim.Spec.AccessModes = pick(w, modes(""), modes("O"), modes("O"), modes("O"), modes("O"), modes("O"), modes("M"), modes("OR"), modes("P"))
	claim.Spec.VolumeMode = w.volumeMode()
	claim.Spec.StorageClassName = pick(w, nil, new(""), new("fast"), new("fast"), new("fast"), new("fast"), new("fast"), new("fast"))
	claim.Annotations = w.betaClass()
	claim.Spec.VolumeAttributesClassName = w.attributesClass()
	claim.Spec.Selector = w.selector()
	return claim
}

func (w world) volume(name string) *corev1.PersistentVolume {
	volume := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: name}}
	volume.Spec.Capacity = w.capacity()
	volume.Spec.AccessModes = pick(w, modes("O"), modes("OO"), modes("OR"), modes("OM"), modes("RO"), modes("OP"),
		modes("ORM"), modes("ORMP"), modes("P"), modes("M"))
	if w.rarely(50) {
		volume.Spec.AccessModes = append(volume.Spec.AccessModes, "WriteNever")
	}
	volume.Spec.VolumeMode = w.volumeMode()
	volume.Spec.StorageClassName = pick(w, "", "fast", "fast", "fast", "fast", "fast", "fast")
	volume.Annotations = w.betaClass()
	volume.Spec.VolumeAttributesClassName = w.attributesClass()
	volume.Labels = pick(w, nil, map[string]string{"tier": "gold"}, map[string]string{"tier": "tin"})
	volume.Spec.NodeAffinity = w.affinity()
	volume.Spec.ClaimRef = w.claimRef()
	if w.rarely(20) {
		volume.DeletionTimestamp = new(metav1.Unix(1_700_000_000, 0))
	}
	volume.Status.Phase = corev1.VolumeAvailable
	if w.rarely(4) {
		volume.Status.Phase = pick(w, corev1.VolumePending, "", corev1.VolumeReleased, corev1.VolumeFailed, corev1.VolumeBound)
	}
	return volume
}

// modes spells access modes by letters: Once, Read, Many, oncePod.
func modes(letters string) []corev1.PersistentVolumeAccessMode {
	var list []corev1.PersistentVolumeAccessMode
	for _, letter := range letters {
		list = append(list, map[rune]corev1.PersistentVolumeAccessMode{'O': corev1.ReadWriteOnce,
			'R': corev1.ReadOnlyMany, 'M': corev1.ReadWriteMany, 'P': corev1.ReadWriteOncePod}[letter])
	}
	return list
}

func (w world) capacity() corev1.ResourceList {
	if w.rarely(25) {
		return pick(w, nil, corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")}, storage("-1Gi"))
	}
	return storage(pick(w, "0", "1Gi", "2Gi", "2048Mi", "2G", "3Gi", "3Gi", "3Gi"))
}

func (w world) volumeMode() *corev1.PersistentVolumeMode {
	if w.rarely(15) {
		return new(corev1.PersistentVolumeBlock)
	}
	return pick(w, nil, new(corev1.PersistentVolumeFilesystem))
}

func (w world) betaClass() map[string]string {
	if w.rarely(15) {
		return map[string]string{corev1.BetaStorageClassAnnotation: pick(w, "", "fast", "slow")}
	}
	return nil
}

func (w world) attributesClass() *string {
	if w.rarely(15) {
		return new("iops")
	}
	return pick(w, nil, new(""))
}

func (w world) selector() *metav1.LabelSelector {
	if !w.rarely(4) {
		return nil
	}
	return pick(w, &metav1.LabelSelector{}, &metav1.LabelSelector{MatchLabels: map[string]string{"tier": "gold"}},
		&metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
			{Key: "tier", Operator: pick(w, metav1.LabelSelectorOpExists, metav1.LabelSelectorOpDoesNotExist)},
			{Key: "tier", Operator: metav1.LabelSelectorOpNotIn, Values: []string{"tin"}}}})
}

// claimRef is nil, or one of L2 to L5.
func (w world) claimRef() *corev1.ObjectReference {
	if !w.rarely(3) {
		return nil
	}
	return pick(w,
		&corev1.ObjectReference{Namespace: "default", Name: "data"},
		&corev1.ObjectReference{Namespace: "default", Name: "data", UID: "uid-1"},
		&corev1.ObjectReference{Namespace: "default", Name: "data", UID: "uid-0"},
		&corev1.ObjectReference{Namespace: "default", Name: "logs", UID: "uid-1"},
		&corev1.ObjectReference{Namespace: "other", Name: "data"})
}

func (w world) node() *corev1.Node {
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node-1", Labels: pick(w, nil,
		map[string]string{"zone": "a"}, map[string]string{"zone": "a", "rank": "7"}, map[string]string{"zone": "b"},
		map[string]string{"zone": "not a label value!"})}}
}

func (w world) affinity() *corev1.VolumeNodeAffinity {
	if pick(w, true, false) {
		return pick(w, nil, nil, nil, &corev1.VolumeNodeAffinity{})
	}
	required := &corev1.NodeSelector{}
	for range w.IntN(3) {
		var term corev1.NodeSelectorTerm
		for range w.IntN(3) {
			term.MatchExpressions = append(term.MatchExpressions, w.requirement())
		}
		if w.rarely(8) {
			term.MatchFields = append(term.MatchFields, require1("metadata.name", corev1.NodeSelectorOpIn, pick(w, "node-1", "node-2")))
		}
		required.NodeSelectorTerms = append(required.NodeSelectorTerms, term)
	}
	return &corev1.VolumeNodeAffinity{Required: required}
}

func (w world) requirement() corev1.NodeSelectorRequirement {
	return pick(w,
		require1("zone", corev1.NodeSelectorOpIn, "a"), require1("zone", corev1.NodeSelectorOpIn, "a", "b"),
		require1("zone", corev1.NodeSelectorOpNotIn, "b"), require1("zone", corev1.NodeSelectorOpExists),
		require1("rank", corev1.NodeSelectorOpDoesNotExist), require1("rank", corev1.NodeSelectorOpGt, "5"),
		require1("rank", corev1.NodeSelectorOpLt, "many"), require1("zone", "Near", "a"),
		require1("zone", corev1.NodeSelectorOpIn, "a", "not a label value!"), require1("no key!", corev1.NodeSelectorOpIn, "a"),
		require1("zone", corev1.NodeSelectorOpIn))
}
