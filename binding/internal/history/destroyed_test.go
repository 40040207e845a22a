package history

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pvbind/pvbind/binding/bindingtest"
	"github.com/pvbind/pvbind/binding/decision"
	"github.com/pvbind/pvbind/binding/hooks"
	. "github.com/pvbind/pvbind/binding/internal/testkit"
	"github.com/pvbind/pvbind/binding/obj"
	"github.com/pvbind/pvbind/reclaim"
)

// R8: an administrator changes the volume while its deleter runs, and a request fails after that. The storage of the volume is gone
// then, whatever they meant: nobody gets the volume, and it says so.
func TestR8AVolumeIsChangedWhileItsDeleterRuns(t *testing.T) {
	edits := map[string]VolumeEdit{
		"policy Retain":        WithPolicy(corev1.PersistentVolumeReclaimRetain),
		"policy Recycle":       WithPolicy(corev1.PersistentVolumeReclaimRecycle),
		"claimRef removed":     func(v *corev1.PersistentVolume) { v.Spec.ClaimRef = nil },
		"reserved for another": RefersTo("default", "second", ""),
		"announcement removed": func(v *corev1.PersistentVolume) {
			v.Spec.ClaimRef = nil
			delete(v.Annotations, reclaim.AnnouncementAnnotation)
		},
		"Retain and no claimRef": func(v *corev1.PersistentVolume) {
			v.Spec.ClaimRef = nil
			WithPolicy(corev1.PersistentVolumeReclaimRetain)(v)
		},
	}
	for name, edit := range edits {
		for _, fails := range []bindingtest.Verb{"", bindingtest.VerbDelete, bindingtest.VerbGet, bindingtest.VerbUpdate} {
			t.Run(name+", failing: "+string(fails), func(t *testing.T) {
				w := newTwoLeaders(t, corev1.PersistentVolumeReclaimDelete)
				edited, failed := false, false
				w.storage.Use(func(ctx context.Context, call *bindingtest.StorageCall, do func() error) error {
					err := do()
					if !edited {
						edited = true
						volume := w.server.Volume("a")
						edit(volume)
						volume.Finalizers = append(volume.Finalizers, reclaim.InTreeFinalizer)
						_, failed := w.server.UpdateVolume(ctx, volume)
						require.NoError(t, failed)
						if _, announced := reclaim.AnnouncementOf(volume); announced { // else they have said that it has its storage
							require.NoError(t, w.new.Settle(ctx))
						}
					}
					return err
				})
				w.old.Client.Use(func(call *bindingtest.Call, do func() error) error {
					if edited && !failed && call.Verb == fails {
						failed = true
						return ErrConnection
					}
					return do()
				})
				_ = w.old.Settle(t.Context()) // that the connection was lost is an error
				require.True(t, edited)
				require.Equal(t, fails != "", failed)
				w.settle()
				w.settle()
				volume := w.server.Volume("a")
				require.NotNil(t, volume)
				assert.Equal(t, corev1.VolumeFailed, volume.Status.Phase)
				assert.Contains(t, volume.Status.Message, "is deleted")
				assert.Equal(t, corev1.ClaimPending, w.server.Claim("default", "second").Status.Phase)
				assert.Empty(t, w.storage.Problems())

				require.NoError(t, w.server.Delete(t.Context(), AKey, metav1.DeleteOptions{}))
				w.settle()
				assert.Nil(t, w.server.Volume("a"), "a person deletes it, as it says")
			})
		}
	}
}

