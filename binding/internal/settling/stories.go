package settling

import (
	"github.com/stretchr/testify/assert"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pvbind/pvbind/binding/bindingtest"
	"github.com/pvbind/pvbind/binding/internal/testkit"
	"github.com/pvbind/pvbind/binding/obj"
)

type story struct {
	name string
	tell func(*Story)
}

func stories() []story {
	return []story{
		{"a StatefulSet", aStatefulSet},
		{"what a driver makes", whatADriverMakes},
		{"deletion with policy Delete", deletionWithPolicyDelete},
		{"deletion with policy Retain", deletionWithPolicyRetain},
		{"a policy that is changed to Retain", changedToRetain},
		{"an attached volume", anAttachedVolume},
		{"a default class", aDefaultClass},
		{"the node of a pod is set", theNodeIsSet},
		{"the topology of a driver", theTopologyOfADriver},
		{"local volumes", localVolumes},
		{"generic ephemeral volumes", ephemeralVolumes},
		{"a migrated class", aMigratedClass},
		{"nobody serves the class", nobodyServesTheClass},
		{"no nodes", noNodes},
		{"pods left to others", podsLeft},
		{"twice", twice},
	}
}

// fast is a WaitForFirstConsumer class of a CSI driver.
func fast(edits ...func(*storagev1.StorageClass)) *storagev1.StorageClass {
	return testkit.ClassOf("fast", driver, append([]func(*storagev1.StorageClass){testkit.WaitsForFirstConsumer}, edits...)...)
}

func now(edits ...func(*storagev1.StorageClass)) *storagev1.StorageClass {
	return testkit.ClassOf("now", driver, edits...)
}

func aStatefulSet(s *Story) {
	s.create(fast(), zoned("n1", "a"), zoned("n2", "b"))
	s.create(statefulSet(2, "fast")...)
	s.bind()
	assert.Equal(s, "n1", s.nodeOf("db-0"))
	assert.Equal(s, "n2", s.nodeOf("db-1"), "the pods are spread")
	assertIn(s, s.volume("data-db-0"), corev1.LabelTopologyZone, "a")
	assertIn(s, s.volume("data-db-1"), corev1.LabelTopologyZone, "b")
}

func whatADriverMakes(s *Story) {
	s.create(now(func(c *storagev1.StorageClass) { c.MountOptions = []string{"noatime"} }))
	block := func(c *corev1.PersistentVolumeClaim) { c.Spec.VolumeMode = new(corev1.PersistentVolumeBlock) }
	s.create(claimOf("data", "now", testkit.RequestingModes(corev1.ReadWriteMany, corev1.ReadOnlyMany), block))
	s.bind()
	claim, volume := s.claim("data"), s.volume("data")
	assert.Equal(s, "pvc-"+string(claim.UID), volume.Name)
	assert.Equal(s, map[string]string{"pv.kubernetes.io/provisioned-by": driver}, volume.Annotations)
	assert.ElementsMatch(s, []string{"kubernetes.io/pv-protection", "external-provisioner.volume.kubernetes.io/finalizer"}, volume.Finalizers)
	assert.Equal(s, corev1.VolumeBound, volume.Status.Phase)
	assert.Equal(s, claim.UID, volume.Spec.ClaimRef.UID)
	volume.Spec.ClaimRef = nil
	assert.Equal(s, corev1.PersistentVolumeSpec{
		Capacity:                      claim.Spec.Resources.Requests,
		PersistentVolumeSource:        corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{Driver: driver, VolumeHandle: volume.Name}},
		AccessModes:                   claim.Spec.AccessModes,
		PersistentVolumeReclaimPolicy: corev1.PersistentVolumeReclaimDelete,
		StorageClassName:              "now",
		MountOptions:                  []string{"noatime"},
		VolumeMode:                    new(corev1.PersistentVolumeBlock),
	}, volume.Spec)
	assert.Equal(s, []string{"kubernetes.io/pvc-protection"}, claim.Finalizers)
	assert.Equal(s, claim.Spec.Resources.Requests, claim.Status.Capacity)
}

func deletionWithPolicyDelete(s *Story) {
	s.create(fast(), zoned("n1", "a"))
	s.create(statefulSet(1, "fast")...)
	s.bind()
	volume := s.claim("data-db-0").Spec.VolumeName
	assert.Len(s, s.options.Storage.Kept(), 1)
	s.delete(claimOf("data-db-0", "fast"))
	s.bind()
	assert.NotNil(s, s.claim("data-db-0").DeletionTimestamp, "F2 its pod is there")
	s.delete(bindingtest.Pod(namespace, "db-0", ""))
	s.bind()
	assert.Nil(s, s.claim("data-db-0"))
	assert.Nil(s, s.volumeNamed(volume))
	assert.Empty(s, s.options.Storage.Kept())
}

