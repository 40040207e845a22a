package bindingtest_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pvbind/pvbind/binding/bindingtest"
	"github.com/pvbind/pvbind/binding/decision"
	"github.com/pvbind/pvbind/binding/hooks"
	. "github.com/pvbind/pvbind/binding/internal/testkit"
	"github.com/pvbind/pvbind/binding/obj"
)

// fakeTest is a *testing.T that says what it failed with.
type fakeTest struct {
	ctx    context.Context
	failed string
}

func (*fakeTest) Helper()                          {}
func (f *fakeTest) Context() context.Context       { return f.ctx }
func (f *fakeTest) Fatalf(format string, a ...any) { f.failed = fmt.Sprintf(format, a...) }

func ofClass(name string) ClaimEdit { return RequestingClass(&name) }

func TestMustBindFailsWithTheReasons(t *testing.T) {
	fake := &fakeTest{ctx: t.Context()}
	cluster := bindingtest.NewCluster(bindingtest.Claim("default", "data", "1Gi", ofClass("absent")))
	cluster.Client.Use(bindingtest.Fail(1, bindingtest.On(bindingtest.VerbUpdate, obj.KindPod), errors.New("no")))
	cluster.MustBind(fake)
	assert.Equal(t, `not everything is bound:
pvc/default/data: no volume fits, and the storage class "absent" that could provision one does not exist: 0/0 volumes fit: there are none`, fake.failed)

	fake.failed = ""
	_, err := cluster.Create(t.Context(), ClassOf("absent", "csi.example.com"))
	require.NoError(t, err)
	cluster.MustBind(fake)
	assert.Empty(t, fake.failed, "it may be called again, and keeps the reasons of now only")

	_, err = cluster.Create(t.Context(), bindingtest.Pod("default", "p", "", "data"))
	require.NoError(t, err)
	_, err = cluster.Create(t.Context(), NodeIn("a"))
	require.NoError(t, err)
	cluster.MustBind(fake)
	assert.Empty(t, fake.failed, "what failed once is tried again")
}

func always(err error) bindingtest.StorageHook {
	return func(context.Context, *bindingtest.StorageCall, func() error) error { return err }
}

