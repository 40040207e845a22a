package preview_test

import (
	"context"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/pvbind/pvbind/binding/bindingtest"
	"github.com/pvbind/pvbind/binding/decision"
	"github.com/pvbind/pvbind/binding/hooks"
	"github.com/pvbind/pvbind/binding/internal/testkit"
	"github.com/pvbind/pvbind/binding/obj"
	"github.com/pvbind/pvbind/binding/preview"
	"github.com/pvbind/pvbind/reclaim"
)

const (
	ours     = "example.com/dirs"
	external = "ebs.csi.aws.com"
)

// withHooks returns the rules of a controller that deletes what it provisions and hostPath volumes, and recycles those.
func withHooks() decision.Options {
	return decision.Options{Hooks: hooks.Names{
		Provisioners:   sets.New(ours),
		Deleters:       sets.New(ours),
		SourceDeleters: sets.New("hostPath"),
		Recyclers:      sets.New("hostPath"),
	}}
}

// previewCase is a cluster at rest, and what is done to it.
type previewCase struct {
	name    string
	rules   decision.Options
	objects []obj.Object
	deletes []string // "pv", "pvc", "pod" or "va": that of the test
	edit    volumeEdit
	want    string
}

func (s previewCase) changes(t testing.TB, objects []obj.Object) (changes []preview.Change) {
	if s.edit != nil {
		volume := find(t, objects, obj.KindVolume, "pv-1").(*corev1.PersistentVolume)
		s.edit(volume)
		changes = append(changes, preview.Update(volume))
	}
	for _, what := range s.deletes {
		switch what {
		case "pv":
			changes = append(changes, preview.Delete(find(t, objects, obj.KindVolume, "pv-1")))
		case "pvc":
			changes = append(changes, preview.Delete(find(t, objects, obj.KindClaim, "orders")))
		case "pod":
			changes = append(changes, preview.Delete(find(t, objects, obj.KindPod, "web")))
		case "va":
			changes = append(changes, preview.Delete(find(t, objects, obj.KindAttachment, "pv-1-n1")))
		}
	}
	return changes
}

// announced puts another controller's announcement on a volume.
func announced(volume *corev1.PersistentVolume) {
	recycles := volume.Spec.PersistentVolumeReclaimPolicy == corev1.PersistentVolumeReclaimRecycle
	reclaim.Announce(volume, reclaim.Announcement{By: "other", Token: 1, Seconds: 60, Recycles: recycles})
}

// deleterAnnounced puts another controller's announcement of a deleter on a volume.
func deleterAnnounced(volume *corev1.PersistentVolume) {
	reclaim.Announce(volume, reclaim.Announcement{By: "other", Token: 1, Seconds: 60})
}

