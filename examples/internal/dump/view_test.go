package dump

import (
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"

	"github.com/pvbind/pvbind/binding/bindingtest"
	"github.com/pvbind/pvbind/binding/decision"
	"github.com/pvbind/pvbind/binding/obj"
)

func TestViewProvesAbsenceOnlyWhereTheInputIsComplete(t *testing.T) {
	view := NewView([]obj.Object{bindingtest.Volume("disk", "1Gi"), bindingtest.Claim("shop", "data", "1Gi"), bindingtest.Pod("shop", "web", "", "data")})
	nothing := NewView(nil)
	volume := func(v *View, name string) decision.Source { _, source := v.Volume(name); return source }
	claim := func(v *View, namespace, name string) decision.Source {
		_, source := v.Claim(namespace, name)
		return source
	}
	pods := func(v *View) decision.Source { _, source := v.PodsOf("shop", "data"); return source }

	assert.Equal(t, decision.FromLiveRead, volume(view, "disk"))
	assert.Equal(t, decision.AbsentInLiveRead, volume(view, "other"))
	assert.Equal(t, decision.NotInCache, volume(nothing, "disk"), "kubectl was not asked for volumes")
	assert.Equal(t, decision.FromLiveRead, claim(view, "shop", "data"))
	assert.Equal(t, decision.AbsentInLiveRead, claim(view, "shop", "other"))
	assert.Equal(t, decision.NotInCache, claim(view, "elsewhere", "data"), "kubectl was asked for one namespace")
	assert.Equal(t, decision.FromLiveRead, pods(view))
	assert.Equal(t, decision.NotInCache, pods(nothing))
	assert.Nil(t, nothing.DefaultClass())
	assert.Nil(t, nothing.Class("any"))
}

// It answers as a Snapshot of the same objects does.
func TestViewAnswersAsASnapshot(t *testing.T) {
	for _, file := range []string{"dump", "halfway", "manifests"} {
		in, err := Read([]string{"../../simulate/testdata/" + file + ".yaml"}, os.Stdin, nil)
		require.NoError(t, err)
		var snapshot decision.Snapshot
		for _, object := range in.Objects() {
			bindingtest.SetDefaults(object)
			switch o := object.(type) {
			case *corev1.PersistentVolume:
				snapshot.Volumes = append(snapshot.Volumes, o)
			case *corev1.PersistentVolumeClaim:
				snapshot.Claims = append(snapshot.Claims, o)
			case *corev1.Pod:
				snapshot.Pods = append(snapshot.Pods, o)
			case *storagev1.StorageClass:
				snapshot.Classes = append(snapshot.Classes, o)
			}
		}
		view := NewView(in.Objects())
		assert.Equal(t, snapshot.DefaultClass(), view.DefaultClass())
		for _, volume := range snapshot.Volumes {
			assert.Equal(t, snapshot.Owners(volume.Name), view.Owners(volume.Name), "M2: %s in %s", volume.Name, file)
		}
		for _, claim := range snapshot.Claims {
			want, err := snapshot.Find(claim)
			require.NoError(t, err)
			got, err := view.Find(claim)
			require.NoError(t, err)
			assert.Equal(t, want, got, "M14: %s in %s", claim.Name, file)
			wantSummary, err := snapshot.Summary(claim)
			require.NoError(t, err)
			gotSummary, err := view.Summary(claim)
			require.NoError(t, err)
			assert.Equal(t, wantSummary, gotSummary, "E2: %s in %s", claim.Name, file)
			wantUsers, _ := snapshot.UsersOf(claim, 10)
			gotUsers, _ := view.UsersOf(claim, 10)
			assert.ElementsMatch(t, wantUsers, gotUsers, "F2: %s in %s", claim.Name, file)
		}
	}
}