// What fails is named on the claim or the volume that it is about, whoever made or deleted the storage.
func TestOutcomeNamesWhatFailed(t *testing.T) {
	full := errors.New("the disk is full")
	failing, once := bindingtest.NewStorage(), bindingtest.NewStorage()
	failing.Use(always(full))
	once.Use(bindingtest.FailStorage(1, bindingtest.AnyStorageCall, full))
	hookSet := failing.Hooks("csi.example.com")
	waits, now := ClassOf("waits", "csi.example.com", WaitsForFirstConsumer), ClassOf("now", "csi.example.com")
	named := func(claim *corev1.PersistentVolumeClaim) {
		claim.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"a": "b"}}
	}
	const awaits = `pvc/default/c: waiting for the provisioner "csi.example.com" to make a volume for the claim, or for an administrator to reserve one that fits (claimRef with namespace and name): 0/0 volumes fit: there are none; `
	const onNode = `pvc/default/c: waiting for the provisioner "csi.example.com" to make a volume that node "n1" can use for the claim, or for an administrator to reserve one that fits (claimRef with namespace and name): 0/0 volumes fit: there are none; `
	for name, test := range map[string]struct {
		options bindingtest.SettleOptions
		objects []obj.Object
		want    string
	}{
		"a driver, at once": {bindingtest.SettleOptions{Storage: failing}, []obj.Object{now, bindingtest.Claim("default", "c", "1Gi", ofClass("now"))},
			awaits + "the provisioner csi.example.com failed: the disk is full"},
		"a driver, for a pod": {bindingtest.SettleOptions{Storage: failing}, []obj.Object{waits, hostNode("n1"), bindingtest.Claim("default", "c", "1Gi", ofClass("waits")), bindingtest.Pod("default", "p", "", "c")},
			onNode + "the provisioner csi.example.com failed: the disk is full\npod/default/p: node n1 is chosen; waiting for a volume for pvc/default/c"},
		"a driver, once": {bindingtest.SettleOptions{Storage: once}, []obj.Object{now, bindingtest.Claim("default", "c", "1Gi", ofClass("now"))}, ""},
		"a driver, for a selector": {bindingtest.SettleOptions{}, []obj.Object{now, bindingtest.Claim("default", "c", "1Gi", ofClass("now"), named)},
			awaits + "the provisioner csi.example.com failed: the claim has a selector, and only volumes that exist can match one"},
		"a hook, at once": {bindingtest.SettleOptions{Hooks: hookSet}, []obj.Object{now, bindingtest.Claim("default", "c", "1Gi", ofClass("now"))},
			awaits + "the provisioner failed: the disk is full"},
		"a hook, for a pod": {bindingtest.SettleOptions{Hooks: hookSet}, []obj.Object{waits, hostNode("n1"), bindingtest.Claim("default", "c", "1Gi", ofClass("waits")), bindingtest.Pod("default", "p", "", "c")},
			"pvc/default/c: waiting for its pods to be scheduled: p: 0/0 volumes fit: there are none; the provisioner failed: the disk is full\n" +
				"pod/default/p: node n1 is chosen; provisioning for pvc/default/c has failed 6 times"},
		"a hook that makes what does not fit": {bindingtest.SettleOptions{Hooks: hooks.Set{Provisioners: map[string]hooks.Provisioner{"csi.example.com": Provisions(tooSmall)}}},
			[]obj.Object{now, bindingtest.Claim("default", "c", "1Gi", ofClass("now"))},
			awaits + "the provisioner returned a volume that does not fit the claim: TooSmall: requested 1Gi, actual 1Mi; " +
				`the storage made for the claim could not be deleted again: no deleter for provisioner "csi.example.com" is registered`},
	} {
		t.Run(name, func(t *testing.T) {
			outcome, err := bindingtest.NewClusterWith(test.options, test.objects...).Settle(t.Context())
			require.NoError(t, err)
			assert.Equal(t, test.want, outcome.String())
		})
	}
}

func tooSmall(_ context.Context, request hooks.ProvisionRequest) (*corev1.PersistentVolume, error) {
	OnHostPath(request.Volume)
	request.Volume.Spec.Capacity = Storage("1Mi")
	return request.Volume, nil
}

func hostNode(name string) *corev1.Node {
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{corev1.LabelHostname: name}}}
}

// Storage that cannot be deleted leaves a volume that is named: as Failed by a hook of one's own, as an error by a driver.
func TestOutcomeNamesStorageThatIsNotDeleted(t *testing.T) {
	for name, options := range map[string]bindingtest.SettleOptions{"hook": {Hooks: bindingtest.NewStorage().Hooks("csi.example.com")}, "driver": {}} {
		t.Run(name, func(t *testing.T) {
			cluster := bindingtest.NewClusterWith(options, ClassOf("now", "csi.example.com"), bindingtest.Claim("default", "c", "1Gi", ofClass("now")))
			cluster.MustBind(t)
			storage := cluster.Storage
			if len(options.Hooks.Deleters) > 0 {
				storage = options.Hooks.Deleters["csi.example.com"].(*bindingtest.Storage)
			}
			busy := true
			storage.Use(func(_ context.Context, _ *bindingtest.StorageCall, do func() error) error {
				if busy {
					return errors.New("busy")
				}
				return do()
			})
			require.NoError(t, cluster.Delete(t.Context(), obj.ClaimKey("default", "c"), metav1.DeleteOptions{}))
			outcome, err := cluster.Settle(t.Context())
			if name == "hook" {
				require.NoError(t, err)
				assert.Equal(t, "pv/pvc-uid-2: Failed: the volume cannot be reclaimed: busy", outcome.String())
			} else {
				require.EqualError(t, err, "pv/pvc-uid-2: deleting its storage failed: busy")
			}
			assert.NoError(t, outcome.Err(), "every claim that there is")
			assert.Len(t, storage.Kept(), 1)
			busy = false
			cluster.MustBind(t)
			assert.Empty(t, storage.Kept())
			assert.Empty(t, storage.Problems())
		})
	}
}

