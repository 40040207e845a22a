package clientgo_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"

	"github.com/pvbind/pvbind/binding/bindingtest"
	"github.com/pvbind/pvbind/binding/clientgo"
	"github.com/pvbind/pvbind/binding/clientgo/apitest"
	"github.com/pvbind/pvbind/binding/decision"
)

// startOn runs a Runner on a backed fake clientset.
func startOn(t *testing.T, set *fake.Clientset, changes ...func(*clientgo.Runner)) *running {
	t.Helper()
	changes = append(changes, func(r *clientgo.Runner) { r.Clientset = set })
	return start(t, apitest.Back(set), changes...)
}

func TestRunnerOnAFakeClientset(t *testing.T) {
	for name, newClientset := range map[string]func(...runtime.Object) *fake.Clientset{
		"NewClientset": fake.NewClientset, "NewSimpleClientset": fake.NewSimpleClientset,
	} {
		t.Run(name, func(t *testing.T) {
			set := newClientset(bindingtest.Volume("disk", "10Gi"), bindingtest.Claim("default", "data", "5Gi"))
			r := startOn(t, set)
			r.eventually(func() bool { return r.bound("data") }, "the claim is bound")
			claims := set.CoreV1().PersistentVolumeClaims("default")
			claim, err := claims.Get(t.Context(), "data", metav1.GetOptions{})
			require.NoError(t, err)
			assert.Equal(t, "disk", claim.Spec.VolumeName)

			require.NoError(t, second(claims.Create(t.Context(), bindingtest.Claim("default", "huge", "1Ti"), metav1.CreateOptions{})))
			r.eventually(func() bool {
				events, err := set.CoreV1().Events("default").List(t.Context(), metav1.ListOptions{})
				return err == nil && len(events.Items) > 0 && events.Items[0].Reason == string(decision.EventFailedBinding)
			}, "events are on the clientset")
			require.NoError(t, r.stop())
		})
	}
}

func second[T any](_ T, err error) error { return err }

func TestRunnerDeletesOnAFakeClientset(t *testing.T) {
	set := fake.NewClientset(bindingtest.Volume("disk", "10Gi"), bindingtest.Claim("default", "data", "5Gi"), bindingtest.Pod("default", "web", "node", "data"))
	r := startOn(t, set, func(r *clientgo.Runner) { r.Options.Protection = decision.ProtectionOn })
	r.eventually(func() bool { return r.bound("data") }, "the claim is bound")
	claims, pods := set.CoreV1().PersistentVolumeClaims("default"), set.CoreV1().Pods("default")
	require.NoError(t, claims.Delete(t.Context(), "data", metav1.DeleteOptions{}))
	held, err := claims.Get(t.Context(), "data", metav1.GetOptions{})
	require.NoError(t, err, "F2 the pod uses it")
	require.NotNil(t, held.DeletionTimestamp)
	require.NoError(t, pods.Delete(t.Context(), "web", metav1.DeleteOptions{GracePeriodSeconds: new(int64)}))
	r.eventually(func() bool {
		return apierrors.IsNotFound(second(claims.Get(t.Context(), "data", metav1.GetOptions{})))
	}, "F2 nobody uses it any more")
	r.eventually(func() bool { return r.phase("disk") == corev1.VolumeReleased }, "V3 the volume is released")
}

// The test's own informers are beside those of the Runner, or are used by it.
func TestInformersOnAFakeClientset(t *testing.T) {
	for name, use := range map[string]func(*clientgo.Runner, informers.SharedInformerFactory){
		"beside":  func(*clientgo.Runner, informers.SharedInformerFactory) {},
		"used by": func(r *clientgo.Runner, shared informers.SharedInformerFactory) { r.Informers = shared },
	} {
		t.Run(name, func(t *testing.T) {
			set := fake.NewClientset(bindingtest.Volume("disk", "10Gi"), bindingtest.Claim("default", "data", "5Gi"))
			apitest.Back(set)
			shared := informers.NewSharedInformerFactory(set, 0)
			claims := shared.Core().V1().PersistentVolumeClaims()
			bound := make(chan string, 1)
			_, err := claims.Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{UpdateFunc: func(before, after any) {
				was, is := before.(*corev1.PersistentVolumeClaim), after.(*corev1.PersistentVolumeClaim)
				if was.Status.Phase != is.Status.Phase && is.Status.Phase == corev1.ClaimBound {
					bound <- is.Spec.VolumeName
				}
			}})
			require.NoError(t, err)
			shared.Start(t.Context().Done())
			shared.WaitForCacheSync(t.Context().Done())
			startOn(t, set, func(r *clientgo.Runner) { use(r, shared) })
			select {
			case volume := <-bound:
				assert.Equal(t, "disk", volume)
			case <-time.After(patience):
				require.Fail(t, "the informer does not show the claim as Bound")
			}
			claim, err := claims.Lister().PersistentVolumeClaims("default").Get("data")
			require.NoError(t, err)
			assert.NotEmpty(t, claim.ResourceVersion)
		})
	}
}

// A leader that stops lets go of the lease, which is on the fake as well, and the next one goes on.
func TestLeadersOnAFakeClientset(t *testing.T) {
	set := fake.NewClientset(bindingtest.Volume("disk-0", "10Gi"), bindingtest.Claim("default", "data-0", "5Gi"))
	server := apitest.Back(set)
	lead := func(name string) (leading <-chan *running, stop func()) {
		began, ended := make(chan *running, 1), make(chan struct{})
		ctx, cancel := context.WithCancel(t.Context())
		elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
			Lock: &resourcelock.LeaseLock{
				LeaseMeta:  metav1.ObjectMeta{Namespace: "default", Name: "binder"},
				Client:     set.CoordinationV1(),
				LockConfig: resourcelock.ResourceLockConfig{Identity: name},
			},
			LeaseDuration: time.Minute, RenewDeadline: patience, RetryPeriod: 10 * time.Millisecond, ReleaseOnCancel: true,
			Callbacks: leaderelection.LeaderCallbacks{
				OnStartedLeading: func(context.Context) { began <- startOn(t, set) },
				OnStoppedLeading: func() {},
			},
		})
		require.NoError(t, err)
		go func() {
			defer close(ended)
			elector.Run(ctx)
		}()
		return began, func() {
			cancel()
			<-ended
		}
	}
	began, stop := lead("first")
	first := <-began
	first.eventually(func() bool { return first.bound("data-0") }, "the first one binds")
	next, stopNext := lead("second")
	defer stopNext()
	require.NoError(t, first.stop())
	stop()
	require.NoError(t, second(set.CoreV1().PersistentVolumes().Create(t.Context(), bindingtest.Volume("disk-1", "10Gi"), metav1.CreateOptions{})))
	require.NoError(t, second(set.CoreV1().PersistentVolumeClaims("default").Create(t.Context(), bindingtest.Claim("default", "data-1", "5Gi"), metav1.CreateOptions{})))
	then := <-next
	then.eventually(func() bool { return then.bound("data-1") }, "the second one goes on")
	for _, call := range server.Calls() {
		require.NoError(t, call.Err, "no conflict: %s", call)
	}
}