func deletionWithPolicyRetain(s *Story) {
	s.create(now(func(c *storagev1.StorageClass) { c.ReclaimPolicy = new(corev1.PersistentVolumeReclaimRetain) }), claimOf("data", "now"))
	s.bind()
	volume := s.claim("data").Spec.VolumeName
	s.delete(claimOf("data", "now"))
	s.bind()
	assert.Nil(s, s.claim("data"))
	assert.Equal(s, corev1.VolumeReleased, s.volumeNamed(volume).Status.Phase)
	s.delete(bindingtest.Volume(volume, "1Gi"))
	s.bind()
	assert.Nil(s, s.volumeNamed(volume))
	assert.Len(s, s.options.Storage.Kept(), 1, "nobody deletes what is retained")
}

func changedToRetain(s *Story) {
	s.create(now(), claimOf("data", "now"))
	s.bind()
	volume := s.volume("data")
	edit(s, volume, func(v *corev1.PersistentVolume) {
		v.Spec.PersistentVolumeReclaimPolicy = corev1.PersistentVolumeReclaimRetain
	})
	s.delete(claimOf("data", "now"))
	s.bind()
	assert.NotContains(s, s.volumeNamed(volume.Name).Finalizers, "external-provisioner.volume.kubernetes.io/finalizer")
	s.delete(volume)
	s.bind()
	assert.Nil(s, s.volumeNamed(volume.Name))
	assert.Len(s, s.options.Storage.Kept(), 1)
}

func anAttachedVolume(s *Story) {
	s.create(now(), claimOf("data", "now"))
	s.bind()
	volume := s.claim("data").Spec.VolumeName
	s.create(bindingtest.Attachment(volume, "n1"))
	s.delete(claimOf("data", "now"))
	s.bind()
	assert.Equal(s, corev1.VolumeReleased, s.volumeNamed(volume).Status.Phase)
	assert.Len(s, s.options.Storage.Kept(), 1)
	s.delete(bindingtest.Attachment(volume, "n1"))
	s.bind()
	assert.Nil(s, s.volumeNamed(volume))
	assert.Empty(s, s.options.Storage.Kept())
}

func aDefaultClass(s *Story) {
	s.create(now(testkit.DefaultClass), bindingtest.Claim(namespace, "data", "1Gi"), bindingtest.Claim(namespace, "static", "1Gi", testkit.RequestingClass(new(""))))
	outcome := s.settle()
	assert.Equal(s, driver, s.volume("data").Spec.CSI.Driver)
	assert.Equal(s, "now", *s.claim("data").Spec.StorageClassName, "C2")
	assert.Len(s, outcome.Unbound, 1)
	assert.Equal(s, obj.ClaimKey(namespace, "static"), outcome.Unbound[0].Claim)
	assert.Equal(s, corev1.ClaimPending, s.claim("static").Status.Phase)
}

func theNodeIsSet(s *Story) {
	s.create(fast(), zoned("n1", "a"), claimOf("there", "fast"), claimOf("nowhere", "fast"))
	s.create(bindingtest.Pod(namespace, "a", "n1", "there"), bindingtest.Pod(namespace, "b", "n9", "nowhere"))
	s.bind()
	assertIn(s, s.volume("there"), corev1.LabelTopologyZone, "a")
	assertIn(s, s.volume("nowhere"), corev1.LabelHostname, "n9")
}

func theTopologyOfADriver(s *Story) {
	csiNode := &storagev1.CSINode{ObjectMeta: metav1.ObjectMeta{Name: "n1"}, Spec: storagev1.CSINodeSpec{Drivers: []storagev1.CSINodeDriver{
		{Name: driver, NodeID: "1", TopologyKeys: []string{"csi.example.com/row"}}, {Name: "anywhere.example.com", NodeID: "1"}}}}
	node := zoned("n1", "a")
	node.Labels["csi.example.com/row"] = "r7"
	s.create(fast(), testkit.ClassOf("anywhere", "anywhere.example.com", testkit.WaitsForFirstConsumer), node, csiNode)
	s.create(claimOf("in-a-row", "fast"), claimOf("free", "anywhere"), bindingtest.Pod(namespace, "p", "", "in-a-row", "free"))
	s.bind()
	assertIn(s, s.volume("in-a-row"), "csi.example.com/row", "r7")
	assert.Nil(s, s.volume("free").Spec.NodeAffinity, "its driver has no topology")
}

func localVolumes(s *Story) {
	s.create(bindingtest.Class("local", testkit.WaitsForFirstConsumer), zoned("n1", "a"), zoned("n2", "b"))
	onDisk := func(v *corev1.PersistentVolume) {
		v.Spec.PersistentVolumeSource = corev1.PersistentVolumeSource{Local: &corev1.LocalVolumeSource{Path: "/mnt/disk"}}
	}
	for _, node := range []string{"n1", "n2"} {
		s.create(bindingtest.Volume("disk-"+node, "10Gi", testkit.OfClass("local"), onDisk, testkit.Affine(testkit.Term(testkit.Require1(corev1.LabelHostname, corev1.NodeSelectorOpIn, node)))))
	}
	onN2 := bindingtest.Pod(namespace, "p", "", "first")
	onN2.Spec.NodeSelector = map[string]string{corev1.LabelTopologyZone: "b"}
	s.create(claimOf("first", "local"), claimOf("second", "local"), claimOf("third", "local"))
	s.create(onN2, bindingtest.Pod(namespace, "q", "", "second"), bindingtest.Pod(namespace, "r", "", "third"))
	outcome := s.settle()
	assert.Equal(s, "disk-n2", s.claim("first").Spec.VolumeName)
	assert.Equal(s, "n2", s.nodeOf("p"))
	assert.Equal(s, "disk-n1", s.claim("second").Spec.VolumeName)
	assert.Equal(s, "n1", s.nodeOf("q"))
	assert.Equal(s, `pvc/default/third: waiting for its pods to be scheduled: r: 0/2 volumes fit: 2 BoundToAnotherClaim
pod/default/r: 0/2 nodes are available: 2 node(s) didn't find available persistent volumes to bind. On n1: pvc/default/third: NoVolume: class local provisions none; 0/2 volumes fit: 2 BoundToAnotherClaim`, outcome.String())
	assert.Equal(s, corev1.ClaimPending, s.claim("third").Status.Phase)
}

