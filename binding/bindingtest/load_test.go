package bindingtest_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pvbind/pvbind/binding/bindingtest"
	"github.com/pvbind/pvbind/binding/bindingtest/internal/must"
	"github.com/pvbind/pvbind/binding/obj"
)

func TestLoadTakesObjectsAsTheyStand(t *testing.T) {
	created, deleted := metav1.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC), metav1.Date(2030, 1, 3, 0, 0, 0, 0, time.UTC)
	volume := bindingtest.Volume("a", "1Gi", func(v pv) {
		v.UID, v.ResourceVersion = "9b2c", "4711"
		v.CreationTimestamp, v.DeletionTimestamp = created, &deleted
		v.Finalizers = []string{"example.com/mine"}
		v.Status.Phase = corev1.VolumeReleased
		v.Spec.AccessModes = nil // the API would refuse it
	})
	server := bindingtest.NewServer()
	require.NoError(t, server.Load(volume))
	assert.Equal(t, volume, server.Volume("a"), "nothing is defaulted or admitted")

	later := must.Create(t, server, bindingtest.Volume("b", "1Gi"))
	assert.Equal(t, "4712", later.ResourceVersion, "versions go on above the highest")
	assert.True(t, later.CreationTimestamp.After(created.Time), "the clock goes on after the latest")
	assert.Equal(t, "load pv/a", server.Calls()[0].String())
}

func TestLoadFillsInWhatIsMissing(t *testing.T) {
	server := bindingtest.NewServer()
	opaque := bindingtest.Volume("c", "1Gi", func(v pv) { v.ResourceVersion = "opaque" })
	require.NoError(t, server.Load(bindingtest.Volume("a", "1Gi"), bindingtest.Volume("b", "1Gi"), opaque))
	a, b, c := server.Volume("a"), server.Volume("b"), server.Volume("c")
	assert.NotEmpty(t, a.UID)
	assert.NotEqual(t, a.UID, b.UID)
	assert.NotEqual(t, a.ResourceVersion, b.ResourceVersion)
	assert.Regexp(t, `^\d+$`, c.ResourceVersion)
}

func TestLoadedUIDsAreNotGivenAgain(t *testing.T) {
	first := bindingtest.NewServer()
	dumped := must.Create(t, first, bindingtest.Volume("a", "1Gi"))
	second := bindingtest.NewServer()
	require.NoError(t, second.Load(dumped))
	assert.NotEqual(t, dumped.UID, must.Create(t, second, bindingtest.Volume("b", "1Gi")).UID)
}

func TestLoadRefuses(t *testing.T) {
	server := bindingtest.NewServer()
	require.NoError(t, server.Load(bindingtest.Volume("a", "1Gi")))
	for name, objects := range map[string][]obj.Object{
		"no name":       {bindingtest.Volume("", "1Gi")},
		"unknown kind":  {&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "s"}}},
		"given twice":   {bindingtest.Volume("b", "1Gi"), bindingtest.Volume("b", "1Gi")},
		"there already": {bindingtest.Volume("c", "1Gi"), bindingtest.Volume("a", "1Gi")},
	} {
		assert.Error(t, server.Load(objects...), name)
	}
	assert.Nil(t, server.Volume("b"), "all or nothing")
	assert.Nil(t, server.Volume("c"), "all or nothing")
}

func TestNewServerTellsLoadedFromCreated(t *testing.T) {
	running := bindingtest.Claim("default", "old", "1Gi", func(c pvc) { c.UID = "9b2c" })
	server := bindingtest.NewServer(bindingtest.Claim("default", "new", "1Gi"), running)
	assert.Empty(t, server.Claim("default", "old").Finalizers, "loaded")
	assert.NotEmpty(t, server.Claim("default", "new").Finalizers, "created")
	assert.PanicsWithValue(t, `bindingtest.NewServer: PersistentVolume "" is invalid: metadata.name: Required value: name or generateName is required`,
		func() { bindingtest.NewServer(bindingtest.Volume("", "1Gi")) })
}

// What was written by hand can be loaded as a server would hand it out, and what it says itself stays.
func TestSetDefaults(t *testing.T) {
	filled := bindingtest.Volume("a", "1Gi", func(v pv) { v.Spec.PersistentVolumeReclaimPolicy, v.Spec.VolumeMode = "", nil })
	said := bindingtest.Volume("b", "1Gi", func(v pv) {
		v.Spec.PersistentVolumeReclaimPolicy, v.Spec.VolumeMode = corev1.PersistentVolumeReclaimDelete, new(corev1.PersistentVolumeBlock)
		v.Status.Phase = corev1.VolumeBound
	})
	kept := said.DeepCopy()
	bindingtest.SetDefaults(filled)
	bindingtest.SetDefaults(said)
	assert.Equal(t, kept, said, "A6")
	assert.Equal(t, corev1.PersistentVolumeReclaimRetain, filled.Spec.PersistentVolumeReclaimPolicy, "A6")
	assert.Equal(t, new(corev1.PersistentVolumeFilesystem), filled.Spec.VolumeMode, "A6")
	assert.Equal(t, corev1.VolumePending, filled.Status.Phase, "A6")
}