// Pods without a node are reported with the scheduler's reason.
func TestPodsThatAreNotPlaced(t *testing.T) {
	ready := func(objects ...obj.Object) []obj.Object {
		return append(objects,
			bindingtest.Volume("a", "1Gi", func(v pv) { v.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOncePod} }),
			bindingtest.Claim("default", "c", "1Gi", RequestingModes(corev1.ReadWriteOncePod)))
	}
	pod := func(name string, edit func(*corev1.Pod)) *corev1.Pod {
		pod := bindingtest.Pod("default", name, "", "c")
		edit(pod)
		return pod
	}
	same := func(*corev1.Pod) {}
	for name, test := range map[string]struct {
		objects []obj.Object
		want    string
	}{
		"no such claim": {[]obj.Object{hostNode("n1"), bindingtest.Pod("default", "p", "", "absent")}, "pod/default/p: the claim pvc/default/absent does not exist"},
		"a gate": {ready(hostNode("n1"), pod("p", func(p *corev1.Pod) { p.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "quota"}} })),
			`pod/default/p: it is not placed before its scheduling gate "quota" is removed`},
		"a selector": {ready(hostNode("n1"), pod("p", func(p *corev1.Pod) { p.Spec.NodeSelector = map[string]string{"disk": "ssd"} })),
			"pod/default/p: none of 1 node(s) is schedulable and matches the pod's node selector and affinity"},
		"a cordoned node": {ready(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1"}, Spec: corev1.NodeSpec{Unschedulable: true}}, pod("p", same)),
			"pod/default/p: none of 1 node(s) is schedulable and matches the pod's node selector and affinity"},
		"one pod at a time": {ready(hostNode("n1"), pod("p", same), pod("q", same)),
			"pod/default/q: pvc/default/c is for one pod at a time, and pod p uses it"},
		"no claims":       {[]obj.Object{bindingtest.Pod("default", "p", "")}, ""},
		"it has finished": {ready(pod("p", func(p *corev1.Pod) { p.UID, p.Status.Phase = "9", corev1.PodSucceeded })), ""},
	} {
		t.Run(name, func(t *testing.T) {
			outcome, err := bindingtest.NewCluster(test.objects...).Settle(t.Context())
			require.NoError(t, err)
			assert.Equal(t, test.want, outcome.String())
		})
	}
}

func TestSettleOnReturnsWhatKeepsItFromReading(t *testing.T) {
	broken := errors.New("broken")
	cluster := bindingtest.NewCluster(bindingtest.Volume("a", "1Gi"), bindingtest.Claim("default", "c", "1Gi"))
	cluster.Client.Use(bindingtest.Fail(1, bindingtest.On(bindingtest.VerbList, obj.KindPod), broken))
	outcome, err := cluster.Settle(t.Context())
	require.ErrorIs(t, err, broken)
	assert.Empty(t, outcome)
	cluster.Client.Use(bindingtest.Conflict(1, bindingtest.AnyWrite), bindingtest.LoseAnswer(2, bindingtest.AnyWrite))
	cluster.MustBind(t)

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = cluster.Settle(ctx)
	require.ErrorIs(t, err, context.Canceled)
}

