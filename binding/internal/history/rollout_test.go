package history

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/pvbind/pvbind/binding"
	"github.com/pvbind/pvbind/binding/bindingtest"
	"github.com/pvbind/pvbind/binding/decision"
	"github.com/pvbind/pvbind/binding/hooks"
	. "github.com/pvbind/pvbind/binding/internal/testkit"
	"github.com/pvbind/pvbind/binding/obj"
	"github.com/pvbind/pvbind/reclaim"
)

// former is a controller of the version before R8, which neither announces nor heeds an announcement: today's, with a client
// that keeps both from it. What it announces the client keeps to itself, and shows it again for as long as the volume is as it
// was; what others have announced it hides, and leaves where it is. To be as if written, an announcement needs a version: the
// client shows each volume in twice the version that it has, and one more where the controller has announced something.
type former struct {
	*bindingtest.Client
	controller *binding.Controller
	watches    []*bindingtest.Watch
	queue      []obj.Key
	pretended  map[types.UID]note // its own announcements
	hidden     map[types.UID]note // those of others
}

// note is an announcement on a volume of that version, which is the server's.
type note struct{ version, text string }

const (
	formerName = "former"
	todayName  = "new"
)

func newFormer(server *bindingtest.Server, set hooks.Set) *former {
	f := &former{Client: server.NewClient(formerName), pretended: map[types.UID]note{}, hidden: map[types.UID]note{}}
	options := decision.Options{Protection: decision.ProtectionOn, Identity: formerName}
	f.controller = &binding.Controller{Client: f, Recorder: f, Options: options, Hooks: set, Now: server.Now}
	for _, kind := range bindingtest.Kinds() {
		f.watches = append(f.watches, server.Watch(kind))
	}
	return f
}

// settle does all there is to do, but what is to be tried again later.
func (f *former) settle(ctx context.Context) {
	for {
		for _, watch := range f.watches {
			for change, ok := watch.Next(); ok; change, ok = watch.Next() {
				if volume, ok := change.Object.(*corev1.PersistentVolume); ok {
					change.Object = f.shown(volume)
				}
				if change.Type == bindingtest.Deleted {
					f.queue = append(f.queue, f.controller.ObserveDeleted(change.Object)...)
				} else {
					f.queue = append(f.queue, f.controller.Observe(change.Object)...)
				}
			}
		}
		if len(f.queue) == 0 {
			return
		}
		key := f.queue[0]
		f.queue = f.queue[1:]
		result, _ := f.controller.Sync(ctx, key)
		f.queue = append(f.queue, result.Next...)
	}
}

// shown returns the volume as the controller is to see it.
func (f *former) shown(volume *corev1.PersistentVolume) *corev1.PersistentVolume {
	if volume == nil {
		return nil
	}
	volume = volume.DeepCopy()
	version := volume.ResourceVersion
	if text, announced := volume.Annotations[reclaim.AnnouncementAnnotation]; announced {
		f.hidden[volume.UID] = note{version, text}
		delete(volume.Annotations, reclaim.AnnouncementAnnotation)
	}
	number, _ := strconv.Atoi(version)
	number *= 2
	if own := f.pretended[volume.UID]; own.version == version {
		metav1.SetMetaDataAnnotation(&volume.ObjectMeta, reclaim.AnnouncementAnnotation, own.text)
		if !slices.Contains(volume.Finalizers, reclaim.AnnouncementFinalizer) {
			volume.Finalizers = append(volume.Finalizers, reclaim.AnnouncementFinalizer)
		}
		number++
	}
	volume.ResourceVersion = strconv.Itoa(number)
	return volume
}

// versionOf returns the server's version for one that was shown.
func versionOf(shown string) string {
	number, _ := strconv.Atoi(shown)
	return strconv.Itoa(number / 2)
}

// sent returns what the controller means to write: with the annotation that it does not know of, and without its own.
func (f *former) sent(volume *corev1.PersistentVolume) *corev1.PersistentVolume {
	volume = volume.DeepCopy()
	volume.ResourceVersion = versionOf(volume.ResourceVersion)
	delete(volume.Annotations, reclaim.AnnouncementAnnotation)
	if other := f.hidden[volume.UID]; other.version == volume.ResourceVersion {
		metav1.SetMetaDataAnnotation(&volume.ObjectMeta, reclaim.AnnouncementAnnotation, other.text)
	} else if own := f.pretended[volume.UID]; own.version == volume.ResourceVersion {
		volume.Finalizers = slices.DeleteFunc(volume.Finalizers, func(finalizer string) bool { return finalizer == reclaim.AnnouncementFinalizer })
	}
	return volume
}

