package reclaim

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pvbind/pvbind/phase"
)

// AnnouncementAnnotation on a volume, or on a claim whose storage is not stored as a volume yet, announces as JSON that a
// controller is about to delete or recycle the storage. See Announcement.
const AnnouncementAnnotation = phase.AnnouncementAnnotation

// AnnouncementFinalizer keeps a volume while its announcement stands: one that is made under its name would not have that, and
// what was called would destroy its data (R8).
const AnnouncementFinalizer = "pvbind.github.io/reclaiming"

// Announcement says which controller is about to destroy data, and with which token (R8). Another controller that sees it
// waits for as long as that one may be at work. Storage that remembers the largest token it has seen, and refuses smaller
// ones, is safe from a call that comes late.
type Announcement struct {
	// By is the identity of the controller.
	By string `json:"by"`
	// Token is larger than that of every announcement before.
	Token int64 `json:"token"`
	// Seconds is how long after it the controller may be at work.
	Seconds int64 `json:"seconds"`
	// Recycles says that a recycler is to be called, and not a deleter.
	Recycles bool `json:"recycles,omitempty"`
	// Done says of a volume that its storage is deleted, although the object is still there: finalizers of others keep it, or
	// somebody has changed it since. Of a claim it says that what was made for it until then is deleted.
	Done bool `json:"done,omitempty"`
}

// LongestCall is how long a call of a deleter or recycler may take, whatever is announced: others wait no longer (R8).
const LongestCall = time.Hour

// A person, or the tenant whose claim it is, may have written the annotation. So LongestCall bounds what Lasts returns, and a
// longer text is not read (X9).
const longestText = 4096

// AnnouncementOf returns the announcement that the object carries. One that cannot be read, or has a token below 1, is
// returned as nobody's, with token 0: it may stand for somebody's all the same, and for a deleter's.
func AnnouncementOf(object metav1.Object) (announcement Announcement, announced bool) {
	text, announced := object.GetAnnotations()[AnnouncementAnnotation]
	if len(text) > longestText {
		return Announcement{}, announced
	}
	if err := json.Unmarshal([]byte(text), &announcement); err != nil || announcement.Token < 1 {
		return Announcement{}, announced
	}
	return announcement, announced
}

// Announce puts the announcement on the object, and AnnouncementFinalizer on a volume, for which that is not done. The API server
// adds no finalizer to one that is being deleted, and a claim has that of its provisioning.
func Announce(object metav1.Object, announcement Announcement) {
	write(object, announcement.String(), announcement.Done)
}

// AnnounceAgain puts the announcement of the former version on the object, as it is, and the finalizer as Announce does (W8).
func AnnounceAgain(object, former metav1.Object) {
	announcement, _ := AnnouncementOf(former)
	write(object, former.GetAnnotations()[AnnouncementAnnotation], announcement.Done)
}

func write(object metav1.Object, text string, done bool) {
	annotations := maps.Clone(object.GetAnnotations())
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[AnnouncementAnnotation] = text
	object.SetAnnotations(annotations)
	switch volume := object.GetNamespace() == ""; {
	case done:
		dropFinalizer(object)
	case volume && NeedsProtection(object, AnnouncementFinalizer):
		object.SetFinalizers(append(slices.Clone(object.GetFinalizers()), AnnouncementFinalizer))
	}
}

// Withdraw removes the announcement and AnnouncementFinalizer of an object for which what was announced is done, and whose
// storage is still there.
func Withdraw(object metav1.Object) {
	annotations := maps.Clone(object.GetAnnotations())
	delete(annotations, AnnouncementAnnotation)
	object.SetAnnotations(annotations)
	dropFinalizer(object)
}

func dropFinalizer(object metav1.Object) {
	object.SetFinalizers(without(slices.Clone(object.GetFinalizers()), AnnouncementFinalizer))
}

// Next returns the announcement of another attempt by the controller, whose clock says now and which may be at work for
// that long. Its token is the larger of the previous one plus one, and the nanoseconds of the clock: so it grows
// although a restore of the server sets the previous one back. There is no next one after the largest token, which only a
// person can have written.
func (a Announcement) Next(by string, now time.Time, lasts time.Duration) (next Announcement, ok bool) {
	if a.Token == math.MaxInt64 {
		return Announcement{}, false
	}
	return Announcement{By: by, Token: max(a.Token+1, now.UnixNano()), Seconds: int64(min(lasts, LongestCall).Round(time.Second) / time.Second)}, true
}

// Lasts returns how long after the announcement its controller may be at work: an hour at most.
func (a Announcement) Lasts() time.Duration {
	return time.Duration(min(max(a.Seconds, 0), int64(LongestCall/time.Second))) * time.Second
}

// Notice says in one line who may be at work on the storage and, as a token is most often a time, until about when.
func (a Announcement) Notice() string {
	text := fmt.Sprintf("controller %q has announced that it reclaims the storage, and may be at work", a.By)
	if a.Token > 0 {
		text += " until about " + time.Unix(0, a.Token).UTC().Add(a.Lasts()).Format(time.RFC3339)
	}
	return text
}

// String returns the value of the annotation.
func (a Announcement) String() string {
	text, _ := json.Marshal(a) // a struct of strings and numbers has no error
	return string(text)
}
