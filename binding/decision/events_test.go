package decision_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/pvbind/pvbind/binding/decision"
	. "github.com/pvbind/pvbind/binding/internal/testkit"
	"github.com/pvbind/pvbind/binding/obj"
)

// TestMessagesAreBounded gives every event something long, and of several lines, to talk about.
func TestMessagesAreBounded(t *testing.T) {
	long := strings.Repeat("x\n", 2000)
	var pods []obj.Object
	for i := range 200 {
		pods = append(pods, PodUsing(fmt.Sprintf("web-with-a-rather-long-name-%03d", i)))
	}
	waits := []string{"Normal WaitForPodScheduled pvc/default/data"}
	runDecisions(t, []decisionTest{
		{name: "N C3 many pods", claim: KnownClaim(RequestingClass(new("local"))), known: Knowing(append(pods, ClassOf("local", "csi.example.com", WaitsForFirstConsumer))...), expected: "C3 Wait", events: waits},
		{name: "N R4 many pods", volume: Orphan(corev1.PersistentVolumeReclaimRecycle), known: Knowing(pods...),
			expected: "R4 Wait", events: []string{"Normal VolumeFailedRecycle pv/a"}, retry: decision.RetryBackoff},
		{name: "N P1 a long class", claim: KnownClaim(RequestingClass(&long)), expected: "P1 Wait", events: []string{"Warning ProvisioningFailed pvc/default/data"}},
		{name: "N P3 a long provisioner", claim: KnownClaim(RequestingClass(new("fast")), ClaimNote(Provisioner, long), ClaimNote(BetaProvisioner, long)), known: Knowing(ClassOf("fast", long)),
			expected: "P3 Wait", events: []string{"Normal ExternalProvisioning pvc/default/data"}},
		{name: "N C7 a long class", claim: KnownClaim(Naming("a"), RequestingClass(&long)), known: Knowing(KnownVolume("a", OfClass(long+"y"))), expected: "C7 Wait", events: []string{"Warning VolumeMismatch pvc/default/data"}},
		{name: "N C5 a long class", claim: KnownClaim(), known: Knowing(KnownVolume("a", OfClass(long))), expected: "C5 Wait", events: []string{"Normal FailedBinding pvc/default/data"}},
		{name: "N V2 long modes", volume: KnownVolume("a", BoundToClaim, func(v *corev1.PersistentVolume) { v.Spec.VolumeMode = new(corev1.PersistentVolumeMode(long)) }), known: Knowing(KnownClaim()),
			expected: "V2 Wait", events: []string{"Warning VolumeMismatch pv/a", "Warning VolumeMismatch pvc/default/data"}},
	})
}

func TestTheFailureInAStatusIsOneLine(t *testing.T) {
	long := corev1.PersistentVolumeReclaimPolicy(strings.Repeat("x\n", 2000))
	action, err := decision.NextForVolume(Orphan(long), Proving(decision.Snapshot{}, DataKey), Unprotected(decision.Options{}))

	require.NoError(t, err)
	assert.NotContains(t, action.Volume.Status.Message, "\n", "R5")

	failed := Answering(Proving(Knowing(MadeByOwn()), DataKey, AKey), reclaimed(decision.RunDeleter, Own, errors.New(strings.Repeat("x\n", 2000))))
	action, err = decision.NextForVolume(MadeByOwn(), failed, Hooked())

	require.NoError(t, err)
	assert.NotContains(t, action.Volume.Status.Message, "\n", "R3")
	assert.LessOrEqual(t, len(action.Volume.Status.Message), 1024, "R3")

	again, err := decision.NextForVolume(action.Volume, failed, Hooked())
	require.NoError(t, err)
	assert.Empty(t, again.Events, "R3: it is said already")
}

func TestEventsOfAVolumeAndAClaimOfOneName(t *testing.T) {
	assert.Equal(t, "persistentvolume-controller", decision.EventSource, "N")
	action, _ := decision.NextForClaim(KnownClaim(Named("r")), Knowing(KnownVolume("r", RefersTo("default", "r", ""), Sized("1Gi"))), Unprotected(decision.Options{}))

	require.Len(t, action.Events, 3)
	assert.Equal(t, obj.ClaimKey("default", "r"), action.Events[0].On, "M12")
	assert.Equal(t, obj.VolumeKey("r"), action.Events[1].On, "M12")
	assert.Equal(t, "uid-of-volume", string(action.Events[1].UID), "N")
	assert.Equal(t, "uid-2", string(action.Events[0].UID), "N")
	assert.True(t, strings.HasPrefix(action.Events[1].String(), `Warning VolumeMismatch pv/r: volume "r" is pre-bound to claim default/r but does not fit it: TooSmall`), "%s", action.Events[1])
}
