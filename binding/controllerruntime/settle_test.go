package controllerruntime_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/pvbind/pvbind/binding/bindingtest"
	"github.com/pvbind/pvbind/binding/clientgo"
	"github.com/pvbind/pvbind/binding/controllerruntime"
	"github.com/pvbind/pvbind/binding/decision"
	"github.com/pvbind/pvbind/binding/hooks"
)

// What a test of one's own may look like.
func TestPodGetsItsVolume(t *testing.T) {
	c := fake.NewClientBuilder().WithObjects(bindingtest.Volume("disk", "10Gi")).Build()
	// The code under test makes a claim, and a pod that uses it.
	require.NoError(t, c.Create(t.Context(), bindingtest.Claim("default", "data", "5Gi")))
	require.NoError(t, c.Create(t.Context(), bindingtest.Pod("default", "web", "node", "data")))

	require.NoError(t, controllerruntime.Settle(t.Context(), c))

	claim := &corev1.PersistentVolumeClaim{}
	require.NoError(t, c.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: "data"}, claim))
	assert.Equal(t, corev1.ClaimBound, claim.Status.Phase)
	assert.Equal(t, "disk", claim.Spec.VolumeName)
}

func get[T client.Object](t *testing.T, c client.Client, object T) T {
	t.Helper()
	require.NoError(t, c.Get(t.Context(), client.ObjectKeyFromObject(object), object))
	return object
}

func claimOf(t *testing.T, c client.Client) *corev1.PersistentVolumeClaim {
	t.Helper()
	return get(t, c, bindingtest.Claim("default", "data", "5Gi"))
}

func volumeOf(t *testing.T, c client.Client) *corev1.PersistentVolume {
	t.Helper()
	return get(t, c, bindingtest.Volume("disk", "10Gi"))
}

func TestSettleFollowsALife(t *testing.T) {
	ctx := t.Context()
	c := fake.NewClientBuilder().WithObjects(bindingtest.Volume("disk", "10Gi"), bindingtest.Claim("default", "data", "5Gi"),
		bindingtest.Pod("default", "web", "node", "data")).Build()
	require.NoError(t, controllerruntime.Settle(ctx, c))
	claim := claimOf(t, c)
	assert.Contains(t, claim.Finalizers, "kubernetes.io/pvc-protection", "F1")
	assert.Equal(t, claim.UID, volumeOf(t, c).Spec.ClaimRef.UID)
	version := claim.ResourceVersion
	require.NoError(t, controllerruntime.Settle(ctx, c))
	assert.Equal(t, version, claimOf(t, c).ResourceVersion, "X8 a second time writes nothing")

	require.NoError(t, c.Delete(ctx, claim))
	require.NoError(t, controllerruntime.Settle(ctx, c))
	assert.NotNil(t, claimOf(t, c).DeletionTimestamp, "F2 the pod uses it")

	require.NoError(t, c.Delete(ctx, bindingtest.Pod("default", "web", "node")))
	require.NoError(t, controllerruntime.Settle(ctx, c))
	require.NoError(t, client.IgnoreNotFound(c.Get(ctx, client.ObjectKeyFromObject(claim), claim)))
	assert.Equal(t, corev1.VolumeReleased, volumeOf(t, c).Status.Phase, "V3 the claim is gone")

	require.NoError(t, c.Create(ctx, bindingtest.Claim("default", "data", "5Gi")))
	require.NoError(t, controllerruntime.Settle(ctx, c))
	assert.Empty(t, claimOf(t, c).Spec.VolumeName, "X3 another claim of that name does not inherit the volume")
}

// In a fake client each object counts its versions anew: they do not tell that the second claim came later.
func TestV3SettleAfterAClaimCameAgain(t *testing.T) {
	c := fake.NewClientBuilder().WithObjects(bindingtest.Volume("disk", "10Gi"), bindingtest.Claim("default", "data", "5Gi")).Build()
	require.NoError(t, controllerruntime.Settle(t.Context(), c))
	claim := claimOf(t, c)
	claim.Finalizers = nil
	require.NoError(t, c.Update(t.Context(), claim))
	require.NoError(t, c.Delete(t.Context(), claim))
	require.NoError(t, c.Create(t.Context(), bindingtest.Claim("default", "data", "5Gi")))
	require.NoError(t, controllerruntime.Settle(t.Context(), c))
	assert.Equal(t, corev1.VolumeReleased, volumeOf(t, c).Status.Phase)
}

