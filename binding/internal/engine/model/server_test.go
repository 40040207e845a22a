package model_test

import (
	"fmt"
	"slices"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/pvbind/pvbind/binding/bindingtest"
	"github.com/pvbind/pvbind/binding/decision"
	. "github.com/pvbind/pvbind/binding/internal/testkit"
	"github.com/pvbind/pvbind/binding/obj"
)

// maxNames is how many objects a model can have names for.
const maxNames = 10

// watched are the kinds that a cache is kept of, each lagging by itself.
var watched = [...]obj.Kind{obj.KindClass, obj.KindVolume, obj.KindClaim, obj.KindPod, obj.KindAttachment}

// change is what watchers are told of.
type change struct {
	*revision
	deleted bool
}

// tinyServer is what of an API server matters to the model, and no more: conflicts, UIDs, the status subresource,
// finalizers, and what of a claim cannot be changed. It is a value: a copy goes its own way. That it answers as
// bindingtest.Server does is held by TestModelServerMatchesBindingtest.
type tinyServer struct {
	revisions *revisions
	objects   [maxNames]*revision
	created   [maxNames]uint8        // objects of this name so far
	written   [maxNames]uint8        // the last version under this name
	writes    uint8                  // of all names, and of all times: a clock that a restore does not set back
	log       [len(watched)][]change // shared with copies, which only ever append
}

// beforeAll is a version that each name had before it was stored.
const beforeAll = 1

// answer is what a server says to a request: the object that it stored or holds, or why not.
type answer struct {
	got    *revision
	listed []*revision
	fail   failure
	lied   bool // it is not the truth
}

// failure is the reason of an error, as the API calls it.
type failure string

const (
	notFound      = failure(metav1.StatusReasonNotFound)
	alreadyExists = failure(metav1.StatusReasonAlreadyExists)
	conflict      = failure(metav1.StatusReasonConflict)
	invalid       = failure(metav1.StatusReasonInvalid)
	noAnswer      = failure("NoAnswer")   // the connection is lost
	proxied       = failure("Proxied")    // a proxy says NotFound
	fromBefore    = failure("FromBefore") // there was none before the first version of that name
	metadataOnly  = failure("Metadata")   // a proxy answers with another object, of which it has the metadata
	staleToken    = failure("StaleToken") // of the storage
	inProgress    = failure("InProgress") // of a hook
)

// now returns the time: the clocks of all leaders count writes, so that the next token is larger than any before (R8).
func (s *tinyServer) now() time.Time {
	return time.Unix(0, 1+int64(s.writes))
}

func (s *tinyServer) tell(at int, told change) {
	kind := slices.Index(watched[:], s.revisions.keys[at].Kind)
	s.log[kind] = append(slices.Clip(s.log[kind]), told)
}

// store puts the object in place, on the next version of its name.
func (s *tinyServer) store(at int, object obj.Object) *revision {
	s.count(at)
	s.objects[at] = s.revisions.keep(at, object, s.written[at])
	s.tell(at, change{revision: s.objects[at]})
	return s.objects[at]
}

// count counts a write of a name.
func (s *tinyServer) count(at int) {
	if s.written[at] == 255 || s.writes == 255 {
		panic("too many writes")
	}
	s.written[at]++
	s.writes++
}

// remove drops the object; watchers get its last state on the version of the deletion.
func (s *tinyServer) remove(at int) {
	s.count(at)
	last := s.revisions.keep(at, s.objects[at].object, s.written[at])
	s.objects[at] = nil
	s.tell(at, change{revision: last, deleted: true})
}

func (s *tinyServer) get(at int) answer {
	if s.objects[at] == nil {
		return answer{fail: notFound}
	}
	return answer{got: s.objects[at]}
}

// list returns all objects of a kind, by name.
func (s *tinyServer) list(kind obj.Kind) (all answer) {
	for at, key := range s.revisions.keys {
		if key.Kind == kind && s.objects[at] != nil {
			all.listed = append(all.listed, s.objects[at])
		}
	}
	return all
}

// create stores a new object: a UID of its own, the first phase, the protection of admission (A1, A6). Defaults
// must be spelled out.
func (s *tinyServer) create(object obj.Object) answer {
	at := s.revisions.indexOf(keyOfAny(object))
	if s.objects[at] != nil {
		return answer{fail: alreadyExists}
	}
	made := object.DeepCopyObject().(obj.Object)
	s.created[at]++
	made.SetUID(uidOf(s.revisions.keys[at], s.created[at]))
	switch o := made.(type) {
	case *corev1.PersistentVolume:
		o.Status = corev1.PersistentVolumeStatus{Phase: corev1.VolumePending}
		o.Finalizers = append(o.Finalizers, VolumeProtection)
	case *corev1.PersistentVolumeClaim:
		o.Status = corev1.PersistentVolumeClaimStatus{Phase: corev1.ClaimPending}
		o.Finalizers = append(o.Finalizers, ClaimProtection)
	case *corev1.Pod:
		o.Status = corev1.PodStatus{Phase: corev1.PodPending}
	}
	return answer{got: s.store(at, made)}
}

func uidOf(key obj.Key, number uint8) types.UID {
	return types.UID(fmt.Sprintf("%s.%d", key.Name, number))
}

// delete removes an object, or marks it while finalizers hold it (A5).
func (s *tinyServer) delete(at int) answer {
	old := s.objects[at]
	switch {
	case old == nil:
		return answer{fail: notFound}
	case s.revisions.keys[at].Kind == obj.KindPod: // a pod is always marked first
		s.mark(at)
		s.remove(at)
	case len(old.object.GetFinalizers()) == 0:
		s.remove(at)
	case old.object.GetDeletionTimestamp() == nil:
		s.mark(at)
	}
	return answer{}
}

