package decision_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/pvbind/pvbind/binding/decision"
	. "github.com/pvbind/pvbind/binding/internal/testkit"
	"github.com/pvbind/pvbind/binding/obj"
)

// FuzzCheckPair checks pairs in any state, malformed ones too: without a panic, without a change to what it is given
// (X6), with a reason for whatever it says, and never with a write that would give a person a volume that goes.
func FuzzCheckPair(f *testing.F) {
	AddSeeds(f, 400)
	f.Fuzz(func(t *testing.T, bytes []byte) {
		m := newRandomState(bytes)
		before := m.copied()
		for _, volume := range append(m.Volumes, nil) {
			requirePairReport(t, decision.PairRequest{Claim: m.Claims[0], Volume: volume, View: m.Snapshot, Options: m.options})
			requirePairReport(t, decision.PairRequest{Volume: volume, View: m.Snapshot, Options: m.options})
		}
		require.Equal(t, before, m.Snapshot, "X6")
	})
}

func requirePairReport(t *testing.T, request decision.PairRequest) {
	t.Helper()
	report, err := decision.CheckPair(request)
	var invalid *obj.InvalidError
	require.True(t, err == nil || errors.As(err, &invalid), "%v", err)
	action := report.Repair.Action
	switch {
	case err != nil || report.Healthy():
		require.Zero(t, report.Repair)
		return
	case report.Repair.By == decision.ByPerson && action.Kind == decision.CreateVolume:
		require.Nil(t, request.Volume)
		require.Equal(t, request.Claim.Spec.VolumeName, action.Volume.Name)
		require.Equal(t, corev1.PersistentVolumeReclaimRetain, action.Volume.Spec.PersistentVolumeReclaimPolicy)
		require.Equal(t, request.Claim.UID, action.Volume.Spec.ClaimRef.UID)
		require.NotEmpty(t, report.Repair.Risk)
	case report.Repair.By == decision.ByPerson:
		require.Equal(t, decision.UpdateVolume, action.Kind)
		require.Equal(t, request.Volume.ResourceVersion, action.Volume.ResourceVersion, "B5")
		require.NotEmpty(t, report.Repair.Risk)
		given := action.Volume.Spec.ClaimRef != nil && action.Volume.Spec.ClaimRef.UID != ""
		require.False(t, given && request.Volume.DeletionTimestamp != nil, "%s", action)
		reclaimed := request.Volume.Status.Phase == corev1.VolumeReleased && request.Volume.Spec.PersistentVolumeReclaimPolicy != corev1.PersistentVolumeReclaimRetain
		require.False(t, given && reclaimed, "X2: %s", action)
	case report.Repair.By == decision.ByController:
		require.NotEqual(t, decision.Nothing, action.Kind)
		require.NotEqual(t, decision.Wait, action.Kind)
	}
	require.NotEmpty(t, report.Repair.Why)
}
