package history

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/pvbind/pvbind/binding/decision"
	"github.com/pvbind/pvbind/binding/internal/judge"
	"github.com/pvbind/pvbind/binding/internal/zeromap"
	"github.com/pvbind/pvbind/binding/obj"
)

// travel makes a backup of the server, restores it, or lets a controller notice that: by a list whose resourceVersion is
// below an earlier one. There is one backup in a history, because versions and UIDs of another would be given twice.
func (h *History) travel(c *Controller) {
	switch {
	case !h.backedUp:
		h.note("backup")
		h.backup, h.backedUp = h.Server.Snapshot(), true
	case h.backup != nil:
		h.note("restore")
		h.Server.Restore(h.backup)
		h.backup = nil
		h.Restored()
	case c.resyncDue:
		h.ObserveRestore(c)
	}
}

// Restored has every controller held to what the server has from now on. No controller is told.
func (h *History) Restored() {
	h.restores++
	for _, call := range h.Late {
		zeromap.Put(&h.outrunLate, call, true)
	}
	h.data = h.remembered()
	clear(h.handed)
	clear(h.madeAgain)
	clear(h.misgiven)
	for _, c := range h.Controllers {
		clear(c.wrote)
		c.resyncDue, c.unnoticed = true, true
	}
}

// remembered returns whose data is on those volumes that are free by the restore, though all controllers know them to be a claim's: they are
// kept for one of that name (W8). To what is on the others whoever restores has to see.
func (h *History) remembered() map[string]judge.Data {
	data := map[string]judge.Data{}
	h.heirs = map[string]obj.Key{}
	for name, of := range h.data {
		volume := h.Server.Volume(name)
		if of.Of != "" && volume != nil && volume.Spec.ClaimRef == nil && h.allKnow(name, of.Of) {
			known := h.Controllers[0].State.Known(obj.VolumeKey(name)).(*corev1.PersistentVolume)
			data[name], h.heirs[name] = of, obj.ReferencedClaim(known)
			h.lost++
		}
	}
	return data
}

// allKnow reports whether all controllers know a volume with that UID in its claimRef.
func (h *History) allKnow(volume string, uid types.UID) bool {
	return !slices.ContainsFunc(h.Controllers, func(c *Controller) bool {
		known, _ := c.State.Known(obj.VolumeKey(volume)).(*corev1.PersistentVolume)
		return known == nil || known.Spec.ClaimRef == nil || known.Spec.ClaimRef.UID != uid
	})
}

// forget has nobody held to what a controller knew before it was restarted.
func (h *History) forget() {
	for name := range h.heirs {
		delete(h.data, name)
	}
	clear(h.heirs)
	clear(h.madeAgain)
	clear(h.misgiven)
	h.freeHandedOver()
}

// freeHandedOver notes which volumes people have handed over, with the UID, to another claim than had them, before a controller starts. It was never shown who had
// them, and where that claim takes another volume they are free again (V4).
func (h *History) freeHandedOver() {
	for name, data := range h.data {
		volume := h.Server.Volume(name)
		if volume != nil && volume.Spec.ClaimRef != nil && volume.Spec.ClaimRef.UID != "" && volume.Spec.ClaimRef.UID != data.Of && data.For != (obj.Key{}) {
			data.Freed = true
			h.data[name] = data
		}
	}
}

// ObserveRestore lets a controller notice that the server went back in time.
func (h *History) ObserveRestore(c *Controller) {
	h.note("%s notices that the server went back", c.Name)
	c.mustReread(obj.Key{})
	c.Enqueue(c.State.ObserveRestore())
}

// mustReread notes that the controller has to read all that it knows once more, but for one object, before it destroys
// anything.
func (c *Controller) mustReread(but obj.Key) {
	c.restores++
	c.unnoticed = false
	for _, object := range c.State.Objects() {
		if key := judge.KeyOf(object); key != but && (key.Kind == obj.KindVolume || key.Kind == obj.KindClaim) {
			c.unread[key] = true
		}
	}
	delete(c.unread, but)
}

// learnAfterRestore notes that an object was read by a request that was made after the restore was noticed.
func (c *Controller) learnAfterRestore(running *runningSync) {
	target, err := running.Action.Target(), running.Reply.Err
	if running.restores == c.restores && (err == nil || obj.IsAbsent(err, target)) {
		delete(c.unread, target)
	}
}

// judgeRestore holds a decision to W8.
func (h *History) judgeRestore(c *Controller, action decision.Action) {
	if len(c.unread) > 0 && judge.Destroys(action, c.State.Known(action.Target())) {
		h.Broke("W8: %s: %s, and the server went back: %v was not read since", c.Name, action, slices.SortedFunc(maps.Keys(c.unread), obj.CompareKeys))
	}
}

// resync compares once after a restore what the caches have with what the controllers know, and after a list whether the caches have what they
// know (W7). It reports whether there was anything to do.
func (h *History) resync() bool {
	for _, c := range h.Controllers {
		switch {
		case c.resyncDue:
			h.ResyncAfterRestore(c)
			return true
		case c.relisted:
			h.readUnshown(c)
			return true
		}
	}
	return false
}

// ResyncAfterRestore compares what the caches of a controller have with what it knows (W7).
func (h *History) ResyncAfterRestore(c *Controller) {
	c.resyncDue = false
	for _, key := range slices.SortedFunc(maps.Keys(c.cache), compareByText) {
		if key.Kind == obj.KindVolume || key.Kind == obj.KindClaim {
			c.Enqueue(c.State.Recheck(c.cache[key]))
		}
	}
	h.readUnshown(c)
}

// readUnshown has a controller read what it knows from a reply alone.
func (h *History) readUnshown(c *Controller) {
	c.relisted = false
	c.Enqueue(c.State.RecheckMissing(slices.DeleteFunc(c.State.Objects(), func(object obj.Object) bool { return c.cache[judge.KeyOf(object)] != nil })))
}
