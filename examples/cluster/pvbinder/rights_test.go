package main

import (
	"cmp"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/pvbind/pvbind/binding/bindingtest"
	"github.com/pvbind/pvbind/binding/clientgo/apitest"
	"github.com/pvbind/pvbind/binding/decision"
	"github.com/pvbind/pvbind/binding/obj"
	"github.com/pvbind/pvbind/examples/cluster/program"
)

// manifest is what a file in manifests holds. Fields that do not exist are errors.
func manifest(t *testing.T, name string) []runtime.Object {
	t.Helper()
	file, err := os.Open(filepath.Join("..", "manifests", name))
	require.NoError(t, err)
	defer file.Close()
	strict := serializer.NewCodecFactory(scheme.Scheme, serializer.EnableStrict).UniversalDeserializer()
	documents := yaml.NewDocumentDecoder(file)
	defer documents.Close()
	var objects []runtime.Object
	for {
		text := make([]byte, 1<<16)
		n, err := documents.Read(text)
		if n == 0 {
			return objects
		}
		require.NoError(t, err)
		object, _, err := strict.Decode(text[:n], nil, nil)
		require.NoError(t, err, "%s", text[:n])
		objects = append(objects, object)
	}
}

func find[T any](t *testing.T, objects []runtime.Object) T {
	t.Helper()
	i := slices.IndexFunc(objects, func(object runtime.Object) bool { _, ok := object.(T); return ok })
	require.GreaterOrEqual(t, i, 0)
	return objects[i].(T)
}

// right is one thing that somebody may do.
type right struct{ group, resource, verb, namespace, name string }

func (r right) String() string { return r.verb + " " + r.resource + "." + r.group }

// rights are those of the manifest, one by one.
func rights(t *testing.T) []right {
	t.Helper()
	objects := manifest(t, "rbac.yaml")
	var all []right
	expand := func(rules []rbacv1.PolicyRule, namespace string) {
		for _, rule := range rules {
			for _, resource := range rule.Resources {
				for _, verb := range rule.Verbs {
					name := cmp.Or(append(rule.ResourceNames, "")...)
					all = append(all, right{rule.APIGroups[0], resource, verb, namespace, name})
				}
			}
		}
	}
	expand(find[*rbacv1.ClusterRole](t, objects).Rules, "")
	role := find[*rbacv1.Role](t, objects)
	expand(role.Rules, role.Namespace)
	return all
}

func (r right) allows(request apitest.Request) bool {
	resource := request.Resource
	if request.Subresource != "" {
		resource += "/" + request.Subresource
	}
	return r.group == request.Group && r.resource == resource && r.verb == request.Verb &&
		(r.namespace == "" || r.namespace == request.Namespace) && (r.name == "" || r.name == request.Name)
}

func TestRightsAreEnoughAndAllUsed(t *testing.T) {
	server := newServer(t, everyObject()...)
	granted := rights(t)
	var mu sync.Mutex
	used, refused := map[right]bool{}, []apitest.Request{}
	server.Deny(func(request apitest.Request) bool {
		mu.Lock()
		defer mu.Unlock()
		i := slices.IndexFunc(granted, func(right right) bool { return right.allows(request) })
		if i < 0 {
			refused = append(refused, request)
			return true
		}
		used[granted[i]] = true
		return false
	})
	server.Client.Use(conflictOnce("PersistentVolume"), conflictOnce("PersistentVolumeClaim"))
	p := launch(t, server, "--protection")
	live(t, server)
	p.signal(syscall.SIGTERM)
	require.Equal(t, program.ExitOK, p.exit())

	assert.Empty(t, refused, "rights that are missing")
	unused := slices.DeleteFunc(slices.Clone(granted), func(right right) bool { return used[right] })
	assert.Empty(t, unused, "rights that are never used")
	assert.NotEmpty(t, slices.Collect(maps.Keys(used)))
}