func (f *former) GetVolume(ctx context.Context, name string) (*corev1.PersistentVolume, error) {
	volume, err := f.Client.GetVolume(ctx, name)
	return f.shown(volume), err
}

func (f *former) UpdateVolume(ctx context.Context, volume *corev1.PersistentVolume) (*corev1.PersistentVolume, error) {
	own := note{versionOf(volume.ResourceVersion), volume.Annotations[reclaim.AnnouncementAnnotation]}
	if own.text != "" && own != f.pretended[volume.UID] {
		f.pretended[volume.UID] = own
		return f.shown(f.sent(volume)), nil
	}
	stored, err := f.Client.UpdateVolume(ctx, f.sent(volume))
	return f.shown(stored), err
}

func (f *former) UpdateVolumeStatus(ctx context.Context, volume *corev1.PersistentVolume) (*corev1.PersistentVolume, error) {
	stored, err := f.Client.UpdateVolumeStatus(ctx, f.sent(volume))
	return f.shown(stored), err
}

func (f *former) DeleteVolume(ctx context.Context, name string, preconditions metav1.Preconditions) error {
	version := versionOf(*preconditions.ResourceVersion)
	preconditions.ResourceVersion = &version
	return f.Client.DeleteVolume(ctx, name, preconditions)
}

// withoutTokens are hooks of a program that knows of no tokens. Storage takes such a call for one with the smallest.
type withoutTokens struct{ *bindingtest.Storage }

func (s withoutTokens) Delete(ctx context.Context, request hooks.ReclaimRequest) error {
	request.Token = 1
	return s.Storage.Delete(ctx, request)
}

func (s withoutTokens) Recycle(ctx context.Context, request hooks.ReclaimRequest) error {
	request.Token = 1
	return s.Storage.Recycle(ctx, request)
}

// rollout is a former version and today's on one server, with one storage.
type rollout struct {
	*twoLeaders
	former *former
}

func newRollout(t *testing.T, policy corev1.PersistentVolumeReclaimPolicy, refuses bool) *rollout {
	w := &rollout{twoLeaders: newTwoLeaders(t, policy)}
	if !refuses {
		w.storage.IgnoreTokens()
	}
	set, own := w.storage.Hooks(Ours, "hostPath"), withoutTokens{w.storage}
	set.SourceDeleters["hostPath"], set.Recyclers["hostPath"], set.Deleters[Ours] = own, own, own
	w.former = newFormer(w.server, set)
	return w
}

// goesOn has one of the two do all it can, while the other is paused. Pods then write onto what the second claim has got.
func (w *rollout) goesOn(which string) {
	if which == formerName {
		w.former.settle(w.t.Context())
	} else {
		require.NoError(w.t, w.new.Settle(w.t.Context()))
	}
	w.storage.Restarted() // neither can know what the other has done
	if w.used() {
		w.storage.Write("a")
	}
}

func other(which string) string {
	if which == formerName {
		return todayName
	}
	return formerName
}

// client is that of one of the two.
func (w *rollout) client(which string) *bindingtest.Client {
	if which == formerName {
		return w.former.Client
	}
	return w.new.Client
}

// settle lets both go on until nothing is left to do.
func (w *rollout) settle() {
	for range 8 {
		w.former.settle(w.t.Context())
		require.NoError(w.t, w.new.Settle(w.t.Context()))
		require.NoError(w.t, w.new.AdvanceClock(w.t.Context()))
	}
}

// inUse are the calls that took effect on storage in use. That storage is deleted twice is no loss: neither can know of the
// other's call.
func (w *rollout) inUse() (calls []string) {
	for _, problem := range w.storage.Problems() {
		if !strings.HasPrefix(problem, "double delete") {
			calls = append(calls, problem)
		}
	}
	return calls
}