func previewCases() []previewCase {
	pod := bindingtest.Pod("shop", "web", "node-1", "orders")
	idle := bindingtest.Pod("shop", "web", "", "orders")
	pair := func(edits ...volumeEdit) []obj.Object {
		return []obj.Object{volumeOf(edits...), claimOf()}
	}
	used := func(edits ...volumeEdit) []obj.Object { return append(pair(edits...), pod) }
	const gone = "pv/pv-1: Bound -> Released\npvc/shop/orders: Bound -> gone\n"
	return []previewCase{
		{name: "R7 nothing is done", objects: pair(), want: "nothing changes\n"},
		{name: "R2 Retain", objects: pair(policy("Retain")), deletes: []string{"pvc"},
			want: gone + "storage of pv/pv-1: Kept, with the data of shop/orders: its reclaim policy is Retain\n"},
		{name: "R3 an external provisioner", objects: pair(policy("Delete"), provisionedBy(external)), deletes: []string{"pvc"},
			want: gone + "storage of pv/pv-1: Deleted by ebs.csi.aws.com, with the data of shop/orders\n"},
		{name: "R1 a migrated one", objects: pair(policy("Delete"), provisionedBy("kubernetes.io/aws-ebs")), deletes: []string{"pvc"},
			want: gone + "storage of pv/pv-1: Deleted by ebs.csi.aws.com, with the data of shop/orders\n"},
		{name: "R1 R2 a migrated one, Retain", objects: pair(policy("Retain"), provisionedBy("kubernetes.io/aws-ebs")), deletes: []string{"pvc"},
			want: gone + "storage of pv/pv-1: Kept, with the data of shop/orders: its reclaim policy is Retain\n"},
		{name: "R3 ours", rules: withHooks(), objects: pair(policy("Delete"), provisionedBy(ours)), deletes: []string{"pvc"},
			want: "pv/pv-1: Bound -> gone\npvc/shop/orders: Bound -> gone\nstorage of pv/pv-1: Deleted by example.com/dirs, with the data of shop/orders\n"},
		{name: "R3 by source", rules: withHooks(), objects: pair(policy("Delete")), deletes: []string{"pvc"},
			want: "pv/pv-1: Bound -> gone\npvc/shop/orders: Bound -> gone\nstorage of pv/pv-1: Deleted by hostPath, with the data of shop/orders\n"},
		{name: "R3 ours, which is attached", rules: withHooks(), objects: attached(pair(policy("Delete"), provisionedBy(ours))), deletes: []string{"pvc"},
			want: gone + "storage of pv/pv-1: Deleted by example.com/dirs, with the data of shop/orders, once it is detached from node n1, n2\n"},
		{name: "R3 ours, and one of its attachments goes", rules: withHooks(), objects: attached(pair(policy("Delete"), provisionedBy(ours))), deletes: []string{"pvc", "va"},
			want: gone + "storage of pv/pv-1: Deleted by example.com/dirs, with the data of shop/orders, once it is detached from node n2\n"},
		{name: "R2 Retain, which is attached", rules: withHooks(), objects: attached(pair(policy("Retain"))), deletes: []string{"pvc"},
			want: gone + "storage of pv/pv-1: Kept, with the data of shop/orders: its reclaim policy is Retain\n"},
		{name: "R4 Recycle, which is attached", rules: withHooks(), objects: attached(pair(policy("Recycle"))), deletes: []string{"pvc"},
			want: gone + "storage of pv/pv-1: Scrubbed by hostPath, with the data of shop/orders, once it is detached from node n1, n2\n"},
		{name: "R8 R3 another controller has announced it", rules: withHooks(), objects: pair(policy("Delete")), edit: announced, deletes: []string{"pvc"},
			want: gone + "storage of pv/pv-1: Deleted by hostPath, with the data of shop/orders, once another is done: controller \"other\" has announced that it reclaims the storage, and may be at work until about 1970-01-01T00:01:00Z\n"},
		{name: "R8 R4 another controller has announced it", rules: withHooks(), objects: pair(policy("Recycle")), edit: announced, deletes: []string{"pvc"},
			want: gone + "storage of pv/pv-1: Scrubbed by hostPath, with the data of shop/orders, once another is done: controller \"other\" has announced that it reclaims the storage, and may be at work until about 1970-01-01T00:01:00Z\n"},
		{name: "R8 R4 another controller has announced its deleter", rules: withHooks(), objects: pair(policy("Recycle")), edit: deleterAnnounced, deletes: []string{"pvc"},
			want: gone + "storage of pv/pv-1: Kept, with the data of shop/orders: a deleter was announced for it, so that it may have no storage, and is not scrubbed\n"},
		{name: "R3 nobody deletes", objects: pair(policy("Delete")), deletes: []string{"pvc"},
			want: "pv/pv-1: Bound -> Failed\npvc/shop/orders: Bound -> gone\nstorage of pv/pv-1: Kept, with the data of shop/orders: no deleter for hostPath volumes is registered\n"},
		{name: "R4 Recycle", rules: withHooks(), objects: pair(policy("Recycle")), deletes: []string{"pvc"},
			want: "pv/pv-1: Bound -> Available\npvc/shop/orders: Bound -> gone\nstorage of pv/pv-1: Scrubbed by hostPath, with the data of shop/orders\n"},
		{name: "R4 Recycle, and a pod that is not scheduled waits for such a claim", rules: withHooks(), objects: append(pair(policy("Recycle")), idle), deletes: []string{"pvc"},
			want: gone + "storage of pv/pv-1: Kept, with the data of shop/orders: it is scrubbed once no pod uses it: pod/shop/web\n"},
		{name: "F2 a pod uses it", objects: used(policy("Delete"), provisionedBy(external)), deletes: []string{"pvc"},
			want: "pvc/shop/orders stays: held by kubernetes.io/pvc-protection, used by pod/shop/web\n"},
		{name: "F2 the pod goes too", objects: used(policy("Delete"), provisionedBy(external)), deletes: []string{"pvc", "pod"},
			want: gone + "storage of pv/pv-1: Deleted by ebs.csi.aws.com, with the data of shop/orders\n"},
		{name: "F2 the pod's ephemeral volume goes with it", objects: ephemeral(), deletes: []string{"pod"},
			want: "pv/pv-1: Bound -> Released\npvc/shop/web-data: Bound -> gone\nstorage of pv/pv-1: Deleted by ebs.csi.aws.com, with the data of shop/web-data\n"},
		{name: "F2 the pod's ephemeral volume, which another pod uses", objects: append(ephemeral(), bindingtest.Pod("shop", "other", "node-1", "web-data")), deletes: []string{"pod"},
			want: "pvc/shop/web-data stays: held by kubernetes.io/pvc-protection, used by pod/shop/other\n"},
		{name: "F3 the volume is bound", objects: pair(policy("Retain")), deletes: []string{"pv"},
			want: "pv/pv-1 stays: held by kubernetes.io/pv-protection, used by pvc/shop/orders\n"},
		{name: "F3 volume and claim, Retain", objects: pair(policy("Retain")), deletes: []string{"pv", "pvc"},
			want: "pv/pv-1: Bound -> gone\npvc/shop/orders: Bound -> gone\nstorage of pv/pv-1: Stranded, with the data of shop/orders: its volume is gone and nobody deletes it\n"},
		{name: "R3 volume and claim, the external provisioner's finalizer holds it", objects: pair(policy("Delete"), provisionedBy(external), volumeFinalizer(reclaim.ExternalFinalizer)), deletes: []string{"pv", "pvc"},
			want: gone + "storage of pv/pv-1: Deleted by ebs.csi.aws.com, with the data of shop/orders\npv/pv-1 stays: held by external-provisioner.volume.kubernetes.io/finalizer\n"},
		{name: "R7 keep it first", objects: pair(policy("Delete"), provisionedBy(external)), edit: policy("Retain"), deletes: []string{"pvc"},
			want: gone + "storage of pv/pv-1: Kept, with the data of shop/orders: its reclaim policy is Retain\n"},
		{name: "C10 a claimRef is given to another: the claim is lost", objects: pair(policy("Retain")), edit: func(v *corev1.PersistentVolume) {
			v.Spec.ClaimRef = &corev1.ObjectReference{Kind: "PersistentVolumeClaim", APIVersion: "v1", Namespace: "archive", Name: "orders"}
		}, want: "pv/pv-1: Bound -> Available\npvc/shop/orders: Bound -> Lost\n"},
		{name: "C1 what goes is free for another", rules: withHooks(), objects: append(pair(policy("Recycle")), bindingtest.Claim("shop", "waits", "5Gi")), deletes: []string{"pvc"},
			want: "pvc/shop/orders: Bound -> gone\npvc/shop/waits: Pending -> Bound\nstorage of pv/pv-1: Scrubbed by hostPath, with the data of shop/orders\n"},
	}
}

