package decision_test

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pvbind/pvbind/binding/decision"
	. "github.com/pvbind/pvbind/binding/internal/testkit"
	"github.com/pvbind/pvbind/binding/obj"
	"github.com/pvbind/pvbind/reclaim"
)

// R8: a provisioner's token is larger than that of each deleter before it for the same claim, and counted with them. A tenant may have
// written the largest one that there is onto the claim: that may not become one that no deleter of the volume ever reaches.
func TestR8TheTokenOfAProvisioner(t *testing.T) {
	const now = int64(10_000_000_000_000)
	hour := int64(time.Hour)
	done := func(token int64) ClaimEdit {
		return func(claim *corev1.PersistentVolumeClaim) {
			reclaim.Announce(claim, reclaim.Announcement{By: "another", Token: token, Seconds: 600, Done: true})
		}
	}
	deleted := decision.Answer{Of: decision.RunDeleter, Hook: "old.example.com", For: "uid-1", Token: now + 7}
	for name, test := range map[string]struct {
		claim    *corev1.PersistentVolumeClaim
		answers  []decision.Answer
		expected int64
	}{
		"R8 the clock's":                {claim: ProvisioningClaim(), expected: now},
		"R8 another's clock was behind": {claim: ProvisioningClaim(done(now - 5)), expected: now},
		"R8 another's clock was ahead":  {claim: ProvisioningClaim(done(now + 5)), expected: now + 6},
		"R8 the clock stands still":     {claim: ProvisioningClaim(done(now)), expected: now + 1},
		"R8 a deleter of this sync":     {claim: ProvisioningClaim(), answers: []decision.Answer{deleted}, expected: now + 8},
		"R8 not quite an hour ahead":    {claim: ProvisioningClaim(done(now + hour - 1)), expected: now + hour},
		"R8 an hour ahead":              {claim: ProvisioningClaim(done(now + hour))},
		"R8 a deleter an hour ahead":    {claim: ProvisioningClaim(), answers: []decision.Answer{{Of: decision.RunDeleter, Hook: "old.example.com", For: "uid-1", Token: now + hour}}},
		"R8 a tenant wrote the largest": {claim: ProvisioningClaim(done(math.MaxInt64))},
	} {
		t.Run(name, func(t *testing.T) {
			known := Answering(Proving(Knowing(ClassOf("fast", Own)), OwnKey, DataKey), test.answers...)
			known.Now, known.Announced = metav1.NewTime(time.Unix(0, now)), map[obj.Key]metav1.Time{DataKey: metav1.Unix(0, 0)}
			action, err := decision.NextForClaim(test.claim, known, Hooked())
			require.NoError(t, err)
			if test.expected == 0 { // a smaller one would not refuse that deleter, and a larger one no deleter of the volume would reach
				require.Equal(t, decision.Wait, action.Kind, "%s", action)
				assert.Equal(t, decision.RetryBackoff, action.Retry)
				require.Len(t, action.Events, 1)
				assert.Equal(t, decision.EventProvisioningFailed, action.Events[0].Reason)
				assert.Contains(t, action.Events[0].Message, "ahead of the clock")
				return
			}
			require.Equal(t, decision.RunProvisioner, action.Kind, "%s", action)
			assert.Equal(t, test.expected, action.Request.Token)
		})
	}
}

// R8: what a provisioner has made in the same sync is deleted with a larger token, though the clock stands still.
func TestR8ADeletersTokenIsLargerThanTheProvisioners(t *testing.T) {
	const now = int64(10_000_000_000_000)
	made := decision.Answer{Of: decision.RunProvisioner, Hook: Own, For: "uid-1", Token: now + 5, Volume: MadeVolume(Sized("1"))}
	known := Answering(Proving(Knowing(ClassOf("fast", Own)), OwnKey, DataKey), made)
	known.Now = metav1.NewTime(time.Unix(0, now))
	t.Run("R8 P2 what does not fit", func(t *testing.T) {
		action, err := decision.NextForClaim(ProvisioningClaim(), known, Hooked())
		require.NoError(t, err)
		require.True(t, action.Announces(), "%s", action)
		assert.Equal(t, now+6, action.Token)
	})
	t.Run("R8 P2 what was made for a claim that is gone", func(t *testing.T) {
		action, left := decision.NextForLeftover(DataKey, "", []decision.Answer{made}, Proving(known, DataKey, OwnKey), Hooked())
		require.True(t, left)
		require.Equal(t, decision.RunDeleter, action.Kind, "%s", action)
		assert.Equal(t, now+6, action.Token)
	})
}