func TestSettleTellsWhatFailed(t *testing.T) {
	bad := bindingtest.Volume("bad", "-1Gi")
	broken := errors.New("the connection is broken")
	c := fake.NewClientBuilder().WithObjects(bad, bindingtest.Volume("disk", "10Gi"), bindingtest.Claim("default", "data", "5Gi"),
		bindingtest.Volume("other", "20Gi"), bindingtest.Claim("default", "stuck", "20Gi")).
		WithInterceptorFuncs(interceptor.Funcs{
			Update: func(ctx context.Context, c client.WithWatch, object client.Object, options ...client.UpdateOption) error {
				if object.GetName() == "other" && object.GetUID() != "" && object.(*corev1.PersistentVolume).Spec.ClaimRef != nil {
					return broken
				}
				return c.Update(ctx, object, options...)
			},
		}).Build()
	err := controllerruntime.Settle(t.Context(), c)
	require.ErrorIs(t, err, broken)
	require.ErrorContains(t, err, "pv/bad: spec.capacity[storage]")
	assert.Equal(t, corev1.ClaimBound, claimOf(t, c).Status.Phase, "X7 the rest goes on")
}

func TestSettleNamesAMalformedObjectOnce(t *testing.T) {
	c := fake.NewClientBuilder().WithObjects(bindingtest.Volume("disk", "10Gi", func(v *corev1.PersistentVolume) { v.Spec.Capacity = nil })).Build()
	assert.EqualError(t, controllerruntime.Settle(t.Context(), c), "pv/disk: spec.capacity[storage]: is missing")
}

func TestSettleWithHooks(t *testing.T) {
	class := bindingtest.Class("ours")
	class.Provisioner = "example.com/ours"
	claim := bindingtest.Claim("default", "data", "5Gi")
	claim.Spec.StorageClassName = &class.Name
	ours := &provisioner{}
	reconciler := &controllerruntime.Reconciler{
		Client: fake.NewClientBuilder().WithObjects(class, claim).Build(),
		Hooks:  hooks.Set{Provisioners: map[string]hooks.Provisioner{class.Provisioner: ours}},
	}
	require.NoError(t, reconciler.Settle(t.Context()))
	bound := claimOf(t, reconciler.Client)
	assert.Equal(t, "pvc-"+string(bound.UID), bound.Spec.VolumeName, "P2")
	assert.Equal(t, corev1.ClaimBound, bound.Status.Phase)
}

func TestSettleReclaimsWhatIsDetached(t *testing.T) {
	storage := bindingtest.NewStorage()
	disk := bindingtest.Volume("disk", "10Gi", func(v *corev1.PersistentVolume) {
		v.Spec.PersistentVolumeReclaimPolicy = corev1.PersistentVolumeReclaimDelete
	})
	storage.Add(disk)
	attachment := bindingtest.Attachment("disk", "n1")
	c := fake.NewClientBuilder().WithObjects(disk, bindingtest.Claim("default", "data", "5Gi"), attachment).Build()
	reconciler := &controllerruntime.Reconciler{Client: c, BindingOptions: decision.Options{Protection: decision.ProtectionOn}, Hooks: storage.Hooks("example.com/ours", "hostPath")}
	require.NoError(t, reconciler.Settle(t.Context()))
	require.NoError(t, c.Delete(t.Context(), claimOf(t, c)))
	require.NoError(t, reconciler.Settle(t.Context()))
	assert.Equal(t, corev1.VolumeReleased, volumeOf(t, c).Status.Phase)
	assert.Len(t, storage.Kept(), 1, "R3 it is attached")

	require.NoError(t, c.Delete(t.Context(), attachment))
	require.NoError(t, reconciler.Settle(t.Context()))
	assert.Empty(t, storage.Kept())
}

func TestSettleOfWhatCannotBe(t *testing.T) {
	require.EqualError(t, (&controllerruntime.Reconciler{}).Settle(t.Context()), "controllerruntime.Reconciler: no Client")
	refused := controllerruntime.Reconciler{Pods: clientgo.PodsIgnored}
	want := "controllerruntime.Reconciler: protection depends on pods, and Pods is Ignored"
	require.EqualError(t, refused.Settle(t.Context()), want)
	require.EqualError(t, refused.SetupWithManager(nil), want)
}

func TestSettleObeysTheContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	c := fake.NewClientBuilder().WithObjects(bindingtest.Volume("disk", "10Gi")).WithInterceptorFuncs(interceptor.Funcs{
		Update: func(ctx context.Context, c client.WithWatch, object client.Object, options ...client.UpdateOption) error {
			defer cancel()
			return c.Update(ctx, object, options...)
		},
	}).Build()
	require.ErrorIs(t, controllerruntime.Settle(ctx, c), context.Canceled)
}

// provisioner fails as often as it says.
type provisioner struct {
	failures int
	asked    int
}

func (p *provisioner) Provision(_ context.Context, request hooks.ProvisionRequest) (*corev1.PersistentVolume, error) {
	if p.asked++; p.asked <= p.failures {
		return nil, errors.New("the storage is busy")
	}
	request.Volume.Spec.HostPath = &corev1.HostPathVolumeSource{Path: "/mnt/" + request.Volume.Name}
	return request.Volume, nil
}
