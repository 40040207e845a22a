package apitest_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	applycorev1 "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/pvbind/pvbind/binding/bindingtest"
	"github.com/pvbind/pvbind/binding/clientgo/apitest"
	"github.com/pvbind/pvbind/binding/obj"
)

// onEach runs a test on a server over HTTP and on each backed fake, with these objects created in their order.
func onEach(t *testing.T, test func(t *testing.T, server *apitest.Server, set kubernetes.Interface), objects ...obj.Object) {
	run := func(name string, server *apitest.Server, set kubernetes.Interface) {
		t.Run(name, func(t *testing.T) {
			for _, object := range objects {
				_, err := server.Create(t.Context(), object)
				require.NoError(t, err)
			}
			test(t, server, set)
		})
	}
	server, set := start(t)
	run("HTTP", server, set)
	for name, newClientset := range constructors() {
		set := newClientset()
		run(name, apitest.Back(set), set)
	}
}

func eviction(pod string) *policyv1.Eviction {
	return &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: pod}}
}

func labelled(claim string, label string) *corev1.PersistentVolumeClaim {
	object := bindingtest.Claim("default", claim, "1Gi")
	object.Labels = map[string]string{"app": label}
	return object
}

func TestPatches(t *testing.T) {
	for kind, patch := range map[types.PatchType]string{
		types.JSONPatchType:           `[{"op":"replace","path":"/metadata/labels/app","value":"b"}]`,
		types.MergePatchType:          `{"metadata":{"labels":{"app":"b"}},"status":{"phase":"Lost"}}`,
		types.StrategicMergePatchType: `{"metadata":{"labels":{"app":"b"},"finalizers":["example.com/a"]}}`,
	} {
		t.Run(string(kind), func(t *testing.T) {
			onEach(t, func(t *testing.T, server *apitest.Server, set kubernetes.Interface) {
				claims := set.CoreV1().PersistentVolumeClaims("default")
				claim, err := claims.Patch(t.Context(), "data", kind, []byte(patch), metav1.PatchOptions{})
				require.NoError(t, err)
				assert.Equal(t, "b", claim.Labels["app"])
				assert.Equal(t, corev1.ClaimPending, claim.Status.Phase, "A2")
				assert.Contains(t, claim.Finalizers, "kubernetes.io/pvc-protection")
				assert.Equal(t, claim.ResourceVersion, server.Claim("default", "data").ResourceVersion)
				_, err = claims.Patch(t.Context(), "other", kind, []byte(patch), metav1.PatchOptions{})
				assert.True(t, apierrors.IsNotFound(err), "%v", err)
				_, err = claims.Patch(t.Context(), "data", kind, []byte(`{`), metav1.PatchOptions{})
				assert.True(t, apierrors.IsBadRequest(err), "%v", err)
			}, labelled("data", "a"))
		})
	}
}

func TestPatchOfAStatusAndOfAVersion(t *testing.T) {
	onEach(t, func(t *testing.T, server *apitest.Server, set kubernetes.Interface) {
		claims := set.CoreV1().PersistentVolumeClaims("default")
		patch := `{"spec":{"volumeName":"a"},"status":{"phase":"Bound"}}`
		before := server.Claim("default", "data").ResourceVersion
		claim, err := claims.Patch(t.Context(), "data", types.MergePatchType, []byte(patch), metav1.PatchOptions{}, "status")
		require.NoError(t, err)
		assert.Equal(t, corev1.ClaimBound, claim.Status.Phase)
		assert.Empty(t, claim.Spec.VolumeName)
		stale := `{"metadata":{"resourceVersion":"` + before + `","labels":{"app":"b"}}}`
		_, err = claims.Patch(t.Context(), "data", types.MergePatchType, []byte(stale), metav1.PatchOptions{})
		assert.True(t, apierrors.IsConflict(err), "%v", err)
		server.Client.Use(bindingtest.Conflict(1, bindingtest.AnyWrite))
		_, err = claims.Patch(t.Context(), "data", types.MergePatchType, []byte(`{"metadata":{"labels":{"app":"b"}}}`), metav1.PatchOptions{})
		require.NoError(t, err, "a patch for any version is applied anew")
	}, labelled("data", "a"))
}