func TestOf(t *testing.T) {
	for _, test := range previewCases() {
		t.Run(test.name, func(t *testing.T) {
			cluster := atRest(t, decision.Options{}, test.objects...)
			objects := dump(t, cluster.Server)
			before := dump(t, cluster.Server)
			changes := test.changes(t, objects)
			outcome, err := preview.Of(t.Context(), preview.Cluster{Objects: objects, Options: test.rules}, changes...)
			require.NoError(t, err)
			assert.Equal(t, test.want, outcome.String())
			assert.True(t, outcome.Unsettled.Empty(), "it was at rest")
			assert.Equal(t, before, objects, "X6")

			slices.Reverse(objects)
			again, err := preview.Of(t.Context(), preview.Cluster{Objects: objects, Options: test.rules}, changes...)
			require.NoError(t, err)
			assert.Equal(t, outcome, again, "whatever their order")
		})
	}
}

// TestOfIsWhatHappens does what was previewed, and compares the phases.
func TestOfIsWhatHappens(t *testing.T) {
	for _, test := range previewCases() {
		t.Run(test.name, func(t *testing.T) {
			set := bindingtest.NewStorage().Hooks(ours, "hostPath")
			if test.rules.Hooks.Deleters == nil {
				set = hooks.Set{}
			}
			rules := decision.Options{Protection: decision.ProtectionOn}
			cluster := testkit.NewDrivenWith(bindingtest.DriverOptions{BindingOptions: rules, Hooks: set}, test.objects...)
			require.NoError(t, cluster.Settle(t.Context()))
			objects := dump(t, cluster.Server)
			outcome, err := preview.Of(t.Context(), preview.Cluster{Objects: objects, Options: test.rules}, test.changes(t, objects)...)
			require.NoError(t, err)

			was := phases(objects)
			test.act(t, cluster)
			require.NoError(t, cluster.Settle(t.Context()))
			_, err = cluster.CollectGarbage(t.Context())
			require.NoError(t, err)
			require.NoError(t, cluster.Settle(t.Context()))
			is := phases(dump(t, cluster.Server))
			for _, change := range outcome.Phases {
				assert.Equal(t, change.Before, was[change.Object], change.Object)
				was[change.Object] = change.After
				if change.After == "gone" {
					delete(was, change.Object)
				}
			}
			assert.Equal(t, is, was)
		})
	}
}

