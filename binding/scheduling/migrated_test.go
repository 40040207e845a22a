package scheduling_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pvbind/pvbind/binding/decision"
	. "github.com/pvbind/pvbind/binding/internal/testkit"
	"github.com/pvbind/pvbind/binding/obj"
	"github.com/pvbind/pvbind/binding/scheduling"
)

const (
	gceZone      = "topology.gke.io/zone"
	zone         = corev1.LabelTopologyZone
	formerZone   = corev1.LabelFailureDomainBetaZone
	region       = corev1.LabelTopologyRegion
	formerRegion = corev1.LabelFailureDomainBetaRegion
)

// migratedNode is node-a in us-east-2, as the CSI drivers of three clouds label it.
func migratedNode() *corev1.Node {
	node := NodeIn("a")
	for _, key := range []string{gceZone, "topology.ebs.csi.aws.com/zone", "topology.cinder.csi.openstack.org/zone"} {
		node.Labels[key] = "us-east-2"
	}
	node.Labels[region] = "us"
	return node
}

func csiNode(plugins string) *storagev1.CSINode {
	return &storagev1.CSINode{ObjectMeta: metav1.ObjectMeta{Name: "node-a", Annotations: map[string]string{corev1.MigratedPluginsAnnotationKey: plugins}}}
}

func gcePD(v *corev1.PersistentVolume) {
	v.Spec.PersistentVolumeSource = corev1.PersistentVolumeSource{GCEPersistentDisk: &corev1.GCEPersistentDiskVolumeSource{PDName: "disk"}}
}

// inTree is a volume of a GCE PD that the claim is bound to.
func inTree(edits ...VolumeEdit) *corev1.PersistentVolume {
	return storedVolume("pv-a", append([]VolumeEdit{BoundToClaim, gcePD}, edits...)...)
}

func in(key string, values ...string) VolumeEdit {
	return Affine(Term(Require1(key, corev1.NodeSelectorOpIn, values...)))
}

// S3: the zone of an in-tree volume counts where its plugin is migrated.
func TestPlanPodMigrated(t *testing.T) {
	gce := csiNode("kubernetes.io/aws-ebs,kubernetes.io/gce-pd")
	here, there := Labelled(formerZone, "us-east-2"), Labelled(formerZone, "us-east-1")
	ebs := func(v *corev1.PersistentVolume) {
		v.Spec.PersistentVolumeSource = corev1.PersistentVolumeSource{AWSElasticBlockStore: &corev1.AWSElasticBlockStoreVolumeSource{VolumeID: "vol-1"}}
	}
	cinder := func(v *corev1.PersistentVolume) {
		v.Spec.PersistentVolumeSource = corev1.PersistentVolumeSource{Cinder: &corev1.CinderPersistentVolumeSource{VolumeID: "1"}}
	}
	nfs := func(v *corev1.PersistentVolume) {
		v.Spec.PersistentVolumeSource = corev1.PersistentVolumeSource{NFS: &corev1.NFSVolumeSource{}}
	}
	const conflict = "data VolumeElsewhere pv-a"
	for name, c := range map[string]struct {
		volume *corev1.PersistentVolume
		node   *storagev1.CSINode
		want   string
	}{
		"the node's zone":                     {inTree(here), gce, ""},
		"another zone":                        {inTree(there), gce, conflict},
		"another zone, today's label":         {inTree(Labelled(zone, "us-east-1")), gce, conflict},
		"today's label wins":                  {inTree(there, Labelled(zone, "us-east-2")), gce, ""},
		"one of several zones":                {inTree(Labelled(zone, "us-east-1__ us-east-2")), gce, ""},
		"none of several zones":               {inTree(Labelled(zone, "us-east-1__us-east-3")), gce, conflict},
		"an empty label":                      {inTree(Labelled(zone, "")), gce, ""},
		"no zone":                             {inTree(), gce, ""},
		"a node affinity wins over the label": {inTree(there, in(zone, "us-east-2")), gce, ""},
		"a node affinity to another zone":     {inTree(here, in(formerZone, "us-east-1")), gce, conflict},
		"and to something else":               {inTree(here, in("zone", "b")), gce, conflict},
		"or to something else":                {inTree(there, in("zone", "a")), gce, conflict},
		"outdated region":                     {inTree(in(formerZone, "us-east-2"), func(v *corev1.PersistentVolume) { alsoIn(v, formerRegion, "us") }), gce, ""},
		"another outdated region":             {inTree(in(formerZone, "us-east-2"), func(v *corev1.PersistentVolume) { alsoIn(v, formerRegion, "eu") }), gce, conflict},
		"not migrated":                        {inTree(there), csiNode("kubernetes.io/aws-ebs"), ""},
		"nothing is migrated":                 {inTree(there), csiNode(""), ""},
		"an unknown CSINode":                  {inTree(there), nil, ""},
		"not migrated, but a node affinity":   {inTree(here, in("zone", "b")), nil, conflict},
		"another plugin":                      {inTree(there, ebs), csiNode("kubernetes.io/gce-pd"), ""},
		"EBS":                                 {inTree(there, ebs), gce, conflict},
		"EBS in the zone":                     {inTree(here, ebs), gce, ""},
		"Cinder":                              {inTree(there, cinder), csiNode("kubernetes.io/cinder"), conflict},
		"not migratable":                      {inTree(there, nfs), gce, ""},
	} {
		t.Run(name, func(t *testing.T) {
			before := c.volume.DeepCopy()
			p := podPlanning(claimNamed("data", BoundTo("pv-a")), c.volume)
			if c.node != nil {
				p.objects = append(p.objects, c.node)
			}
			assert.Equal(t, c.want, planText(p.on(t, migratedNode())))
			assert.Equal(t, before, c.volume, "X6")
		})
	}
}

