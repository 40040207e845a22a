package binding_test

import (
	"errors"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/pvbind/pvbind/binding"
	"github.com/pvbind/pvbind/binding/obj"
)

// FuzzNext asks both Next functions about objects in any state, malformed ones too, and does what they say on a
// Snapshot until there is no more to do: without a panic, without a change to what they are given (X6), and to
// an end (X8).
func FuzzNext(f *testing.F) {
	addSeeds(f, 400)
	f.Fuzz(func(t *testing.T, bytes []byte) {
		m := newMuddle(bytes)
		for step := 0; ; step++ {
			require.Less(t, step, 40, "X8: %s", m.done)
			before := m.copied()
			action, err := m.next()
			assert.True(t, equality.Semantic.DeepEqual(before, m.Snapshot), "X6: %s", action)
			var invalid *obj.InvalidError
			require.True(t, err == nil || errors.As(err, &invalid), "%v", err)
			if err != nil || !m.do(t, action) {
				break
			}
		}
	})
}

// muddle is a snapshot of objects in any state, and one of them to ask about.
type muddle struct {
	world
	binding.Snapshot
	rules binding.Rules
	claim bool
	done  []string
}

const ourProvisioner = "example.com/dirs"

func newMuddle(bytes []byte) *muddle {
	m := &muddle{world: world{rand.New(newChoices(bytes))}}
	for i := range m.IntN(4) {
		m.Volumes = append(m.Volumes, m.anyVolume("pv-"+strconv.Itoa(i)))
	}
	m.Volumes = append(m.Volumes, m.anyVolume("pvc-uid-1"))
	m.Claims = []*corev1.PersistentVolumeClaim{m.anyClaim()}
	m.Classes = []*storagev1.StorageClass{m.anyClass()}
	m.claim = m.rarely(2)
	if m.rarely(2) {
		m.rules.Protection = binding.ProtectionOn
	}
	if names := sets.New(ourProvisioner); !m.rarely(3) {
		sources := sets.New("hostPath")
		m.rules.Hooks = binding.HookNames{Provisioners: names, Deleters: names, SourceDeleters: sources, Recyclers: sources}
	}
	return m
}

func (m *muddle) meta(object obj.Object, annotations ...string) {
	object.SetResourceVersion("1")
	object.SetUID(pick(m.world, types.UID("uid-1"), "uid-1", "uid-1", "uid-2", ""))
	if m.rarely(4) {
		object.SetDeletionTimestamp(new(metav1.Unix(1_700_000_000, 0)))
	}
	marks := object.GetAnnotations()
	for _, annotation := range annotations {
		if m.rarely(2) {
			if marks == nil {
				marks = map[string]string{}
			}
			marks[annotation] = pick(m.world, "yes", "", ourProvisioner, "kubernetes.io/aws-ebs", "ebs.csi.aws.com")
		}
	}
	object.SetAnnotations(marks)
	for _, finalizer := range []string{"kubernetes.io/pvc-protection", "kubernetes.io/pv-protection", "kubernetes.io/pv-controller", binding.ProvisioningFinalizer} {
		if m.rarely(3) {
			object.SetFinalizers(append(object.GetFinalizers(), finalizer))
		}
	}
}

func (m *muddle) anyVolume(name string) *corev1.PersistentVolume {
	volume := m.volume(name)
	m.meta(volume, "pv.kubernetes.io/bound-by-controller", "pv.kubernetes.io/provisioned-by", "pv.kubernetes.io/migrated-to")
	volume.UID = types.UID("uid-" + name)
	volume.Spec.PersistentVolumeReclaimPolicy = pick(m.world, corev1.PersistentVolumeReclaimDelete, corev1.PersistentVolumeReclaimRetain,
		corev1.PersistentVolumeReclaimRecycle, "", "Burn")
	if m.rarely(2) {
		volume.Spec.HostPath = &corev1.HostPathVolumeSource{Path: "/a"}
	}
	if !m.rarely(3) {
		volume.Spec.ClaimRef = &corev1.ObjectReference{Namespace: "default", Name: pick(m.world, "data", "data", "logs"),
			UID: pick(m.world, types.UID("uid-1"), "uid-1", "uid-2", "")}
	}
	return volume
}

