package e2e

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/kubernetes/scheme"
)

// manifest is what a file holds. Fields that do not exist are errors.
func manifest(t *testing.T, path string) (objects []runtime.Object) {
	t.Helper()
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	strict := serializer.NewCodecFactory(scheme.Scheme, serializer.EnableStrict).UniversalDeserializer()
	for document := range strings.SplitSeq(string(text), "\n---\n") {
		object, _, err := strict.Decode([]byte(document), nil, nil)
		require.NoError(t, err, document)
		objects = append(objects, object)
	}
	return objects
}

func TestTheManifestsFitTogether(t *testing.T) {
	deployment := manifest(t, "../manifests/deployment.yaml")[0].(*appsv1.Deployment)
	pod := deployment.Spec.Template.Spec
	assert.Equal(t, deployment.Spec.Selector.MatchLabels, deployment.Spec.Template.Labels)
	assert.Equal(t, []string{"--config=/etc/pvbind/profile.yaml"}, pod.Containers[0].Args)
	assert.Equal(t, "/etc/pvbind", pod.Containers[0].VolumeMounts[0].MountPath)
	assert.Equal(t, pod.Volumes[0].Name, pod.Containers[0].VolumeMounts[0].Name)
	for _, object := range manifest(t, "../manifests/rbac.yaml") {
		var subject rbacv1.Subject
		switch object := object.(type) {
		case *corev1.ServiceAccount:
			subject = rbacv1.Subject{Kind: "ServiceAccount", Name: object.Name, Namespace: object.Namespace}
		case *rbacv1.ClusterRoleBinding:
			subject = object.Subjects[0]
		case *rbacv1.RoleBinding:
			subject = object.Subjects[0]
		}
		assert.Equal(t, rbacv1.Subject{Kind: "ServiceAccount", Name: pod.ServiceAccountName, Namespace: deployment.Namespace}, subject)
	}
}