func ephemeralVolumes(s *Story) {
	pod := func(name string) *corev1.Pod {
		template := &corev1.PersistentVolumeClaimTemplate{Spec: claimOf("", "fast").Spec, ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "x"}}}
		pod := bindingtest.Pod(namespace, name, "")
		pod.Spec.Volumes = []corev1.Volume{{Name: "scratch", VolumeSource: corev1.VolumeSource{Ephemeral: &corev1.EphemeralVolumeSource{VolumeClaimTemplate: template}}}}
		return pod
	}
	s.create(fast(), zoned("n1", "a"), pod("web"), pod("taken"), claimOf("taken-scratch", "fast"))
	outcome := s.settle()
	made := s.claim("web-scratch")
	assert.Equal(s, corev1.ClaimBound, made.Status.Phase)
	assert.True(s, metav1.IsControlledBy(made, get(s, pod("web"))))
	assert.Equal(s, "x", made.Labels["app"])
	assert.Equal(s, "n1", s.nodeOf("web"))
	assert.Contains(s, outcome.String(), "pod/default/taken: pvc/default/taken-scratch: metadata.ownerReferences: does not name pod/default/taken", "S1")
}

func aMigratedClass(s *Story) {
	s.create(testkit.ClassOf("old", "kubernetes.io/aws-ebs"), claimOf("data", "old"))
	s.bind()
	assert.Equal(s, "ebs.csi.aws.com", s.volume("data").Spec.CSI.Driver)
}

func nobodyServesTheClass(s *Story) {
	s.options.Provisioners = []string{"other.example.com"}
	s.create(now(), bindingtest.Class("manual"), testkit.ClassOf("gone", "kubernetes.io/glusterfs"))
	s.create(claimOf("a", "absent"), claimOf("b", "manual"), claimOf("c", "now"), claimOf("d", "gone"))
	assert.Equal(s, `pvc/default/a: no volume fits, and the storage class "absent" that could provision one does not exist: 0/0 volumes fit: there are none
pvc/default/b: no volume fits, and the storage class "manual" provisions none (provisioner "kubernetes.io/no-provisioner"): 0/0 volumes fit: there are none
pvc/default/c: waiting for the provisioner "csi.example.com" to make a volume for the claim, or for an administrator to reserve one that fits (claimRef with namespace and name): 0/0 volumes fit: there are none; SettleOptions.Provisioners leaves csi.example.com to somebody else
pvc/default/d: no volume fits, and the in-tree provisioner "kubernetes.io/glusterfs" of storage class "gone" does not exist any more: 0/0 volumes fit: there are none`,
		s.settle().String())
	assert.Equal(s, corev1.ClaimPending, s.claim("a").Status.Phase)
	s.options.Provisioners = nil
	assert.Len(s, s.settle().Unbound, 3)
}

func noNodes(s *Story) {
	s.create(fast())
	s.create(statefulSet(1, "fast")...)
	assert.Equal(s, `pvc/default/data-db-0: waiting for its pods to be scheduled: db-0: 0/0 volumes fit: there are none
pod/default/db-0: there are no nodes: create one, or set the pod's nodeName`, s.settle().String())
	s.create(zoned("n1", "a"))
	s.bind()
}

func podsLeft(s *Story) {
	s.options.Pods = bindingtest.PodsLeft
	s.create(fast(), zoned("n1", "a"), now(), claimOf("ready", "now"), bindingtest.Pod(namespace, "p", "", "ready"))
	s.bind()
	assert.Empty(s, s.nodeOf("p"))
	s.create(statefulSet(1, "fast")...)
	assert.Equal(s, "pvc/default/data-db-0: waiting for its pods to be scheduled: db-0: 0/1 volumes fit: 1 BoundToAnotherClaim", s.settle().String())
}

func twice(s *Story) {
	s.create(fast(), zoned("n1", "a"))
	s.create(statefulSet(1, "fast")...)
	s.bind()
	claim, volume := s.claim("data-db-0"), s.volume("data-db-0")
	s.bind()
	assert.Equal(s, claim.ResourceVersion, s.claim("data-db-0").ResourceVersion, "X8 nothing is written")
	assert.Equal(s, volume.ResourceVersion, s.volume("data-db-0").ResourceVersion, "X8 nothing is written")
}
