package binding

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/pvbind/pvbind/binding/obj"
)

// Notebook takes down what a State remembers, so that two states that will do the same read the same. Versions
// are written apart from the objects, for only their order counts.
type Notebook interface {
	Number(n int)
	Key(key obj.Key)
	KeySet(set map[obj.Key]struct{})
	Object(object obj.Object)
	Version(of obj.Key, version string)
	Text(text string)
}

// Describe writes down all that the state remembers of these keys and by them, which have to be all that there
// are. Left out is what decides nothing but the length of a delay (failures), or an end that the model would
// see as a circle (the steps of a sync); what a sync waits for the caller knows. Of the dead it says only
// whether the given UIDs are known to be gone: those that anybody may still mention.
func (s *State) Describe(n Notebook, keys []obj.Key, mentioned []types.UID) {
	s.describeStore(n, keys)
	for _, key := range keys {
		n.Key(s.holders[key])
		n.Key(s.unsettled[key])
		n.Key(s.offers.awaited[key])
		s.describeLinks(n, key)
		s.describeOffer(n, key)
		describeEvents(n, s.said[key])
		refused, ok := s.refused[key]
		n.Number(flag(ok))
		if ok {
			n.Version(key, refused.claimVersion)
			n.Key(obj.VolumeKey(refused.volume))
			n.Version(obj.VolumeKey(refused.volume), refused.volumeVersion)
		}
		running := s.tasks[key]
		n.Number(flag(running != nil))
		if running != nil {
			running.describe(n)
			n.Number(s.age(running))
		}
	}
	n.Number(len(s.offers.calls))
	for _, key := range s.offers.calls {
		n.Key(key)
	}
	n.KeySet(s.slots.running)
	n.KeySet(s.slots.promised)
	n.Number(len(s.slots.waiting))
	for _, key := range s.slots.waiting {
		n.Key(key)
	}
	for _, uid := range mentioned {
		n.Number(flag(s.Buried(uid)))
	}
}

func (s *State) describeStore(n Notebook, keys []obj.Key) {
	found := 0
	for _, key := range keys {
		object := s.Known(key)
		if object != nil {
			found++
		}
		n.Object(object)
		if key.Kind == obj.KindVolume {
			owners := s.index.Owners(key.Name)
			n.Number(len(owners))
			for _, claim := range owners {
				n.Key(claim)
			}
			if claim, reserved := s.index.Reservation(key.Name); reserved {
				n.Number(1)
				n.Key(claim)
			} else {
				n.Number(0)
			}
		}
		if key.Kind == obj.KindClaim {
			n.Object(orNil(s.waiting.Get(key)))
			n.Object(orNil(s.called.Get(key)))
		}
	}
	if found != len(s.volumes)+len(s.claims)+len(s.classes)+len(s.pods)+len(s.attachments) {
		panic("the state knows objects that the model does not describe")
	}
}

func (s *State) describeLinks(n Notebook, to obj.Key) {
	for _, l := range []links{s.naming, s.holding, s.using, s.attached, s.waiters, s.doubts, s.offers.pending} {
		n.KeySet(l[to])
	}
}

func (s *State) describeOffer(n Notebook, volume obj.Key) {
	made, ok := s.offers.made[volume.Name]
	ok = ok && volume.Kind == obj.KindVolume
	n.Number(flag(ok))
	if !ok {
		return
	}
	n.Version(volume, made.version)
	n.Number(len(made.claims))
	for _, claim := range slices.SortedFunc(maps.Keys(made.claims), obj.CompareKeys) {
		n.Key(claim)
		n.Version(claim, made.claims[claim])
	}
}

// age is whether what was read, or is about to be, was read for the object as it is known now.
func (s *State) age(t *task) int {
	if len(t.live) == 0 && len(t.pods) == 0 && t.pending.Kind != Read {
		return 0
	}
	version := ""
	if known := s.known(t.key); known != nil {
		version = known.GetResourceVersion()
	}
	return 1 + flag(t.version == version) + 2*flag(t.version == "")
}

func (t *task) describe(n Notebook) {
	n.Key(t.volume)
	n.Number(flag(t.asked != nil))
	if t.asked != nil {
		n.Text(string(t.asked.GetUID()))
		n.Version(t.pending.Key, t.asked.GetResourceVersion())
	}
	n.Number(len(t.contradicted))
	for _, key := range slices.SortedFunc(maps.Keys(t.contradicted), obj.CompareKeys) {
		n.Key(key)
		n.Text(string(t.contradicted[key].uid))
		n.Number(flag(t.contradicted[key].missing))
	}
	n.KeySet(t.live)
	n.Number(len(t.pods))
	for _, pods := range t.pods {
		n.Number(len(pods))
		for _, pod := range pods {
			n.Object(pod)
		}
	}
	n.Number(len(t.attachments))
	for _, attachment := range t.attachments {
		n.Object(attachment)
	}
	n.Number(len(t.answers))
	for _, answer := range t.answers {
		n.Text(string(answer.Of))
		n.Text(answer.Hook)
		n.Text(string(answer.For))
		n.Object(volumeOrNil(answer.Volume))
		n.Number(flag(answer.Err != nil))
		if answer.Err != nil {
			n.Text(answer.Err.Error())
		}
	}
	describeEvents(n, t.publish)
	next := make(map[obj.Key]struct{}, len(t.next))
	for _, key := range t.next {
		next[key] = struct{}{}
	}
	n.KeySet(next)
}

func describeEvents(n Notebook, events []Event) {
	n.Number(len(events))
	for _, event := range events {
		n.Key(event.On)
		n.Text(string(event.UID))
		n.Text(string(event.Reason))
		n.Text(event.Message)
		n.Text(event.same)
	}
}

// Known is the object that is stored under a key, of any kind; nil if there is none.
func (s *State) Known(key obj.Key) obj.Object {
	switch key.Kind {
	case obj.KindVolume, obj.KindClaim:
		return s.known(key)
	case obj.KindPod:
		if pod := s.pods[key]; pod != nil {
			return pod
		}
	case obj.KindAttachment:
		if attachment := s.attachments[key]; attachment != nil {
			return attachment
		}
	default:
		if class := s.classes[key.Name]; class != nil {
			return class
		}
	}
	return nil
}

// Buried reports whether the state knows that the object of the UID is gone.
func (s *State) Buried(uid types.UID) bool { return s.gone.has(uid) || s.gonePods.has(uid) }

func volumeOrNil(volume *corev1.PersistentVolume) obj.Object {
	if volume == nil {
		return nil
	}
	return volume
}

func orNil(claim *corev1.PersistentVolumeClaim) obj.Object {
	if claim == nil {
		return nil
	}
	return claim
}

func flag(set bool) int {
	if set {
		return 1
	}
	return 0
}

// ReplyAttachments is what comes of a list of attachments.
func ReplyAttachments(attachments []*storagev1.VolumeAttachment) any {
	return reply{attachments: attachments}
}

// ReplyPods is what comes of a list of pods.
func ReplyPods(pods []*corev1.Pod) any { return reply{pods: pods} }