// A version before R8 beside today's, as during a rollout. Each of them is paused before each of its calls of the server, while
// the other does all it can. No call takes effect on storage in use, for the reads before a call and the guarded writes after
// it are as old as the former version.
func TestR8ARolloutPausedBetweenCalls(t *testing.T) {
	for _, policy := range []corev1.PersistentVolumeReclaimPolicy{corev1.PersistentVolumeReclaimRecycle, corev1.PersistentVolumeReclaimDelete} {
		for _, paused := range []string{formerName, todayName} {
			t.Run(fmt.Sprintf("R8 %s, the %s one is paused", policy, paused), func(t *testing.T) {
				pauseBeforeEach(t, 8, func(n int) bool { return rolloutPaused(t, policy, paused, n) })
			})
		}
	}
}

func rolloutPaused(t *testing.T, policy corev1.PersistentVolumeReclaimPolicy, which string, n int) (paused bool) {
	w := newRollout(t, policy, false)
	made := pauseBefore(n, w.client(which), func() { w.goesOn(other(which)) })
	w.goesOn(which)
	w.settle()
	require.Empty(t, w.inUse(), "paused before call %d", n)
	w.requireReclaimed(policy, n)
	return *made
}

// R8: what remains in a rollout is the hook itself, between the last read and what the storage does. The former version heeds no
// announcement, and makes none that ours could heed; so even a short pause is enough, in either of the two, for a recycler to
// scrub the data of the claim that got the volume meanwhile. Storage that refuses is safe from the former one, which has no
// token to show; not from ours, for the former one has shown none that would be larger. A deleter destroys nothing.
func TestR8ARolloutPausedInAHook(t *testing.T) {
	for _, test := range []struct {
		policy  corev1.PersistentVolumeReclaimPolicy
		paused  string
		refuses bool
		lost    bool
	}{
		{corev1.PersistentVolumeReclaimRecycle, formerName, false, true},
		{corev1.PersistentVolumeReclaimRecycle, formerName, true, false},
		{corev1.PersistentVolumeReclaimRecycle, todayName, false, true},
		{corev1.PersistentVolumeReclaimRecycle, todayName, true, true},
		{corev1.PersistentVolumeReclaimDelete, formerName, false, false},
		{corev1.PersistentVolumeReclaimDelete, todayName, false, false},
	} {
		t.Run(fmt.Sprintf("R8 %s, the %s one is paused, refuses=%v", test.policy, test.paused, test.refuses), func(t *testing.T) {
			w := newRollout(t, test.policy, test.refuses)
			paused := w.pauseInHook(func() {
				w.goesOn(other(test.paused))
				assert.Equal(t, test.policy == corev1.PersistentVolumeReclaimRecycle, w.used(), "the other did not wait")
			})
			w.goesOn(test.paused)
			require.True(t, *paused)
			assert.Equal(t, test.lost, len(w.inUse()) > 0, "%s", w.storage.Problems())
			w.settle()
		})
	}
}

// R8: the former version leaves our announcement on what it frees. That holds up nobody: the volume is bound, and the
// announcement goes with that or with the next one.
func TestR8AnAnnouncementThatAFormerVersionLeft(t *testing.T) {
	w := newRollout(t, corev1.PersistentVolumeReclaimRecycle, true)
	stopped := false
	w.new.Client.Use(func(call *bindingtest.Call, do func() error) error {
		err := do()
		if volume, ok := call.Sent.(*corev1.PersistentVolume); ok && !stopped {
			if _, stopped = reclaim.AnnouncementOf(volume); stopped { // and is never heard of again
				w.new.Client.CrashAfter(0)
			}
		}
		return err
	})
	_ = w.new.Settle(t.Context())
	require.True(t, stopped)
	w.former.settle(t.Context())
	_, announced := reclaim.AnnouncementOf(w.server.Volume("a"))
	require.True(t, announced && w.used(), "it knows nothing of the annotation, and has bound the volume")
	w.new.Restart()
	require.NoError(t, w.new.Settle(t.Context()))
	require.NoError(t, w.server.Delete(t.Context(), obj.ClaimKey("default", "second"), metav1.DeleteOptions{}))
	require.NoError(t, w.new.Settle(t.Context()))
	for _, delay := range w.new.Delayed() {
		assert.LessOrEqual(t, delay.After, hooks.DefaultTimeout+hooks.Margin)
	}
	require.NoError(t, w.new.AdvanceClock(t.Context()))
	volume := w.server.Volume("a")
	_, announced = reclaim.AnnouncementOf(volume)
	assert.False(t, announced)
	assert.Equal(t, corev1.VolumeAvailable, volume.Status.Phase)
	assert.Empty(t, w.inUse())
}
