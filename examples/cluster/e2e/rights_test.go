package e2e

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/restmapper"

	"github.com/pvbind/pvbind/examples/cluster/controlplane"
)

// The manifests are applied, and pvbinder runs as the service account in them, with the arguments in them. That it
// uses each right is tested beside it.
func TestTheManifestsAreEnough(t *testing.T) {
	a := newAPI(t)
	a.apply(t, "rbac.yaml")
	deployment := a.apply(t, "deployment.yaml")
	token, err := a.CoreV1().ServiceAccounts(metav1.NamespaceSystem).CreateToken(t.Context(), "pvbinder", &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	require.NoError(t, err)
	config := plane.ConfigFor(token.Status.Token)
	_, err = connect(t, config).keys(t.Context(), "Node")
	require.True(t, apierrors.IsForbidden(err), "rights do not matter on this server: %v", err)
	before, err := countRequests(t.Context(), a)
	require.NoError(t, err)

	var binders []*controlplane.Process
	for _, name := range []string{"pvbinder-1", "pvbinder-2"} {
		binders = append(binders, startBinderAs(t, config, name, append(argumentsOf(t, deployment), "--protection")...))
	}
	for _, name := range []string{
		"C2 a default class comes", "C3 no consumer", "C10 its volume is gone, and comes back",
		"V3 F2 R2 the claim goes", "V5 F3 the volume goes", "F2 a pod uses the claim",
	} {
		for _, act := range outcomes[name] {
			act(t, a)
		}
		require.NoError(t, a.clear(t.Context()))
	}
	for _, binder := range binders {
		stop(t, binder)
		assert.NotContains(t, binder.Output(), "forbidden")
	}
	after, err := countRequests(t.Context(), a)
	require.NoError(t, err)
	assert.Equal(t, before.starting("forbidden"), after.starting("forbidden"))
}

// apply creates what is in a manifest, and returns the last object. Fields that do not exist are errors.
func (a api) apply(t *testing.T, name string) *unstructured.Unstructured {
	t.Helper()
	file, err := os.Open(filepath.Join("..", "manifests", name))
	require.NoError(t, err)
	defer file.Close()
	client, err := dynamic.NewForConfig(plane.Config())
	require.NoError(t, err)
	groups, err := restmapper.GetAPIGroupResources(a.Discovery())
	require.NoError(t, err)
	mapper := restmapper.NewDiscoveryRESTMapper(groups)

	var last *unstructured.Unstructured
	for documents := yaml.NewYAMLOrJSONDecoder(file, 4096); ; {
		object := &unstructured.Unstructured{}
		if err := documents.Decode(object); errors.Is(err, io.EOF) {
			return last
		}
		require.NoError(t, err)
		kind := object.GroupVersionKind()
		mapping, err := mapper.RESTMapping(kind.GroupKind(), kind.Version)
		require.NoError(t, err)
		_, err = client.Resource(mapping.Resource).Namespace(object.GetNamespace()).Create(t.Context(), object, metav1.CreateOptions{FieldValidation: metav1.FieldValidationStrict})
		if !apierrors.IsAlreadyExists(err) {
			require.NoError(t, err, "%s %s", kind.Kind, object.GetName())
		}
		last = object
	}
}

// argumentsOf are those that a deployment starts its program with.
func argumentsOf(t *testing.T, object *unstructured.Unstructured) []string {
	t.Helper()
	var deployment appsv1.Deployment
	require.NoError(t, runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &deployment))
	return deployment.Spec.Template.Spec.Containers[0].Args
}