func phases(objects []obj.Object) map[string]string {
	found := map[string]string{}
	for _, object := range objects {
		key, _ := bindingtest.KeyOf(object)
		switch o := object.(type) {
		case *corev1.PersistentVolume:
			found[key.String()] = string(o.Status.Phase)
		case *corev1.PersistentVolumeClaim:
			found[key.String()] = string(o.Status.Phase)
		}
	}
	return found
}

// ephemeral returns a pod, and the claim and volume of its generic ephemeral volume.
func ephemeral() []obj.Object {
	web := bindingtest.Pod("shop", "web", "node-1")
	web.UID = "uid-of-web"
	web.Spec.Volumes = []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{Ephemeral: &corev1.EphemeralVolumeSource{}}}}
	claim := bindingtest.Claim("shop", "web-data", "5Gi")
	claim.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(web, corev1.SchemeGroupVersion.WithKind("Pod"))}
	return []obj.Object{web, claim, volumeOf(policy("Delete"), provisionedBy(external))}
}

// attached returns the objects, and two nodes that pv-1 is attached to.
func attached(objects []obj.Object) []obj.Object {
	return append(objects, bindingtest.Attachment("pv-1", "n2"), bindingtest.Attachment("pv-1", "n1"), bindingtest.Attachment("other", "n3"))
}

// act really does what the test says.
func (s previewCase) act(t *testing.T, cluster *testkit.Driven) {
	ctx := context.Background()
	if s.edit != nil {
		volume := cluster.Volume("pv-1")
		s.edit(volume)
		_, err := cluster.UpdateVolume(ctx, volume)
		require.NoError(t, err)
	}
	keys := map[string]obj.Key{"pv": obj.VolumeKey("pv-1"), "pvc": obj.ClaimKey("shop", "orders"), "pod": bindingtest.PodKey("shop", "web"), "va": bindingtest.AttachmentKey("pv-1-n1")}
	for _, what := range s.deletes {
		require.NoError(t, cluster.Delete(ctx, keys[what], metaDelete))
	}
}

// The storage of a Released volume waits for its last attachment alone.
func TestOfADetachment(t *testing.T) {
	released := bindingtest.Volume("pv-1", "5Gi", policy("Delete"), func(v *corev1.PersistentVolume) {
		v.UID, v.ResourceVersion, v.Status.Phase = "uid-1", "1", corev1.VolumeReleased
		v.Spec.ClaimRef = &corev1.ObjectReference{Namespace: "shop", Name: "orders", UID: "uid-9"}
	})
	attachment := bindingtest.Attachment("pv-1", "n1")
	cluster := preview.Cluster{Objects: []obj.Object{released, attachment}, Options: withHooks()}
	outcome, err := preview.Of(t.Context(), cluster)
	require.NoError(t, err)
	assert.Equal(t, "nothing changes\n", outcome.String(), "R3 it waits as it did before")
	outcome, err = preview.Of(t.Context(), cluster, preview.Delete(attachment))
	require.NoError(t, err)
	assert.Equal(t, "pv/pv-1: Released -> gone\nstorage of pv/pv-1: Deleted by hostPath, with the data of shop/orders\n", outcome.String(), "W5")
	kept := released.DeepCopy()
	kept.Spec.PersistentVolumeReclaimPolicy = "Retain"
	outcome, err = preview.Of(t.Context(), cluster, preview.Update(kept), preview.Delete(attachment))
	require.NoError(t, err)
	assert.Equal(t, "storage of pv/pv-1: Kept, with the data of shop/orders: its reclaim policy is Retain\n", outcome.String(), "R2")
}