// Whichever call fails once, or takes effect without an answer: in the end all is as if none had, and no error remains.
func TestSettleOnGetsOverAnyFault(t *testing.T) {
	objects := []obj.Object{ClassOf("waits", "csi.example.com", WaitsForFirstConsumer), ClassOf("own", "example.com/own"), hostNode("n1"),
		bindingtest.Volume("a", "1Gi", OfClass("waits")), bindingtest.Claim("default", "a", "1Gi", ofClass("waits")), bindingtest.Claim("default", "b", "2Gi", ofClass("waits")),
		bindingtest.Claim("default", "c", "1Gi", ofClass("own")), bindingtest.Pod("default", "p", "", "a", "b"), bindingtest.Pod("default", "q", "n1", "b", "c")}
	faults := map[string]func(int) bindingtest.Hook{
		"conflict":    func(n int) bindingtest.Hook { return bindingtest.Conflict(n, bindingtest.AnyWrite) },
		"failure":     func(n int) bindingtest.Hook { return bindingtest.Fail(n, bindingtest.AnyWrite, errors.New("broken")) },
		"lost answer": func(n int) bindingtest.Hook { return bindingtest.LoseAnswer(n, bindingtest.AnyWrite) },
	}
	for name, fault := range faults {
		for n, faulty := 1, true; faulty; n++ {
			own := bindingtest.NewStorage()
			cluster := bindingtest.NewClusterWith(bindingtest.SettleOptions{Hooks: own.Hooks("example.com/own")}, objects...)
			writes := 0
			cluster.Client.Use(fault(n), func(call *bindingtest.Call, do func() error) error {
				if call.Writes() {
					writes++
				}
				return do()
			})
			settled := func() {
				outcome, err := cluster.Settle(t.Context())
				require.NoError(t, errors.Join(err, outcome.Err()), "%s of write %d", name, n)
			}
			settled()
			for _, key := range []obj.Key{bindingtest.PodKey("default", "p"), bindingtest.PodKey("default", "q"),
				obj.ClaimKey("default", "b"), obj.ClaimKey("default", "c")} {
				require.NoError(t, cluster.Delete(t.Context(), key, metav1.DeleteOptions{}))
			}
			settled()
			assert.Equal(t, "a", cluster.Claim("default", "a").Spec.VolumeName)
			volumes, err := cluster.List(t.Context(), obj.KindVolume, "")
			require.NoError(t, err)
			assert.Len(t, volumes, 1, "%s of write %d", name, n)
			assert.Empty(t, append(cluster.Storage.Kept(), own.Kept()...), "%s of write %d", name, n)
			assert.Empty(t, cluster.Storage.Problems(), "%s of write %d", name, n)
			assert.Empty(t, own.Problems(), "%s of write %d", name, n)
			faulty = writes >= n
		}
	}
}

// Somebody undoes what the controller does, again and again.
func TestSettleOnComesToAnEnd(t *testing.T) {
	cluster := bindingtest.NewCluster(bindingtest.Volume("a", "1Gi"))
	cluster.Client.Use(func(call *bindingtest.Call, do func() error) error {
		if call.Verb == bindingtest.VerbList && call.Key.Kind == obj.KindVolume {
			volume := cluster.Volume("a")
			volume.Finalizers = nil
			if _, err := cluster.Update(context.Background(), volume); err != nil {
				return err
			}
		}
		return do()
	})
	_, err := cluster.Settle(t.Context())
	unsettled := (*bindingtest.UnsettledError)(nil)
	require.ErrorAs(t, err, &unsettled)
	assert.Equal(t, obj.VolumeKey("a"), unsettled.Key)
	assert.Contains(t, err.Error(), "update pv/a: +finalizer kubernetes.io/pv-protection")
}

func withMode(claim *corev1.PersistentVolumeClaim) {
	claim.Spec.VolumeMode = new(corev1.PersistentVolumeFilesystem)
}

// The first status of a claim that was written by hand is what a server would have given it.
func TestAClaimThatWaitsIsPending(t *testing.T) {
	cluster := bindingtest.NewCluster(bindingtest.Claim("default", "c", "1Gi", ofClass(""), OfUID("3"), withMode))
	require.Empty(t, cluster.Claim("default", "c").Status.Phase)
	outcome, err := cluster.Settle(t.Context())
	require.NoError(t, err)
	require.Len(t, outcome.Unbound, 1)
	assert.Equal(t, decision.ClaimUnmatched, outcome.Unbound[0].State)
	assert.Equal(t, corev1.ClaimPending, cluster.Claim("default", "c").Status.Phase)
}
