package testkit

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"testing"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pvbind/pvbind/binding/match"
	"github.com/pvbind/pvbind/binding/obj"
	"github.com/pvbind/pvbind/phase"
)

// AddSeeds adds some inputs of a length that lets the bytes decide everything.
func AddSeeds(f *testing.F, length int) {
	random := rand.New(rand.NewPCG(1, 1))
	for range 10 {
		bytes := make([]byte, length)
		for i := range bytes {
			bytes[i] = byte(random.Uint32())
		}
		f.Add(bytes)
	}
}

// NewChoices returns a source of random numbers that begins with the given bytes, for fuzzing.
func NewChoices(bytes []byte) *choices {
	return &choices{bytes, rand.NewPCG(uint64(len(bytes)), 0)}
}

// choices is a source of random numbers that begins with the given bytes.
type choices struct {
	bytes []byte
	rest  *rand.PCG
}

// Uint64 repeats two bytes, for small numbers are made of the high bits and shuffles of the low ones.
func (c *choices) Uint64() uint64 {
	if len(c.bytes) < 2 {
		return c.rest.Uint64()
	}
	next := uint64(binary.BigEndian.Uint16(c.bytes))
	c.bytes = c.bytes[2:]
	return next<<48 | next<<32 | next<<16 | next
}

// World makes random requests. Every field has few values, and the one that fits is frequent, so that
// many volumes fail for one reason alone and many are equal.
type World struct{ *rand.Rand }

// Rarely reports true once in n times.
func (w World) Rarely(n int) bool { return w.IntN(n) == 0 }

// Request returns a claim, volumes, a class and a node for match.
func (w World) Request() match.Request {
	request := match.Request{Claim: w.Claim()}
	if Pick(w, true, false) {
		request.Node = w.Node()
	}
	if !w.Rarely(3) {
		immediate := storagev1.VolumeBindingImmediate
		request.Class = ClassWith(new(Pick(w, immediate, immediate, storagev1.VolumeBindingWaitForFirstConsumer)))
	}
	owners, owns := map[string][]obj.Key{}, false
	request.Owners = func(volume string) []obj.Key { return owners[volume] }
	for i := range w.IntN(10) {
		volume := w.Volume(fmt.Sprintf("pv-%d", i))
		request.Volumes = append(request.Volumes, volume)
		if w.Rarely(15) {
			other := obj.ClaimKey("default", "logs-"+volume.Name)
			owners[volume.Name] = []obj.Key{other}
			if !owns && w.Rarely(2) { // a claim owns one volume
				owns = true
				owners[volume.Name] = Pick(w, []obj.Key{obj.KeyOf(request.Claim)}, []obj.Key{obj.KeyOf(request.Claim), other})
			}
		}
	}
	w.ShuffleVolumes(request.Volumes)
	return request
}

// ShuffleVolumes brings volumes into a random order.
func (w World) ShuffleVolumes(volumes []*corev1.PersistentVolume) {
	w.Rand.Shuffle(len(volumes), func(i, j int) { volumes[i], volumes[j] = volumes[j], volumes[i] })
}

// Claim returns a random claim.
func (w World) Claim() *corev1.PersistentVolumeClaim {
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "data", UID: "uid-1"}}
	claim.Spec.Resources.Requests = Pick(w, nil, Storage("0"), Storage("1Gi"), Storage("2Gi"), Storage("2048Mi"))
	claim.Spec.AccessModes = Pick(w, Modes(""), Modes("O"), Modes("O"), Modes("O"), Modes("O"), Modes("O"), Modes("M"), Modes("OR"), Modes("P"))
	claim.Spec.VolumeMode = w.volumeMode()
	claim.Spec.StorageClassName = Pick(w, nil, new(""), new("fast"), new("fast"), new("fast"), new("fast"), new("fast"), new("fast"))
	claim.Annotations = w.betaClass()
	claim.Spec.VolumeAttributesClassName = w.attributesClass()
	claim.Spec.Selector = w.selector()
	return claim
}

// Volume returns a random volume of that name.
func (w World) Volume(name string) *corev1.PersistentVolume {
	volume := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: name}}
	volume.Spec.Capacity = w.capacity()
	volume.Spec.AccessModes = Pick(w, Modes("O"), Modes("OO"), Modes("OR"), Modes("OM"), Modes("RO"), Modes("OP"),
		Modes("ORM"), Modes("ORMP"), Modes("P"), Modes("M"))
	if w.Rarely(50) {
		volume.Spec.AccessModes = append(volume.Spec.AccessModes, "WriteNever")
	}
	volume.Spec.VolumeMode = w.volumeMode()
	volume.Spec.StorageClassName = Pick(w, "", "fast", "fast", "fast", "fast", "fast", "fast")
	volume.Annotations = w.betaClass()
	volume.Spec.VolumeAttributesClassName = w.attributesClass()
	volume.Labels = Pick(w, nil, map[string]string{"tier": "gold"}, map[string]string{"tier": "tin"})
	volume.Spec.NodeAffinity = w.affinity()
	volume.Spec.ClaimRef = w.claimRef()
	if w.Rarely(20) {
		volume.DeletionTimestamp = new(metav1.Unix(1_700_000_000, 0))
	}
	if w.Rarely(20) {
		VolumeNote(phase.AnnouncementAnnotation, "{}")(volume)
	}
	volume.Status.Phase = corev1.VolumeAvailable
	if w.Rarely(4) {
		volume.Status.Phase = Pick(w, corev1.VolumePending, "", corev1.VolumeReleased, corev1.VolumeFailed, corev1.VolumeBound)
	}
	return volume
}