func (m *muddle) anyClaim() *corev1.PersistentVolumeClaim {
	claim := m.world.claim()
	m.meta(claim, "pv.kubernetes.io/bound-by-controller", "pv.kubernetes.io/bind-completed",
		"volume.kubernetes.io/storage-provisioner", "volume.beta.kubernetes.io/storage-provisioner", "volume.kubernetes.io/selected-node")
	claim.Spec.VolumeName = pick(m.world, "", "", "pv-0", "pvc-uid-1", "pv-9")
	claim.Status.Phase = pick(m.world, corev1.ClaimPending, corev1.ClaimBound, corev1.ClaimLost, "")
	return claim
}

func (m *muddle) anyClass() *storagev1.StorageClass {
	class := classWith(pick(m.world, nil, new(storagev1.VolumeBindingImmediate), new(storagev1.VolumeBindingWaitForFirstConsumer)))
	class.Provisioner = pick(m.world, ourProvisioner, ourProvisioner, "kubernetes.io/no-provisioner", "kubernetes.io/aws-ebs", "theirs.example.com")
	return class
}

func (m *muddle) copied() binding.Snapshot {
	copied := m.Snapshot
	copied.Volumes = copiesOf(m.Volumes)
	copied.Claims, copied.Classes = slices.Clone(m.Claims), slices.Clone(m.Classes)
	for i, claim := range m.Claims {
		copied.Claims[i] = claim.DeepCopy()
	}
	for i, class := range m.Classes {
		copied.Classes[i] = class.DeepCopy()
	}
	return copied
}

func (m *muddle) next() (binding.Action, error) {
	if m.claim {
		if len(m.Claims) > 0 {
			return binding.NextForClaim(m.Claims[0], m.Snapshot, m.rules)
		}
	} else if len(m.Volumes) > 0 {
		return binding.NextForVolume(m.Volumes[0], m.Snapshot, m.rules)
	}
	return binding.Action{}, nil
}

// do does what the action says as a server would, and reports whether there was anything to do.
func (m *muddle) do(t *testing.T, action binding.Action) bool {
	m.done = append(m.done, action.String())
	switch {
	case action.Kind == binding.Read:
		require.NotContains(t, m.Live, action.Key, "it was read")
		m.Live = append(m.Live, action.Key)
	case action.RunsHook():
		m.answer(action)
	case action.Writes():
		m.Live = nil
		m.write(t, action)
	default:
		return false
	}
	return true
}

func (m *muddle) answer(action binding.Action) {
	answer := binding.Answer{Of: action.Kind, Hook: action.Hook, Err: pick(m.world, nil, nil, errors.New("no"), error(&binding.HookError{Meaning: binding.HookInUse}))}
	switch {
	case action.Request != nil:
		answer.For = action.Request.Claim.UID
		answer.Volume = action.Request.Volume.DeepCopy()
		answer.Volume.Spec.HostPath = &corev1.HostPathVolumeSource{Path: "/a"}
	case action.Volume.UID != "":
		answer.For = action.Volume.UID
	default:
		answer.For = action.Volume.Spec.ClaimRef.UID
	}
	m.Answers = append(slices.Clone(m.Answers), answer)
}

func (m *muddle) write(t *testing.T, action binding.Action) {
	next := strconv.Itoa(len(m.done) + 1)
	gone := func(object metav1.Object) bool {
		return object.GetDeletionTimestamp() != nil && len(object.GetFinalizers()) == 0
	}
	if claim := action.Claim; claim != nil {
		require.Equal(t, m.Claims[0].ResourceVersion, claim.ResourceVersion, "B5")
		claim.ResourceVersion = next
		m.Claims = slices.DeleteFunc([]*corev1.PersistentVolumeClaim{claim}, func(c *corev1.PersistentVolumeClaim) bool { return gone(c) })
		return
	}
	volume := action.Volume.DeepCopy()
	at := slices.IndexFunc(m.Volumes, func(v *corev1.PersistentVolume) bool { return v.Name == volume.Name })
	volumes := slices.Clone(m.Volumes)
	switch {
	case action.Kind == binding.CreateVolume:
		require.Negative(t, at)
		volume.UID = "uid-new"
		volumes = append(volumes, volume)
	case action.Kind == binding.DeleteVolume:
		volume.DeletionTimestamp = new(metav1.Unix(1_700_000_000, 0))
		volumes[at] = volume
	default:
		require.Equal(t, volumes[at].ResourceVersion, volume.ResourceVersion, "B5")
		volumes[at] = volume
	}
	volume.ResourceVersion = next
	m.Volumes = slices.DeleteFunc(volumes, func(v *corev1.PersistentVolume) bool { return gone(v) })
}
