package e2e

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	configv1 "k8s.io/kube-scheduler/config/v1"
	"sigs.k8s.io/yaml"

	"github.com/pvbind/pvbind/binding/obj"
	"github.com/pvbind/pvbind/binding/schedulerplugin"
	"github.com/pvbind/pvbind/examples/cluster/clustertest"
)

// Each pod is there twice: for kube-scheduler as it comes, and for the one with the plugin. Both say the same.
func TestReasonsAreKubeSchedulers(t *testing.T) {
	startBinder(t, shared)
	ours, theirs := withPlugin(t, "with-plugin"), asItComes("as-it-comes")
	ours.start(t, shared)
	theirs.start(t, shared)
	w := newWorld(t, shared, "reasons", "")
	immediate := func(class *storagev1.StorageClass) {
		class.Provisioner, class.VolumeBindingMode = w.Disks(), new(storagev1.VolumeBindingImmediate)
	}
	w.Create(
		w.Class("local"), w.Class("made", w.Provisioned), w.Class("at-once", immediate), w.Driver(), w.Node("n1"), w.Node("n2"), w.Node("n3"),
		w.Class("zonal", w.Provisioned, func(class *storagev1.StorageClass) {
			class.AllowedTopologies = []corev1.TopologySelectorTerm{{MatchLabelExpressions: []corev1.TopologySelectorLabelRequirement{
				{Key: corev1.LabelTopologyZone, Values: []string{"elsewhere"}}}}}
		}),
		w.Disk("d1", "5Gi", "n1"), w.Disk("gone", "7Gi", "n4"), w.Disk("held", "1Gi", "n4", func(v *corev1.PersistentVolume) {
			v.Spec.ClaimRef = &corev1.ObjectReference{Namespace: w.Namespace, Name: "held"}
		}),
		w.Capacity("n2", "2Gi"),
		w.Claim("large", "6Gi", "local"), w.Claim("fits", "1Gi", "local"), w.Claim("dynamic", "4Gi", "made"), w.Claim("elsewhere", "1Gi", "zonal"),
		w.Claim("at-once", "1Gi", "at-once"), w.Claim("classless", "1Gi", "nowhere"),
		w.Claim("held", "1Gi", "local", func(c *corev1.PersistentVolumeClaim) { c.Spec.VolumeName = w.Of("held") }),
		w.Claim("deleted", "1Gi", "local", func(c *corev1.PersistentVolumeClaim) { c.Finalizers = []string{"example.com/keep"} }),
		w.Claim("lost", "1Gi", "local", func(c *corev1.PersistentVolumeClaim) {
			c.Spec.VolumeName, c.Annotations = w.Of("never"), map[string]string{"pv.kubernetes.io/bind-completed": "yes"}
		}),
		w.Claim("others", "1Gi", "local"),
	)
	require.NoError(t, w.Client.CoreV1().PersistentVolumeClaims(w.Namespace).Delete(t.Context(), "deleted", metav1.DeleteOptions{}))
	for claim, phase := range map[string]corev1.PersistentVolumeClaimPhase{"held": corev1.ClaimBound, "lost": corev1.ClaimLost} {
		clustertest.Eventually(t, func() bool { return w.StoredClaim(claim).Status.Phase == phase }, "%s is %s", claim, phase)
	}
	for name, claims := range map[string][]string{
		"too-large":            {"large"},
		"no-capacity":          {"dynamic"},
		"no-topology":          {"elsewhere"},
		"fits-but-not-another": {"fits", "large"},
		"static-and-dynamic":   {"large", "dynamic"},
		"one-here-one-made":    {"fits", "dynamic"},
		"bound-elsewhere":      {"held"},
		"bound-and-too-large":  {"held", "large"},
		"bound-and-dynamic":    {"held", "dynamic"},
		"immediate":            {"at-once"},
		"immediate-and-large":  {"large", "at-once"},
		"no-class":             {"classless"},
		"being-deleted":        {"deleted"},
		"lost":                 {"lost"},
		"lost-and-large":       {"large", "lost"},
		"missing":              {"missing"},
		"large-and-missing":    {"large", "missing"},
	} {
		say := map[string]string{}
		for _, scheduler := range []string{ours.name, theirs.name} {
			pod := w.Pod(name+"-for-"+scheduler, claims...)
			pod.Spec.SchedulerName = scheduler
			w.Create(pod)
			say[scheduler] = w.Unschedulable(pod.Name)
		}
		assert.Equal(t, say[theirs.name], say[ours.name], name)
		t.Logf("%s: %s", name, say[ours.name])
	}
	ephemeral(w, ours.name, theirs.name)
}

// Where several plugins reject a pod, the first is heard: PVBind is in the place of VolumeBinding among them.
func TestTheProfileKeepsTheOrderOfPlugins(t *testing.T) {
	ours, theirs := order(t, withPlugin(t, "order")), order(t, asItComes("order"))
	at := slices.IndexFunc(theirs, func(plugin configv1.Plugin) bool { return plugin.Name == "VolumeBinding" })
	theirs[at].Name = schedulerplugin.Name
	assert.Equal(t, theirs, ours)
}

// order returns the plugins of a scheduler in the order in which it calls them, but for those that reject nothing, and one that comes
// with a feature gate.
func order(t *testing.T, s *scheduler) (plugins []configv1.Plugin) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "written.yaml")
	s.flags = []string{"--write-config-to", file}
	<-s.start(t, shared).Done()
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	var config configv1.KubeSchedulerConfiguration
	require.NoError(t, yaml.Unmarshal(text, &config))
	for _, plugin := range config.Profiles[0].Plugins.MultiPoint.Enabled {
		switch plugin.Name {
		case "NodeResourcesBalancedAllocation", "ImageLocality", "DefaultBinder", "NodeDeclaredFeatures":
		default:
			plugins = append(plugins, plugin)
		}
	}
	return plugins
}

// ephemeral has a claim that is to be made for the pod, and nobody makes it; and one that somebody else has made.
func ephemeral(w *world, ours, theirs string) {
	w.Helper()
	for taken, why := range map[string]string{"": "waiting for ephemeral volume controller", "others": "pod is not owner"} {
		var say []string
		for _, scheduler := range []string{ours, theirs} {
			pod := w.Pod(strings.TrimSuffix("ephemeral-"+scheduler+"-"+taken, "-"), "data")
			pod.Spec.SchedulerName = scheduler
			template := w.Claim("data", "1Gi", "local").Spec
			pod.Spec.Volumes[0].VolumeSource = corev1.VolumeSource{Ephemeral: &corev1.EphemeralVolumeSource{VolumeClaimTemplate: &corev1.PersistentVolumeClaimTemplate{Spec: template}}}
			var objects []obj.Object
			if taken != "" {
				objects = append(objects, w.Claim(pod.Name+"-"+pod.Spec.Volumes[0].Name, "1Gi", "local"))
			}
			w.Create(objects...)
			_, err := w.Client.CoreV1().Pods(w.Namespace).Create(context.Background(), pod, metav1.CreateOptions{})
			require.NoError(w, err)
			w.PendingFor(pod.Name, why) // it may not have seen the claim before the pod
			say = append(say, strings.ReplaceAll(w.Unschedulable(pod.Name), scheduler, "SCHEDULER"))
		}
		assert.Equal(w, say[1], say[0])
		w.Logf("ephemeral %s: %s", taken, say[0])
	}
}
