package decision

import (
	"fmt"
	"slices"
	"time"

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

// AwaitCalls returns the Wait of a controller that has noticed that the server went back in time, until no call of a hook goes on
// that another one may have announced before (W8).
func AwaitCalls(rest time.Duration) Action {
	action := wait("R8", "the server went back in time: another controller may be at work that has announced what the server has lost")
	action.Retry, action.After = RetryAfter, rest
	return action
}

// AwaitFormer returns the Wait of a claim that gets no other volume before the one that it had when the server went back in time is given back to it (W8).
func AwaitFormer(claim *corev1.PersistentVolumeClaim, volume string) Action {
	message := fmt.Sprintf("before the API server went back in time the claim had volume %q, which is to be given back to it first", volume)
	return wait("W8", message, normal(claim, EventFailedBinding, message)).withBackoff()
}

// AwaitLate returns the Wait of a controller that has stored a volume of late, and whose claim is gone, until informers have shown whether an earlier
// one of that name was the claim's, or another controller has retained it (P2).
func AwaitLate(rest time.Duration) Action {
	action := wait("P2", "it was stored just now, and its claim is gone: an earlier volume of that name may have been the claim's")
	action.Retry, action.After = RetryAfter, rest
	return action
}

// Halted returns for how long nothing is made or bound for a claim yet, because another controller may be destroying what was made for
// it (R8); zero if it is not so. It takes no volume that is offered to it meanwhile, and looks for one itself once that is over.
func Halted(claim *corev1.PersistentVolumeClaim, view View, options Options) time.Duration {
	if !provisioning(claim) {
		return 0
	}
	waiting, _ := awaitAnnounced(claim, obj.KeyOf(claim), view, options.WithDefaults())
	return waiting.After
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

// provisionToken returns the token for the call of a provisioner: larger than that of each deleter that was called for the claim,
// so that one which was paused is refused when it goes on, though a restore of the server has taken its announcement away. None is more
// than an hour ahead of the clock: a tenant may have written the announcement, and then nobody could delete the storage. Where it had to
// be, there is a problem.
func provisionToken(claim *corev1.PersistentVolumeClaim, view View) (token int64, problem string) {
	previous, _ := reclaim.AnnouncementOf(claim)
	for _, deleted := range view.Answered(RunDeleter, claim.UID) {
		previous.Token = max(previous.Token, deleted.Token)
	}
	now := max(1, view.Clock().UnixNano())
	if ahead := time.Duration(previous.Token - now); previous.Token > now && ahead >= reclaim.LongestCall {
		return 0, fmt.Sprintf("the token of the last deleter for the claim is %s ahead of the clock: the clock of the controller that called it is ahead, or the claim's owner has written it; "+
			"nothing is provisioned until that is less than an hour, or annotation %s is removed", ahead.Round(time.Second), reclaim.AnnouncementAnnotation)
	}
	return max(now, previous.Token+1), ""
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
// leaves an announcement that others wait for, this controller too once it has started again. Before DeleteVolume, which leaves the storage as it is, it
// keeps the note that this is deleted.
func announce(object obj.Object, kind ActionKind, view View, options Options) (action Action, problem string) {
	previous, _ := reclaim.AnnouncementOf(object)
	for _, made := range view.Answered(RunProvisioner, object.GetUID()) { // which the storage has seen since
		previous.Token = max(previous.Token, made.Token)
	}
	next, ok := previous.Next(options.Identity, view.Clock(), options.HookTimeout)
	if !ok {
		return Action{}, fmt.Sprintf("no token is larger than that in its annotation %s: remove the annotation", reclaim.AnnouncementAnnotation)
	}
	next.Recycles, next.Done = kind == RunRecycler, kind == DeleteVolume && previous.Done
	action = update(object, func(metadata *metav1.ObjectMeta) { reclaim.Announce(metadata, next) }, "R8", "announce that its storage is about to be reclaimed")
	action.Token = next.Token
	return action, ""
}