// deleteExactly deletes an object if it still is that version of it.
func (s *tinyServer) deleteExactly(at int, volume *corev1.PersistentVolume) answer {
	stored := s.objects[at]
	switch {
	case stored == nil:
		return answer{fail: notFound}
	case stored.object.GetUID() != volume.UID || versionIn(volume) != stored.version:
		return answer{fail: conflict}
	}
	return s.delete(at)
}

func (s *tinyServer) mark(at int) {
	marked := s.objects[at].object.DeepCopyObject().(obj.Object)
	marked.SetDeletionTimestamp(&metav1.Time{Time: deletionTime})
	marked.SetDeletionGracePeriodSeconds(new(int64))
	s.store(at, marked)
}

func keyOfAny(object obj.Object) obj.Key {
	key, err := bindingtest.KeyOf(object)
	if err != nil {
		panic(err)
	}
	return key
}

// claim returns the claim of that name; nil if there is none.
func (s *tinyServer) claim(key obj.Key) *corev1.PersistentVolumeClaim {
	if at, ok := s.revisions.index[key]; ok && s.objects[at] != nil {
		return s.objects[at].object.(*corev1.PersistentVolumeClaim)
	}
	return nil
}

// volume returns the volume of that name; nil if there is none.
func (s *tinyServer) volume(name string) *corev1.PersistentVolume {
	if at, ok := s.revisions.index[obj.VolumeKey(name)]; ok && s.objects[at] != nil {
		return s.objects[at].object.(*corev1.PersistentVolume)
	}
	return nil
}

// all returns all objects, in the order of their names.
func (s *tinyServer) all() (objects []obj.Object) {
	for _, stored := range s.objects {
		if stored != nil {
			objects = append(objects, stored.object)
		}
	}
	return objects
}

// claims returns all claims.
func (s *tinyServer) claims() []*corev1.PersistentVolumeClaim {
	return objectsOf[*corev1.PersistentVolumeClaim](s.list(obj.KindClaim).listed)
}

// deletionTime is when everything is deleted: the model has no clock, and no decision asks for the time.
var deletionTime = time.Date(2026, time.January, 1, 0, 0, 0, 0, time.UTC)

// part is the part of an object that a write is about (A2).
type part string

const (
	specPart   part = "Spec"
	statusPart part = "Status"
)

// write makes the write of a controller.
func (s *tinyServer) write(at int, action decision.Action) answer {
	switch action.Kind {
	case decision.CreateVolume:
		return s.create(action.Volume)
	case decision.DeleteVolume:
		return s.deleteExactly(at, action.Volume)
	case decision.UpdateVolumeStatus, decision.UpdateClaimStatus:
		return s.update(subject(action), statusPart)
	}
	return s.update(subject(action), specPart)
}

// update stores metadata and one half of an object (A2 to A5). An empty version overwrites anything.
func (s *tinyServer) update(sent obj.Object, part part) answer {
	at := s.revisions.indexOf(keyOfAny(sent))
	stored := s.objects[at]
	if stored == nil {
		return answer{fail: notFound}
	}
	old := stored.object
	version := sent.GetResourceVersion()
	if version != "" && version != strconv.Itoa(int(stored.version)) || sent.GetUID() != "" && sent.GetUID() != old.GetUID() {
		return answer{fail: conflict}
	}
	object := merged(sent, old, part)
	if !allowed(object, old) {
		return answer{fail: invalid}
	}
	switch {
	case old.GetDeletionTimestamp() != nil && len(object.GetFinalizers()) == 0:
		last := s.revisions.keep(at, object, stored.version)
		s.remove(at)
		return answer{got: last}
	case s.revisions.contentOf(object) == stored.content && tokenOn(object) == stored.token:
		return answer{got: stored}
	}
	return answer{got: s.store(at, object)}
}

// merged returns the object to store: the half that was sent, and the rest as it was. It shares with both.
func merged(sent, old obj.Object, part part) obj.Object {
	var object obj.Object
	switch o := sent.(type) {
	case *corev1.PersistentVolume:
		volume, was := *o, old.(*corev1.PersistentVolume)
		keepOther(part, &volume.Spec, was.Spec, &volume.Status, was.Status)
		object = &volume
	case *corev1.PersistentVolumeClaim:
		claim, was := *o, old.(*corev1.PersistentVolumeClaim)
		keepOther(part, &claim.Spec, was.Spec, &claim.Status, was.Status)
		object = &claim
	default:
		panic("the model updates volumes and claims only")
	}
	object.SetUID(old.GetUID())
	object.SetDeletionTimestamp(old.GetDeletionTimestamp())
	object.SetDeletionGracePeriodSeconds(old.GetDeletionGracePeriodSeconds())
	return object
}

func keepOther[Spec, Status any](part part, spec *Spec, oldSpec Spec, status *Status, oldStatus Status) {
	if part == specPart {
		*status = oldStatus
	} else {
		*spec = oldSpec
	}
}

// allowed holds an update to A3 and A5, as far as anybody in the model tries.
func allowed(object, old obj.Object) bool {
	if old.GetDeletionTimestamp() != nil {
		for _, finalizer := range object.GetFinalizers() {
			if !slices.Contains(old.GetFinalizers(), finalizer) {
				return false
			}
		}
	}
	claim, ok := object.(*corev1.PersistentVolumeClaim)
	if !ok {
		return true
	}
	was := old.(*corev1.PersistentVolumeClaim)
	class, oldClass := claim.Spec.StorageClassName, was.Spec.StorageClassName
	return (was.Spec.VolumeName == "" || claim.Spec.VolumeName == was.Spec.VolumeName) &&
		(oldClass == nil || equality.Semantic.DeepEqual(class, oldClass))
}