func TestApply(t *testing.T) {
	onEach(t, func(t *testing.T, _ *apitest.Server, set kubernetes.Interface) {
		claims := set.CoreV1().PersistentVolumeClaims("default")
		apply := func(by, name, value string) error {
			applied := applycorev1.PersistentVolumeClaim(name, "default").WithLabels(map[string]string{"app": value}).
				WithSpec(applycorev1.PersistentVolumeClaimSpec().WithAccessModes(corev1.ReadWriteOnce).
					WithResources(applycorev1.VolumeResourceRequirements().WithRequests(bindingtest.Claim("", "", "1Gi").Spec.Resources.Requests)))
			_, err := claims.Apply(t.Context(), applied, metav1.ApplyOptions{FieldManager: by})
			return err
		}
		require.NoError(t, apply("a", "data", "old"), "it changes what there is")
		require.NoError(t, apply("a", "later", "x"), "it creates what there is not")
		later, err := claims.Get(t.Context(), "later", metav1.GetOptions{})
		require.NoError(t, err)
		assert.NotEmpty(t, later.UID)
		assert.Equal(t, "x", later.Labels["app"])
		later.Labels["app"] = "kept"
		later.ManagedFields = nil
		_, err = claims.Update(t.Context(), later, metav1.UpdateOptions{})
		require.NoError(t, err)
		conflict := apply("b", "later", "y")
		assert.True(t, apierrors.IsConflict(conflict), "a owns the label: %v", conflict)
		foreign := apply("a", "data", "x")
		assert.True(t, apierrors.IsConflict(foreign), "somebody else has set the label: %v", foreign)
	}, labelled("data", "old"))
}

func TestSelectors(t *testing.T) {
	web, db := bindingtest.Pod("default", "web", "n1"), bindingtest.Pod("other", "db", "n2")
	web.Labels = map[string]string{"app": "web"}
	onEach(t, func(t *testing.T, _ *apitest.Server, set kubernetes.Interface) {
		for options, want := range map[metav1.ListOptions][]string{
			{}:                                   {"web", "db"},
			{FieldSelector: "spec.nodeName=n2"}:  {"db"},
			{FieldSelector: "metadata.name=web"}: {"web"},
			{LabelSelector: "app=web"}:           {"web"},
			{LabelSelector: "app"}:               {"web"},
			{LabelSelector: "!app", FieldSelector: "spec.nodeName!=n2"}: nil,
		} {
			list, err := set.CoreV1().Pods("").List(t.Context(), options)
			require.NoError(t, err)
			var names []string
			for _, pod := range list.Items {
				names = append(names, pod.Name)
			}
			assert.Equal(t, want, names, "%v", options)
		}
		_, err := set.CoreV1().Pods("").List(t.Context(), metav1.ListOptions{FieldSelector: "spec.colour=red"})
		assert.True(t, apierrors.IsBadRequest(err), "%v", err)
	}, web, db)
}

func TestWatchOfASelection(t *testing.T) {
	onEach(t, func(t *testing.T, server *apitest.Server, set kubernetes.Interface) {
		changes, err := set.CoreV1().PersistentVolumeClaims("default").Watch(t.Context(), metav1.ListOptions{LabelSelector: "app=a"})
		require.NoError(t, err)
		defer changes.Stop()
		for _, label := range []string{"b", "a", "a", "b"} {
			claim := server.Claim("default", "data")
			claim.Labels["app"], claim.Annotations = label, map[string]string{"step": claim.ResourceVersion}
			_, err := server.Update(t.Context(), claim)
			require.NoError(t, err)
		}
		_, err = server.Create(t.Context(), labelled("last", "a"))
		require.NoError(t, err)
		for _, want := range []watch.EventType{watch.Added, watch.Deleted, watch.Added, watch.Modified, watch.Deleted} {
			change := <-changes.ResultChan()
			assert.Equal(t, want, change.Type)
			assert.Equal(t, "data", change.Object.(*corev1.PersistentVolumeClaim).Name)
			assert.Equal(t, "a", change.Object.(*corev1.PersistentVolumeClaim).Labels["app"])
		}
		assert.Equal(t, "last", (<-changes.ResultChan()).Object.(*corev1.PersistentVolumeClaim).Name)
	}, labelled("data", "a"))
}

func TestBindingOfAPod(t *testing.T) {
	onEach(t, func(t *testing.T, _ *apitest.Server, set kubernetes.Interface) {
		pods := set.CoreV1().Pods("default")
		bind := func(pod, node string) error {
			return pods.Bind(t.Context(), &corev1.Binding{
				ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: pod}, Target: corev1.ObjectReference{Kind: "Node", Name: node},
			}, metav1.CreateOptions{})
		}
		require.NoError(t, bind("web", "n1"))
		pod, err := pods.Get(t.Context(), "web", metav1.GetOptions{})
		require.NoError(t, err)
		assert.Equal(t, "n1", pod.Spec.NodeName)
		again := bind("web", "n2")
		assert.True(t, apierrors.IsConflict(again), "%v", again)
		assert.ErrorContains(t, again, "already assigned to node n1")
		missing := bind("other", "n2")
		assert.True(t, apierrors.IsNotFound(missing), "%v", missing)
	}, bindingtest.Pod("default", "web", ""))
}