// R8: that the storage is deleted cannot be noted, and an administrator gives the volume to another claim and takes the announcement
// off. The sync of that claim comes before the volume's own.
func TestR8AClaimComesBeforeTheNote(t *testing.T) {
	for name, given := range map[string]func(*corev1.PersistentVolume, *corev1.PersistentVolumeClaim){
		"reserved": func(v *corev1.PersistentVolume, _ *corev1.PersistentVolumeClaim) {
			RefersTo("default", "second", "")(v)
		},
		"named": func(v *corev1.PersistentVolume, c *corev1.PersistentVolumeClaim) {
			v.Spec.ClaimRef, c.Spec.VolumeName = nil, v.Name
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newTwoLeaders(t, corev1.PersistentVolumeReclaimDelete)
			fails := true
			w.old.Client.Use(func(call *bindingtest.Call, do func() error) error {
				if fails && call.Key == AKey && len(w.storage.Calls()) > 0 && call.Verb != bindingtest.VerbGet {
					return ErrConnection
				}
				return do()
			})
			_ = w.old.Settle(t.Context()) // that the connection was lost is an error
			require.Len(t, w.storage.Calls(), 1)
			fails = false
			volume, claim := w.server.Volume("a"), w.server.Claim("default", "second")
			given(volume, claim)
			delete(volume.Annotations, reclaim.AnnouncementAnnotation)
			volume, err := w.server.UpdateVolume(t.Context(), volume)
			require.NoError(t, err)
			_, err = w.server.UpdateClaim(t.Context(), claim)
			require.NoError(t, err)
			w.old.Deliver(obj.KindVolume, 10)
			w.old.Deliver(obj.KindClaim, 10)
			result, err := w.old.Controller.Sync(t.Context(), obj.ClaimKey("default", "second"))
			require.NoError(t, err)
			assert.Equal(t, volume.ResourceVersion, w.server.Volume("a").ResourceVersion, "%v", result)
			require.NoError(t, w.old.Settle(t.Context()))
			assert.Equal(t, corev1.ClaimPending, w.server.Claim("default", "second").Status.Phase)
			assert.Equal(t, corev1.VolumeFailed, w.server.Volume("a").Status.Phase)
			assert.Empty(t, w.storage.Problems())
		})
	}
}

// R8: a deleter or recycler has begun, and gives no answer that it is done: it goes on, it fails after its work, or it panics. An
// administrator changes the volume then. Nobody gets it, whether the controller goes on or starts again, and no recycler runs after a
// deleter. The volume says so, and what it says can be done: whoever sees that the storage is there removes the announcement.
func TestR8AVolumeIsChangedAfterAHookThatMayGoOn(t *testing.T) {
	answers := map[string]func(do func() error) error{
		"it goes on":             func(func() error) error { return &hooks.Error{Meaning: hooks.InProgress, After: time.Minute} },
		"it fails after it":      func(do func() error) error { return errors.Join(do(), errors.New("too late")) },
		"it panics after it":     func(do func() error) error { _ = do(); panic("too late") },
		"its controller is gone": func(func() error) error { return bindingtest.ErrCrashed },
	}
	freed := func(v *corev1.PersistentVolume) { v.Spec.ClaimRef = nil }
	edits := map[string][]VolumeEdit{
		"policy Retain":                   {WithPolicy(corev1.PersistentVolumeReclaimRetain)},
		"policy Retain, no claimRef then": {WithPolicy(corev1.PersistentVolumeReclaimRetain), freed},
		"policy Recycle":                  {WithPolicy(corev1.PersistentVolumeReclaimRecycle)},
		"Recycle and no claimRef": {func(v *corev1.PersistentVolume) {
			freed(v)
			WithPolicy(corev1.PersistentVolumeReclaimRecycle)(v)
		}},
		"claimRef removed":     {freed},
		"reserved for another": {RefersTo("default", "second", "")},
	}
	for _, policy := range []corev1.PersistentVolumeReclaimPolicy{corev1.PersistentVolumeReclaimDelete, corev1.PersistentVolumeReclaimRecycle} {
		for answer, answers := range answers {
			for name, edits := range edits {
				if policy == corev1.PersistentVolumeReclaimRecycle && name == "policy Recycle" {
					continue // nothing is changed
				}
				t.Run(string(policy)+", "+answer+": "+name, func(t *testing.T) {
					w := newTwoLeaders(t, policy)
					w.storage.Use(func(_ context.Context, _ *bindingtest.StorageCall, do func() error) error { return answers(do) })
					_ = w.old.Settle(t.Context()) // a panic is an error
					calls := len(w.storage.Calls())
					if answer == "its controller is gone" {
						w.old.Restart()
					}
					for _, edit := range edits {
						volume := w.server.Volume("a")
						edit(volume)
						_, failed := w.server.UpdateVolume(t.Context(), volume)
						require.NoError(t, failed)
						w.settle()
					}
					volume := w.server.Volume("a")
					require.NotNil(t, volume)
					assert.Equal(t, corev1.ClaimPending, w.server.Claim("default", "second").Status.Phase)
					assert.Len(t, w.storage.Calls(), calls, "nothing else is called")
					told := func(event decision.Event) bool {
						return event.On == AKey && event.Type == corev1.EventTypeWarning && slices.Contains([]decision.EventReason{decision.EventVolumeFailedDelete, decision.EventVolumeFailedRecycle}, event.Reason)
					}
					assert.True(t, slices.ContainsFunc(w.server.Events(), told), "%v", w.server.Events())

					delete(volume.Annotations, reclaim.AnnouncementAnnotation)
					volume.Spec.ClaimRef = nil
					_, failed := w.server.UpdateVolume(t.Context(), volume)
					require.NoError(t, failed)
					w.settle()
					assert.Equal(t, corev1.ClaimBound, w.server.Claim("default", "second").Status.Phase)
				})
			}
		}
	}
}