func conflictOnce(kind obj.Kind) bindingtest.Hook {
	return bindingtest.Conflict(1, func(call *bindingtest.Call) bool {
		return call.Verb == bindingtest.VerbUpdate && call.Key.Kind == kind
	})
}

// everyObject makes pvbinder use each right at least once: see live.
func everyObject() []obj.Object {
	mode := storagev1.VolumeBindingWaitForFirstConsumer
	return append(pair("data", "5Gi"),
		bindingtest.Class("local", func(class *storagev1.StorageClass) { class.VolumeBindingMode = &mode }),
		bindingtest.Volume("small", "1Mi"),
		bindingtest.Claim("default", "picky", "1Gi", func(claim *corev1.PersistentVolumeClaim) { claim.Spec.VolumeName = "small" }))
}

// live has a claim bound and deleted, and an event published twice.
func live(t *testing.T, server *apitest.Server) {
	t.Helper()
	// Only the same message is counted up: that of "picky" says more while its volume is being deleted.
	mismatches := func(n int) func() bool {
		return func() bool {
			messages := map[string]int{}
			for _, event := range server.Published() {
				if event.Reason == string(decision.EventVolumeMismatch) {
					messages[event.Message]++
				}
			}
			return slices.Contains(slices.Collect(maps.Values(messages)), n)
		}
	}
	eventually(t, bound(server, "data"), "the claim is bound")
	eventually(t, mismatches(1), "C7 the volume does not fit")
	require.NoError(t, server.Delete(t.Context(), obj.ClaimKey("default", "data"), metav1.DeleteOptions{}))
	require.NoError(t, server.Delete(t.Context(), obj.VolumeKey("small"), metav1.DeleteOptions{}))
	eventually(t, func() bool { return server.Claim("default", "data") == nil && server.Volume("small") == nil }, "both go")
	create(t, server, pair("later", "7Gi")...)
	eventually(t, bound(server, "later"), "by now that has been seen")
	create(t, server, bindingtest.Volume("small", "1Mi"))
	eventually(t, mismatches(2), "N the same event again, which is counted up or, here, created anew")
}

func TestDeploymentFits(t *testing.T) {
	deployment := find[*appsv1.Deployment](t, manifest(t, "deployment.yaml"))
	rbac := manifest(t, "rbac.yaml")
	pod := deployment.Spec.Template.Spec
	container := pod.Containers[0]
	o := parse(t, container.Args...)
	assert.Equal(t, "json", o.LogFormat)
	assert.Equal(t, deployment.Spec.Selector.MatchLabels, deployment.Spec.Template.Labels)
	assert.Equal(t, find[*corev1.ServiceAccount](t, rbac).Name, pod.ServiceAccountName)
	assert.Equal(t, find[*corev1.ServiceAccount](t, rbac).Namespace, deployment.Namespace)
	assert.Equal(t, o.address, ":8080", "the port that the probes ask")
	assert.EqualValues(t, 8080, container.Ports[0].ContainerPort)
	assert.Equal(t, "/livez", container.LivenessProbe.HTTPGet.Path)
	assert.Equal(t, "/readyz", container.ReadinessProbe.HTTPGet.Path)
	assert.Greater(t, *deployment.Spec.Replicas, int32(1), "one works, one stands by")

	binding := find[*rbacv1.ClusterRoleBinding](t, rbac)
	assert.Equal(t, find[*rbacv1.ClusterRole](t, rbac).Name, binding.RoleRef.Name)
	local := find[*rbacv1.RoleBinding](t, rbac)
	assert.Equal(t, find[*rbacv1.Role](t, rbac).Name, local.RoleRef.Name)
	assert.Equal(t, binding.Subjects, local.Subjects)
	assert.Equal(t, find[*corev1.ServiceAccount](t, rbac).Name, local.Subjects[0].Name)
	assert.Equal(t, o.election.namespace, local.Namespace)
}
