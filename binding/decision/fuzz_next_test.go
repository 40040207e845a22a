package decision_test

import (
	"errors"
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

	"github.com/pvbind/pvbind/binding/decision"
	"github.com/pvbind/pvbind/binding/hooks"
	. "github.com/pvbind/pvbind/binding/internal/testkit"
	"github.com/pvbind/pvbind/binding/obj"
)

// FuzzNext asks both Next functions about objects in any state, malformed ones too, and does what they say on a
// Snapshot until there is no more to do: without a panic, without a change to what they are given (X6), and to
// an end (X8).
func FuzzNext(f *testing.F) {
	AddSeeds(f, 400)
	f.Fuzz(func(t *testing.T, bytes []byte) {
		m := newRandomState(bytes)
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

// randomState is a snapshot of objects in any state, and one of them to ask about.
type randomState struct {
	World
	decision.Snapshot
	options decision.Options
	claim   bool
	done    []string
}

const ourProvisioner = "example.com/dirs"

func newRandomState(bytes []byte) *randomState {
	m := &randomState{World: NewWorld(NewChoices(bytes))}
	for i := range m.IntN(4) {
		m.Volumes = append(m.Volumes, m.anyVolume("pv-"+strconv.Itoa(i)))
	}
	m.Volumes = append(m.Volumes, m.anyVolume("pvc-uid-1"))
	m.Claims = []*corev1.PersistentVolumeClaim{m.anyClaim()}
	m.Classes = []*storagev1.StorageClass{m.anyClass()}
	m.claim = m.Rarely(2)
	if m.Rarely(2) {
		m.options.Protection = decision.ProtectionOn
	}
	if names := sets.New(ourProvisioner); !m.Rarely(3) {
		sources := sets.New("hostPath")
		m.options.Hooks = hooks.Names{Provisioners: names, Deleters: names, SourceDeleters: sources, Recyclers: sources}
	}
	return m
}

func (m *randomState) meta(object obj.Object, annotations ...string) {
	object.SetResourceVersion("1")
	object.SetUID(Pick(m.World, types.UID("uid-1"), "uid-1", "uid-1", "uid-2", ""))
	if m.Rarely(4) {
		object.SetDeletionTimestamp(new(metav1.Unix(1_700_000_000, 0)))
	}
	marks := object.GetAnnotations()
	for _, annotation := range annotations {
		if m.Rarely(2) {
			if marks == nil {
				marks = map[string]string{}
			}
			marks[annotation] = Pick(m.World, "yes", "", ourProvisioner, "kubernetes.io/aws-ebs", "ebs.csi.aws.com")
		}
	}
	object.SetAnnotations(marks)
	for _, finalizer := range []string{"kubernetes.io/pvc-protection", "kubernetes.io/pv-protection", "kubernetes.io/pv-controller", decision.ProvisioningFinalizer} {
		if m.Rarely(3) {
			object.SetFinalizers(append(object.GetFinalizers(), finalizer))
		}
	}
}

func (m *randomState) anyVolume(name string) *corev1.PersistentVolume {
	volume := m.World.Volume(name)
	m.meta(volume, "pv.kubernetes.io/bound-by-controller", "pv.kubernetes.io/provisioned-by", "pv.kubernetes.io/migrated-to")
	volume.UID = types.UID("uid-" + name)
	volume.Spec.PersistentVolumeReclaimPolicy = Pick(m.World, corev1.PersistentVolumeReclaimDelete, corev1.PersistentVolumeReclaimRetain,
		corev1.PersistentVolumeReclaimRecycle, "", "Burn")
	if m.Rarely(2) {
		volume.Spec.HostPath = &corev1.HostPathVolumeSource{Path: "/a"}
	}
	if !m.Rarely(3) {
		volume.Spec.ClaimRef = &corev1.ObjectReference{Namespace: "default", Name: Pick(m.World, "data", "data", "logs"),
			UID: Pick(m.World, types.UID("uid-1"), "uid-1", "uid-2", "")}
	}
	return volume
}

func (m *randomState) anyClaim() *corev1.PersistentVolumeClaim {
	claim := m.World.Claim()
	m.meta(claim, "pv.kubernetes.io/bound-by-controller", "pv.kubernetes.io/bind-completed",
		"volume.kubernetes.io/storage-provisioner", "volume.beta.kubernetes.io/storage-provisioner", "volume.kubernetes.io/selected-node")
	claim.Spec.VolumeName = Pick(m.World, "", "", "pv-0", "pvc-uid-1", "pv-9")
	claim.Status.Phase = Pick(m.World, corev1.ClaimPending, corev1.ClaimBound, corev1.ClaimLost, "")
	return claim
}

func (m *randomState) anyClass() *storagev1.StorageClass {
	class := ClassWith(Pick(m.World, nil, new(storagev1.VolumeBindingImmediate), new(storagev1.VolumeBindingWaitForFirstConsumer)))
	class.Provisioner = Pick(m.World, ourProvisioner, ourProvisioner, "kubernetes.io/no-provisioner", "kubernetes.io/aws-ebs", "theirs.example.com")
	return class
}

func (m *randomState) copied() decision.Snapshot {
	copied := m.Snapshot
	copied.Volumes = CopiesOf(m.Volumes)
	copied.Claims, copied.Classes = slices.Clone(m.Claims), slices.Clone(m.Classes)
	for i, claim := range m.Claims {
		copied.Claims[i] = claim.DeepCopy()
	}
	for i, class := range m.Classes {
		copied.Classes[i] = class.DeepCopy()
	}
	return copied
}

func (m *randomState) next() (decision.Action, error) {
	if m.claim {
		if len(m.Claims) > 0 {
			return decision.NextForClaim(m.Claims[0], m.Snapshot, m.options)
		}
	} else if len(m.Volumes) > 0 {
		return decision.NextForVolume(m.Volumes[0], m.Snapshot, m.options)
	}
	return decision.Action{}, nil
}

// do does what the action says as a server would, and reports whether there was anything to do.
func (m *randomState) do(t *testing.T, action decision.Action) bool {
	m.done = append(m.done, action.String())
	switch {
	case action.Kind == decision.Read:
		require.NotContains(t, m.LiveReads, action.Key, "it was read")
		m.LiveReads = append(m.LiveReads, action.Key)
	case action.RunsHook():
		m.answer(action)
	case action.Writes():
		m.LiveReads = nil
		m.write(t, action)
	default:
		return false
	}
	return true
}

func (m *randomState) answer(action decision.Action) {
	answer := decision.Answer{Of: action.Kind, Hook: action.Hook, Err: Pick(m.World, nil, nil, errors.New("no"), error(&hooks.Error{Meaning: hooks.InUse}))}
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

func (m *randomState) write(t *testing.T, action decision.Action) {
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
	case action.Kind == decision.CreateVolume:
		require.Negative(t, at)
		volume.UID = "uid-new"
		volumes = append(volumes, volume)
	case action.Kind == decision.DeleteVolume:
		volume.DeletionTimestamp = new(metav1.Unix(1_700_000_000, 0))
		volumes[at] = volume
	default:
		require.Equal(t, volumes[at].ResourceVersion, volume.ResourceVersion, "B5")
		volumes[at] = volume
	}
	volume.ResourceVersion = next
	m.Volumes = slices.DeleteFunc(volumes, func(v *corev1.PersistentVolume) bool { return gone(v) })
}
