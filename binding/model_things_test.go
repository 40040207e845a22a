package binding_test

import (
	"math/bits"
	"reflect"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"

	"github.com/pvbind/pvbind/binding/obj"
)

// thing is one state of an object, as the model's server stores it and hands it to everybody. There is one for
// each content and version, so that two worlds that came about differently share it.
type thing struct {
	object  obj.Object
	copy    obj.Object // never handed out, to compare with (X6)
	at      int        // its name, as a place in things.keys
	content uint32     // all of it but the resourceVersion
	version uint8      // its resourceVersion: the number of the write, counted for this name alone
}

// things are all states of all objects that a model has come across, and their names.
//
// The names are few and known beforehand. UIDs are made of the name and the number of its creations, and
// resourceVersions count the writes of one name, so that neither tells in which order different objects were
// written: nothing compares those.
type things struct {
	keys      []obj.Key
	places    map[obj.Key]int
	contents  map[string]uint32 // by what the API would send
	stored    map[uint64]*thing // by content and version
	byPointer map[obj.Object]*thing
	scratch   []byte
}

func newThings(keys []obj.Key) *things {
	t := &things{keys: keys, places: map[obj.Key]int{}, contents: map[string]uint32{}, stored: map[uint64]*thing{}, byPointer: map[obj.Object]*thing{}}
	for i, key := range keys {
		t.places[key] = i
	}
	return t
}

// place is where the key stands among the names; it must be one of them.
func (t *things) place(key obj.Key) int {
	at, ok := t.places[key]
	if !ok {
		panic("the model has no name " + key.String())
	}
	return at
}

// keep is the thing that the object is from now on.
func (t *things) keep(at int, object obj.Object, version uint8) *thing {
	content := t.contentOf(object)
	id := uint64(content)<<8 | uint64(version)
	if known := t.stored[id]; known != nil {
		return known
	}
	object = object.DeepCopyObject().(obj.Object)
	object.SetResourceVersion("")
	if version > 0 { // else it is not stored
		object.SetResourceVersion(strconv.Itoa(int(version)))
	}
	made := &thing{object: object, copy: object.DeepCopyObject().(obj.Object), at: at, content: content, version: version}
	t.stored[id], t.byPointer[object] = made, made
	return made
}

// of is the thing that the object is. One that the model did not make is as good as one with its content.
func (t *things) of(object obj.Object) *thing {
	if known := t.byPointer[object]; known != nil {
		return known
	}
	key := keyOfAny(object)
	version, _ := strconv.Atoi(object.GetResourceVersion())
	return &thing{object: object, at: t.place(key), content: t.contentOf(object), version: uint8(version)}
}

// contentOf numbers what an object says, but for its resourceVersion and the one in its claimRef, which nothing
// reads.
func (t *things) contentOf(object obj.Object) uint32 {
	var size int
	switch o := object.(type) {
	case *corev1.PersistentVolume:
		bare := *o
		bare.ResourceVersion = ""
		if o.Spec.ClaimRef != nil {
			ref := *o.Spec.ClaimRef
			ref.ResourceVersion = ""
			bare.Spec.ClaimRef = &ref
		}
		size = t.marshal('v', &bare)
	case *corev1.PersistentVolumeClaim:
		bare := *o
		bare.ResourceVersion = ""
		size = t.marshal('c', &bare)
	case *storagev1.StorageClass:
		bare := *o
		bare.ResourceVersion = ""
		size = t.marshal('s', &bare)
	case *corev1.Pod:
		bare := *o
		bare.ResourceVersion = ""
		size = t.marshal('p', &bare)
	case *storagev1.VolumeAttachment:
		bare := *o
		bare.ResourceVersion = ""
		size = t.marshal('a', &bare)
	}
	text := t.scratch[:size]
	if known, ok := t.contents[string(text)]; ok {
		return known
	}
	number := uint32(len(t.contents) + 1) // zero is no object
	t.contents[string(text)] = number
	return number
}

type marshaler interface {
	Size() int
	MarshalToSizedBuffer([]byte) (int, error)
}

// marshal puts into the scratch what the API would send, after a letter for the kind.
func (t *things) marshal(kind byte, object marshaler) int {
	size := object.Size() + 1
	t.scratch = slices.Grow(t.scratch[:0], size)[:size]
	t.scratch[0] = kind
	if _, err := object.MarshalToSizedBuffer(t.scratch[1:]); err != nil {
		panic(err)
	}
	return size
}

// modified are the objects that somebody has written into though they are shared (X6).
func (t *things) modified() (found []*thing) {
	for _, thing := range t.stored {
		if !reflect.DeepEqual(thing.object, thing.copy) {
			found = append(found, thing)
		}
	}
	return found
}

// versions is a set of versions of one name.
type versions [4]uint64

func (v *versions) add(version uint8) { v[version>>6] |= 1 << (version & 63) }

// rank is how many versions in the set are older.
func (v *versions) rank(version uint8) byte {
	older := bits.OnesCount64(v[version>>6] & (1<<(version&63) - 1))
	for _, word := range v[:version>>6] {
		older += bits.OnesCount64(word)
	}
	return byte(older)
}
