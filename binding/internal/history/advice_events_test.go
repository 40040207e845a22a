package history

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/pvbind/pvbind/binding/decision"
	"github.com/pvbind/pvbind/binding/obj"
)

// readEvents reads the events of a claim that waits, or of a volume.
func (r *reader) readEvents() {
	world := r.snapshot()
	if len(world.Volumes) > 0 && r.oneIn(3) {
		for _, told := range r.eventsOf(obj.VolumeKey(world.Volumes[r.IntN(len(world.Volumes))].Name)) {
			r.follow(told)
		}
	} else if len(world.Claims) > 0 {
		for _, told := range r.eventsOf(obj.KeyOf(world.Claims[r.IntN(len(world.Claims))])) {
			r.follow(told)
		}
	}
}

// eventsOf returns what the events of a claim or volume say that waits, each on the object that it is told on.
func (r *reader) eventsOf(key obj.Key) (told []message) {
	again := func() (texts []string) {
		for _, event := range r.next(key).Events {
			texts = append(texts, string(event.Reason)+": "+event.Message)
		}
		return texts
	}
	for _, event := range r.next(key).Events {
		a := message{text: string(event.Reason) + ": " + event.Message, again: again}
		if event.On.Kind == obj.KindClaim {
			a.claim = r.Server.Claim(event.On.Namespace, event.On.Name)
		}
		if a.volume = r.volumeIn(a.text); a.volume == nil && key.Kind == obj.KindVolume {
			a.volume = r.Server.Volume(key.Name)
		}
		told = append(told, a)
	}
	return told
}

// next returns what is next for a claim that waits, or for a volume; the zero Action where there is nothing to tell.
func (r *reader) next(key obj.Key) (action decision.Action) {
	world, rules := r.world(), r.Controllers[0].Rules
	var err error
	if claim := r.Server.Claim(key.Namespace, key.Name); key.Kind == obj.KindClaim && claim != nil {
		action, err = decision.NextForClaim(claim, world, rules)
	} else if volume := r.Server.Volume(key.Name); key.Kind == obj.KindVolume && volume != nil {
		action, err = decision.NextForVolume(volume, world, rules)
	}
	if err != nil || key.Kind == obj.KindClaim && action.Kind != decision.Wait {
		return decision.Action{}
	}
	return action
}

// volumeIn returns the volume that the text names; nil if there is none.
func (r *reader) volumeIn(text string) *corev1.PersistentVolume {
	for _, volume := range r.snapshot().Volumes {
		if strings.Contains(text, fmt.Sprintf("volume %q", volume.Name)) {
			return volume
		}
	}
	return nil
}
