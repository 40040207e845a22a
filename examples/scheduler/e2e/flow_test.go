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
	"github.com/pvbind/pvbind/examples/cluster/clustertest"
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
			objects := []obj.Object{w.Class("local"), w.Class("made", w.Provisioned)}
			for n := range nodes {
				objects = append(objects, w.Node(fmt.Sprintf("n%d", n)))
				for d := range disks {
					objects = append(objects, w.Disk(fmt.Sprintf("d%d-%d", n, d), fmt.Sprintf("%dGi", 1+d), fmt.Sprintf("n%d", n)))
				}
			}
			for p := range pods {
				one, more, made := fmt.Sprintf("one-%d", p), fmt.Sprintf("more-%d", p), fmt.Sprintf("made-%d", p)
				objects = append(objects, w.Claim(one, "1Gi", "local"), w.Claim(more, "2Gi", "local"), w.Claim(made, "3Gi", "made"))
				switch p % 4 {
				case 0:
					objects = append(objects, w.Pod(fmt.Sprintf("pod-%d", p)))
				case 1:
					objects = append(objects, w.Pod(fmt.Sprintf("pod-%d", p), one))
				case 2:
					objects = append(objects, w.Pod(fmt.Sprintf("pod-%d", p), one, more, made))
				case 3: // two share a claim
					objects = append(objects, w.Pod(fmt.Sprintf("pod-%d", p), one, more), w.Pod(fmt.Sprintf("too-%d", p), one))
				}
			}
			w.Create(objects...)
			clustertest.Eventually(t, func() bool {
				now := w.state()
				return len(now.pending()) == 0 && now.settled()
			}, "all pods run")
			for p := 3; p < pods; p += 4 {
				assert.Equal(t, w.Scheduled(fmt.Sprintf("pod-%d", p)), w.Scheduled(fmt.Sprintf("too-%d", p)), "they share a volume")
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
	w.Create(w.Class("local"), w.Class("made", w.Provisioned), w.Node("n1"), w.Disk("d1", "1Gi", "n1"),
		w.Claim("data", "1Gi", "local"), w.Claim("logs", "1Gi", "made"), w.Pod("web", "data", "logs"))
	assert.Equal(t, "n1", w.Scheduled("web"))
	assert.NotContains(t, process.Output(), "forbidden")
}

// What makes a pod run that was rejected: each within the back-off, for nobody looks again of himself within minutes.
func TestEventsWakeRejectedPods(t *testing.T) {
	startBinder(t, shared)
	s := withPlugin(t, "events")
	s.start(t, shared)
	w := newWorld(t, shared, s.name, s.name)
	w.provision()
	w.Create(w.Class("local"), w.Class("made", w.Provisioned), w.Driver(), w.Node("n1"), w.Node("n2"), w.Disk("away", "1Gi", "n3"))

	w.Create(w.Claim("a", "1Gi", "local"), w.Pod("node", "a"))
	w.PendingFor("node", "2 node(s) didn't find available persistent volumes to bind")
	w.Create(w.Node("n3"))
	assert.Equal(t, "n3", w.Scheduled("node"), "a node")

	w.Create(w.Claim("b", "1Gi", "local"), w.Pod("volume", "b"))
	w.PendingFor("volume", "3 node(s) didn't find available persistent volumes to bind")
	w.Create(w.Disk("near", "1Gi", "n1"))
	assert.Equal(t, "n1", w.Scheduled("volume"), "a volume")

	w.Create(w.Pod("claim", "c"))
	w.PendingFor("claim", `persistentvolumeclaim "c" not found`)
	w.Create(w.Disk("more", "1Gi", "n2"), w.Claim("c", "1Gi", "local"))
	assert.Equal(t, "n2", w.Scheduled("claim"), "a claim")

	w.Create(w.Claim("d", "5Gi", "made"), w.Pod("capacity", "d"))
	w.PendingFor("capacity", "3 node(s) did not have enough free storage")
	w.Create(w.Capacity("n2", "10Gi"))
	assert.Equal(t, "n2", w.Scheduled("capacity"), "a capacity")

	w.Create(w.Claim("e", "1Gi", "later"), w.Pod("class", "e"))
	w.Unschedulable("class")
	w.Create(w.Disk("late", "1Gi", "n2", func(v *corev1.PersistentVolume) { v.Spec.StorageClassName = w.Of("later") }), w.Class("later"))
	assert.Equal(t, "n2", w.Scheduled("class"), "a class")
}

// A pod whose volume nobody makes gives up after a time and is tried again, with what it has got so far.
func TestBindTimeout(t *testing.T) {
	startBinder(t, shared)
	s := withPlugin(t, "timeout")
	s.config.Profiles[0].PluginConfig[0].Args.Raw = []byte(`{"bindTimeoutSeconds": 1}`)
	s.start(t, shared)
	w := newWorld(t, shared, s.name, s.name)
	w.Create(w.Class("made", w.Provisioned), w.Node("n1"), w.Claim("logs", "1Gi", "made"), w.Pod("web", "logs"))
	w.PendingFor("web", `running PreBind plugin "PVBind": waiting for a volume for pvc/timeout/logs: context deadline exceeded`)
	assert.Equal(t, w.Of("n1"), w.StoredClaim("logs").Annotations[storageclass.SelectedNodeAnnotation], "what was written stays")
	w.provision()
	assert.Equal(t, "n1", w.Scheduled("web"))
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