// TestR8AVolumeIsReplacedWhileItsHookGoesOn: a person replaces a volume by a manifest of before, without its claimRef, or with the name in that alone, and so without the
// announcement. The controller, whose call goes on, announces it again: nobody gets the volume until the person, who is told, has removed that.
func TestR8AVolumeIsReplacedWhileItsHookGoesOn(t *testing.T) {
	goesOn := &hooks.Error{Meaning: hooks.InProgress, After: time.Minute}
	answers := map[string][]error{
		"it goes on":                      {goesOn},
		"no answer in time":               {context.DeadlineExceeded},
		"it goes on, and the next fails":  {goesOn, ErrBroken},
		"it goes on, and says it is used": {goesOn, &hooks.Error{Meaning: hooks.InUse, Err: ErrBroken}},
		"it goes on, and another was by":  {goesOn, &hooks.Error{Meaning: hooks.StaleToken, Err: ErrBroken}},
	}
	manifests := map[string]VolumeEdit{"without claimRef": func(v *corev1.PersistentVolume) { v.Spec.ClaimRef = nil }, "with a name in claimRef": RefersTo("default", "second", "")}
	for _, policy := range []corev1.PersistentVolumeReclaimPolicy{corev1.PersistentVolumeReclaimDelete, corev1.PersistentVolumeReclaimRecycle} {
		for answer, each := range answers {
			for name, manifest := range manifests {
				t.Run(string(policy)+", "+answer+", "+name, func(t *testing.T) {
					w := newTwoLeaders(t, policy)
					rest := each
					w.storage.Use(func(context.Context, *bindingtest.StorageCall, func() error) error {
						answer := rest[0]
						rest = rest[min(1, len(rest)-1):]
						return answer
					})
					require.NoError(t, w.old.Settle(t.Context()))
					for len(w.storage.Calls()) < len(each) {
						require.NoError(t, w.old.AdvanceClock(t.Context()))
					}
					require.Len(t, w.storage.Calls(), len(each))
					edit := func(edits ...VolumeEdit) {
						volume := w.server.Volume("a")
						delete(volume.Annotations, reclaim.AnnouncementAnnotation)
						for _, edit := range edits {
							edit(volume)
						}
						_, failed := w.server.UpdateVolume(t.Context(), volume)
						require.NoError(t, failed)
						require.NoError(t, w.old.Settle(t.Context()))
					}
					edit(manifest, func(v *corev1.PersistentVolume) { v.Finalizers = nil })
					w.settle()
					assert.Equal(t, corev1.ClaimPending, w.server.Claim("default", "second").Status.Phase)
					assert.Len(t, w.storage.Calls(), len(each), "nothing else is called")
					assert.Contains(t, w.server.Volume("a").Annotations, reclaim.AnnouncementAnnotation)
					assert.True(t, slices.ContainsFunc(w.server.Events(), func(event decision.Event) bool {
						return event.On == AKey && event.Type == corev1.EventTypeWarning && strings.Contains(event.Message, "remove the annotation")
					}), "%v", w.server.Events())
					edit()
					assert.Equal(t, corev1.ClaimBound, w.server.Claim("default", "second").Status.Phase)
				})
			}
		}
	}
}