func alsoIn(volume *corev1.PersistentVolume, key string, values ...string) {
	term := &volume.Spec.NodeAffinity.Required.NodeSelectorTerms[0]
	term.MatchExpressions = append(term.MatchExpressions, Require1(key, corev1.NodeSelectorOpIn, values...))
}

// S3, S9: the reason says what the CSI driver requires.
func TestPlanPodMigratedReason(t *testing.T) {
	p := podPlanning(claimNamed("data", BoundTo("pv-a")), inTree(Labelled(zone, "us-east-1")), csiNode("kubernetes.io/gce-pd"))
	plan := p.on(t, migratedNode())
	require.Len(t, plan.Reasons, 1)
	assert.Equal(t, "the volume is for nodes with topology.gke.io/zone In [us-east-1]", plan.Reasons[0].Detail)
	assert.Equal(t, []scheduling.NodeReason{scheduling.NodeAffinityConflict}, plan.NodeReasons())
}

// S3, S8: as upstream, what is to be bound is looked at only when the plan is carried out, and here before anything is written.
func TestNextForPlanMigrated(t *testing.T) {
	free := func(v *corev1.PersistentVolume) { v.Spec.ClaimRef, v.Status.Phase = nil, corev1.VolumeAvailable }
	provisioned := RefersTo("default", "data", "uid-of-data")
	for name, c := range map[string]struct {
		volume *corev1.PersistentVolume
		claim  *corev1.PersistentVolumeClaim
		want   decision.ActionKind
	}{
		"to be bound in the zone":      {inTree(free, Labelled(zone, "us-east-2")), claimNamed("data"), decision.UpdateVolume},
		"to be bound in another zone":  {inTree(free, Labelled(zone, "us-east-1")), claimNamed("data"), scheduling.GiveUp},
		"that is bound in the zone":    {inTree(provisioned, Labelled(zone, "us-east-2")), claimNamed("data"), decision.Wait},
		"that is bound in another one": {inTree(provisioned, Labelled(zone, "us-east-1")), claimNamed("data"), scheduling.GiveUp},
	} {
		t.Run(name, func(t *testing.T) {
			p := podPlanning([]obj.Object{c.claim, c.volume, manualClass(), csiNode("kubernetes.io/gce-pd")}...)
			plan := p.on(t, migratedNode())
			require.True(t, plan.Fits())
			step, err := scheduling.NextForPlan(plan, p.view())
			require.NoError(t, err)
			assert.Equal(t, c.want, step.Kind)
		})
	}
}
