package decision

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pvbind/pvbind/binding/hooks"
	"github.com/pvbind/pvbind/binding/obj"
	"github.com/pvbind/pvbind/reclaim"
)

// What follows announces on a volume, or on a claim whose storage is not stored as a volume yet, that its storage is about
// to be destroyed (R8). The order is: another controller's announcement is waited for; ours is written; everything that a
// destruction needs is read live; the hook is called. The announcement has to stand until the last write that follows.

// awaitAnnounced returns a Wait while another controller, which has announced it, may be destroying the storage of the
// object, a claim or a volume.
func awaitAnnounced(object obj.Object, key obj.Key, view View, options Options) (action Action, blocked bool) {
	announcement, announced := reclaim.AnnouncementOf(object)
	rest := max(announcement.Lasts(), min(options.HookTimeout, reclaim.LongestCall)) + hooks.Margin - view.AnnouncedFor(key)
	ours := options.Identity != "" && announcement.By == options.Identity // for this call, or an earlier one
	if !announced || ours || announcedToken(object, view, options) != 0 || rest <= 0 {
		return Action{}, false
	}
	action = wait("R8", announcement.Notice())
	action.Retry, action.After = RetryAfter, rest
	return action, true
}

// Halted reports whether nothing is made or bound for a claim yet, because another controller may be destroying what was made for
// it (R8). It takes no volume that is offered to it meanwhile, and looks for one itself once that is over.
func Halted(claim *corev1.PersistentVolumeClaim, view View, options Options) bool {
	_, blocked := awaitAnnounced(claim, obj.KeyOf(claim), view, options.WithDefaults())
	return blocked && provisioning(claim)
}

// announcedToken returns the token that was announced in this sync on the object and stands on it; 0 if none does.
func announcedToken(object obj.Object, view View, options Options) int64 {
	announced := view.Answered(UpdateVolume, object.GetUID())
	if _, ok := object.(*corev1.PersistentVolumeClaim); ok {
		announced = view.Answered(UpdateClaim, object.GetUID())
	}
	standing, _ := reclaim.AnnouncementOf(object)
	if len(announced) == 0 || standing.By != options.Identity || standing.Token != announced[len(announced)-1].Token {
		return 0
	}
	return standing.Token
}

// unspent returns the token for the next call of a deleter or recycler: the one that was announced, unless a call was made
// with it; else 0.
func unspent(token int64, calls []Answer) int64 {
	if slices.ContainsFunc(calls, func(call Answer) bool { return call.Token == token }) {
		return 0
	}
	return token
}

// announce returns the write that announces the call of a deleter or recycler for the storage of the object. A crash after it
// leaves an announcement that others wait for, this controller too once it has started again.
func announce(object obj.Object, kind ActionKind, view View, options Options) (action Action, problem string) {
	previous, _ := reclaim.AnnouncementOf(object)
	next, ok := previous.Next(options.Identity, view.Clock(), options.HookTimeout)
	if !ok {
		return Action{}, fmt.Sprintf("no token is larger than that in its annotation %s: remove the annotation", reclaim.AnnouncementAnnotation)
	}
	next.Recycles = kind == RunRecycler
	action = update(object, func(metadata *metav1.ObjectMeta) { reclaim.Announce(metadata, next) }, "R8", "announce that its storage is about to be reclaimed")
	action.Token = next.Token
	return action, ""
}