func (w World) capacity() corev1.ResourceList {
	if w.Rarely(25) {
		return Pick(w, nil, corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")}, Storage("-1Gi"))
	}
	return Storage(Pick(w, "0", "1Gi", "2Gi", "2048Mi", "2G", "3Gi", "3Gi", "3Gi"))
}

func (w World) volumeMode() *corev1.PersistentVolumeMode {
	if w.Rarely(15) {
		return new(corev1.PersistentVolumeBlock)
	}
	return Pick(w, nil, new(corev1.PersistentVolumeFilesystem))
}

func (w World) betaClass() map[string]string {
	if w.Rarely(15) {
		return map[string]string{corev1.BetaStorageClassAnnotation: Pick(w, "", "fast", "slow")}
	}
	return nil
}

func (w World) attributesClass() *string {
	if w.Rarely(15) {
		return new("iops")
	}
	return Pick(w, nil, new(""))
}

func (w World) selector() *metav1.LabelSelector {
	if !w.Rarely(4) {
		return nil
	}
	return Pick(w, &metav1.LabelSelector{}, &metav1.LabelSelector{MatchLabels: map[string]string{"tier": "gold"}},
		&metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
			{Key: "tier", Operator: Pick(w, metav1.LabelSelectorOpExists, metav1.LabelSelectorOpDoesNotExist)},
			{Key: "tier", Operator: metav1.LabelSelectorOpNotIn, Values: []string{"tin"}}}})
}

// claimRef returns nil, or one of L2 to L5.
func (w World) claimRef() *corev1.ObjectReference {
	if !w.Rarely(3) {
		return nil
	}
	return Pick(w,
		&corev1.ObjectReference{Namespace: "default", Name: "data"},
		&corev1.ObjectReference{Namespace: "default", Name: "data", UID: "uid-1"},
		&corev1.ObjectReference{Namespace: "default", Name: "data", UID: "uid-0"},
		&corev1.ObjectReference{Namespace: "default", Name: "logs", UID: "uid-1"},
		&corev1.ObjectReference{Namespace: "other", Name: "data"})
}

// Node returns a random node.
func (w World) Node() *corev1.Node {
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node-1", Labels: Pick(w, nil,
		map[string]string{"zone": "a"}, map[string]string{"zone": "a", "rank": "7"}, map[string]string{"zone": "b"},
		map[string]string{"zone": "not a label value!"})}}
}

func (w World) affinity() *corev1.VolumeNodeAffinity {
	if Pick(w, true, false) {
		return Pick(w, nil, nil, nil, &corev1.VolumeNodeAffinity{})
	}
	required := &corev1.NodeSelector{}
	for range w.IntN(3) {
		var term corev1.NodeSelectorTerm
		for range w.IntN(3) {
			term.MatchExpressions = append(term.MatchExpressions, w.requirement())
		}
		if w.Rarely(8) {
			term.MatchFields = append(term.MatchFields, Require1("metadata.name", corev1.NodeSelectorOpIn, Pick(w, "node-1", "node-2")))
		}
		required.NodeSelectorTerms = append(required.NodeSelectorTerms, term)
	}
	return &corev1.VolumeNodeAffinity{Required: required}
}

func (w World) requirement() corev1.NodeSelectorRequirement {
	return Pick(w,
		Require1("zone", corev1.NodeSelectorOpIn, "a"), Require1("zone", corev1.NodeSelectorOpIn, "a", "b"),
		Require1("zone", corev1.NodeSelectorOpNotIn, "b"), Require1("zone", corev1.NodeSelectorOpExists),
		Require1("rank", corev1.NodeSelectorOpDoesNotExist), Require1("rank", corev1.NodeSelectorOpGt, "5"),
		Require1("rank", corev1.NodeSelectorOpLt, "many"), Require1("zone", "Near", "a"),
		Require1("zone", corev1.NodeSelectorOpIn, "a", "not a label value!"), Require1("no key!", corev1.NodeSelectorOpIn, "a"),
		Require1("zone", corev1.NodeSelectorOpIn))
}

// NewWorld returns a World that draws from the source.
func NewWorld(source rand.Source) World { return World{rand.New(source)} }

// Pick returns one of the values; repeat a value to make it more frequent.
func Pick[T any](w World, values ...T) T { return values[w.IntN(len(values))] }