func TestDeletionOfMany(t *testing.T) {
	onEach(t, func(t *testing.T, server *apitest.Server, set kubernetes.Interface) {
		claims := set.CoreV1().PersistentVolumeClaims("default")
		require.NoError(t, claims.DeleteCollection(t.Context(), metav1.DeleteOptions{}, metav1.ListOptions{LabelSelector: "app=a"}))
		assert.NotNil(t, server.Claim("default", "a").DeletionTimestamp, "a finalizer holds it")
		assert.Nil(t, server.Claim("default", "b").DeletionTimestamp)
	}, labelled("a", "a"), labelled("b", "b"))
}

func TestADryRunChangesNothing(t *testing.T) {
	onEach(t, func(t *testing.T, server *apitest.Server, set kubernetes.Interface) {
		claims, all := set.CoreV1().PersistentVolumeClaims("default"), []string{metav1.DryRunAll}
		changed, err := claims.Patch(t.Context(), "data", types.MergePatchType, []byte(`{"metadata":{"labels":{"app":"b"}}}`), metav1.PatchOptions{DryRun: all})
		require.NoError(t, err)
		assert.Equal(t, "b", changed.Labels["app"])
		require.NoError(t, claims.Delete(t.Context(), "data", metav1.DeleteOptions{DryRun: all}))
		created, err := claims.Create(t.Context(), labelled("later", "a"), metav1.CreateOptions{DryRun: all})
		require.NoError(t, err)
		assert.NotEmpty(t, created.UID)
		assert.Nil(t, server.Claim("default", "later"))
		assert.Equal(t, "a", server.Claim("default", "data").Labels["app"])
		assert.Nil(t, server.Claim("default", "data").DeletionTimestamp)
	}, labelled("data", "a"))
}

func TestTheNamespaceIsThatOfTheRequest(t *testing.T) {
	onEach(t, func(t *testing.T, server *apitest.Server, set kubernetes.Interface) {
		_, err := set.CoreV1().PersistentVolumeClaims("shop").Create(t.Context(), bindingtest.Claim("", "data", "1Gi"), metav1.CreateOptions{})
		require.NoError(t, err)
		assert.NotNil(t, server.Claim("shop", "data"))
		_, err = set.CoreV1().PersistentVolumeClaims("shop").Create(t.Context(), bindingtest.Claim("other", "b", "1Gi"), metav1.CreateOptions{})
		assert.True(t, apierrors.IsBadRequest(err), "%v", err)
	})
}

// Two that read the same version cannot both write it (A2).
func TestTwoConflictingUpdates(t *testing.T) {
	for name, newClientset := range constructors() {
		t.Run(name, func(t *testing.T) {
			set := newClientset(bindingtest.Volume("disk", "1Gi"))
			apitest.Back(set)
			volumes := set.CoreV1().PersistentVolumes()
			first, err := volumes.Get(t.Context(), "disk", metav1.GetOptions{})
			require.NoError(t, err)
			other := first.DeepCopy()
			first.Labels, other.Labels = map[string]string{"by": "first"}, map[string]string{"by": "other"}
			changed, err := volumes.Update(t.Context(), first, metav1.UpdateOptions{})
			require.NoError(t, err)
			assert.NotEqual(t, other.ResourceVersion, changed.ResourceVersion)
			conflict := second(volumes.Update(t.Context(), other, metav1.UpdateOptions{}))
			assert.True(t, apierrors.IsConflict(conflict), "%v", conflict)
		})
	}
}

func TestFinalizersHoldWhatIsDeleted(t *testing.T) {
	for name, newClientset := range constructors() {
		t.Run(name, func(t *testing.T) {
			claim := bindingtest.Claim("default", "data", "1Gi")
			claim.Finalizers = []string{"example.com/mine"}
			set := newClientset(claim)
			apitest.Back(set)
			claims := set.CoreV1().PersistentVolumeClaims("default")
			require.NoError(t, claims.Delete(t.Context(), "data", metav1.DeleteOptions{}))
			held, err := claims.Get(t.Context(), "data", metav1.GetOptions{})
			require.NoError(t, err)
			require.NotNil(t, held.DeletionTimestamp)
			held.Finalizers = nil
			require.NoError(t, second(claims.Update(t.Context(), held, metav1.UpdateOptions{})))
			gone := second(claims.Get(t.Context(), "data", metav1.GetOptions{}))
			assert.True(t, apierrors.IsNotFound(gone), "%v", gone)
		})
	}
}
