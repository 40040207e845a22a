package e2e

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pvbind/pvbind/binding/obj"
	"github.com/pvbind/pvbind/storageclass"
)

// Pods with volumes that are there, with some that are made, and without any, in front of either binder.
func TestPodsGetTheirVolumes(t *testing.T) {
	for name, startBinder := range binders {
		t.Run(name, func(t *testing.T) {
			startBinder(t, shared)
			s := withPlugin(t, "flow-"+name)
			s.start(t, shared)
			w := newWorld(t, shared, s.name, s.name)
			w.provision()
			const nodes, disks, pods = 10, 6, 20
			objects := []obj.Object{w.class("local"), w.class("made", w.provisioned)}
			for n := range nodes {
				objects = append(objects, w.node(fmt.Sprintf("n%d", n)))
				for d := range disks {
					objects = append(objects, w.disk(fmt.Sprintf("d%d-%d", n, d), fmt.Sprintf("%dGi", 1+d), fmt.Sprintf("n%d", n)))
				}
			}
			for p := range pods {
				one, more, made := fmt.Sprintf("one-%d", p), fmt.Sprintf("more-%d", p), fmt.Sprintf("made-%d", p)
				objects = append(objects, w.claim(one, "1Gi", "local"), w.claim(more, "2Gi", "local"), w.claim(made, "3Gi", "made"))
				switch p % 4 {
				case 0:
					objects = append(objects, w.pod(fmt.Sprintf("pod-%d", p)))
				case 1:
					objects = append(objects, w.pod(fmt.Sprintf("pod-%d", p), one))
				case 2:
					objects = append(objects, w.pod(fmt.Sprintf("pod-%d", p), one, more, made))
				case 3: // two share a claim
					objects = append(objects, w.pod(fmt.Sprintf("pod-%d", p), one, more), w.pod(fmt.Sprintf("too-%d", p), one))
				}
			}
			w.create(objects...)
			eventually(t, func() bool {
				now := w.state()
				return len(now.pending()) == 0 && now.settled()
			}, "all pods run")
			for p := 3; p < pods; p += 4 {
				assert.Equal(t, w.scheduled(fmt.Sprintf("pod-%d", p)), w.scheduled(fmt.Sprintf("too-%d", p)), "they share a volume")
			}
			assert.Empty(t, sharingAside(w.state()).crimes())
		})
	}
}

// sharingAside leaves out the pods that use a claim of another, which crimes takes for one pod's.
func sharingAside(s state) state {
	var pods []corev1.Pod
	for _, pod := range s.pods {
		if pod.Name[:3] == "pod" {
			pods = append(pods, pod)
		}
	}
	s.pods = pods
	return s
}

// The rights of kube-scheduler suffice.
func TestTheRightsOfKubeScheduler(t *testing.T) {
	startBinder(t, shared)
	applyManifest(t, shared, "rbac.yaml")
	token, err := shared.client.CoreV1().ServiceAccounts(metav1.NamespaceSystem).CreateToken(t.Context(), "pvbind-scheduler", &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	require.NoError(t, err)
	s := withPlugin(t, "rights")
	s.token = token.Status.Token
	process := s.start(t, shared)
	w := newWorld(t, shared, s.name, s.name)
	w.provision()
	w.create(w.class("local"), w.class("made", w.provisioned), w.node("n1"), w.disk("d1", "1Gi", "n1"),
		w.claim("data", "1Gi", "local"), w.claim("logs", "1Gi", "made"), w.pod("web", "data", "logs"))
	assert.Equal(t, "n1", w.scheduled("web"))
	assert.NotContains(t, process.Output(), "forbidden")
}

// What makes a pod run that was rejected: each within the back-off, for nobody looks again of himself within minutes.
func TestEventsWakeRejectedPods(t *testing.T) {
	startBinder(t, shared)
	s := withPlugin(t, "events")
	s.start(t, shared)
	w := newWorld(t, shared, s.name, s.name)
	w.provision()
	w.create(w.class("local"), w.class("made", w.provisioned), w.driver(), w.node("n1"), w.node("n2"), w.disk("away", "1Gi", "n3"))

	w.create(w.claim("a", "1Gi", "local"), w.pod("node", "a"))
	w.pendingFor("node", "2 node(s) didn't find available persistent volumes to bind")
	w.create(w.node("n3"))
	assert.Equal(t, "n3", w.scheduled("node"), "a node")

	w.create(w.claim("b", "1Gi", "local"), w.pod("volume", "b"))
	w.pendingFor("volume", "3 node(s) didn't find available persistent volumes to bind")
	w.create(w.disk("near", "1Gi", "n1"))
	assert.Equal(t, "n1", w.scheduled("volume"), "a volume")

	w.create(w.pod("claim", "c"))
	w.pendingFor("claim", `persistentvolumeclaim "c" not found`)
	w.create(w.disk("more", "1Gi", "n2"), w.claim("c", "1Gi", "local"))
	assert.Equal(t, "n2", w.scheduled("claim"), "a claim")

	w.create(w.claim("d", "5Gi", "made"), w.pod("capacity", "d"))
	w.pendingFor("capacity", "3 node(s) did not have enough free storage")
	w.create(w.capacity("n2", "10Gi"))
	assert.Equal(t, "n2", w.scheduled("capacity"), "a capacity")

	w.create(w.claim("e", "1Gi", "later"), w.pod("class", "e"))
	w.unschedulable("class")
	w.create(w.disk("late", "1Gi", "n2", func(v *corev1.PersistentVolume) { v.Spec.StorageClassName = w.of("later") }), w.class("later"))
	assert.Equal(t, "n2", w.scheduled("class"), "a class")
}

// A pod whose volume nobody makes gives up after a time and is tried again, with what it has got so far.
func TestBindTimeout(t *testing.T) {
	startBinder(t, shared)
	s := withPlugin(t, "timeout")
	s.config.Profiles[0].PluginConfig[0].Args.Raw = []byte(`{"bindTimeoutSeconds": 1}`)
	s.start(t, shared)
	w := newWorld(t, shared, s.name, s.name)
	w.create(w.class("made", w.provisioned), w.node("n1"), w.claim("logs", "1Gi", "made"), w.pod("web", "logs"))
	w.pendingFor("web", `running PreBind plugin "PVBind": waiting for a volume for pvc/timeout/logs: context deadline exceeded`)
	assert.Equal(t, w.of("n1"), w.storedClaim("logs").Annotations[storageclass.SelectedNodeAnnotation], "what was written stays")
	w.provision()
	assert.Equal(t, "n1", w.scheduled("web"))
}

// applyManifest creates what is in a manifest that tests have not created yet. Fields that do not exist are errors.
func applyManifest(t *testing.T, c cluster, name string) {
	t.Helper()
	for _, object := range manifest(t, "../manifests/"+name) {
		var err error
		switch object := object.(type) {
		case *corev1.ServiceAccount:
			_, err = c.client.CoreV1().ServiceAccounts(object.Namespace).Create(t.Context(), object, metav1.CreateOptions{})
		case *rbacv1.ClusterRoleBinding:
			_, err = c.client.RbacV1().ClusterRoleBindings().Create(t.Context(), object, metav1.CreateOptions{})
		case *rbacv1.RoleBinding:
			_, err = c.client.RbacV1().RoleBindings(object.Namespace).Create(t.Context(), object, metav1.CreateOptions{})
		default:
			require.Fail(t, "no case for it", "%T", object)
		}
		require.NoError(t, err)
	}
}
