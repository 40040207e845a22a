package decision_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/pvbind/pvbind/binding/decision"
	. "github.com/pvbind/pvbind/binding/internal/testkit"
	"github.com/pvbind/pvbind/binding/obj"
	"github.com/pvbind/pvbind/reclaim"
)

// W8: a volume whose claimRef went by a restore is kept for the claim that had it, unless one is Bound to it, as the server says. A claim
// that a sync is binding it to is among its owners, too.
func TestW8WhomAVolumeIsGivenBackTo(t *testing.T) {
	had := obj.ClaimKey("default", "had")
	former := KnownVolume("vol", RefersTo(had.Namespace, had.Name, "uid-had"))

	for _, row := range []struct {
		name  string
		known *corev1.PersistentVolumeClaim // default/data
		live  []obj.Key
		reads obj.Key // {}: none
		gives bool
	}{
		{name: "what the cache says of an owner is from before", known: KnownClaim(BoundTo("vol")), reads: DataKey},
		{name: "no owner is Bound to it, and who had it was not read", known: KnownClaim(), live: []obj.Key{DataKey}, reads: had},
		{name: "no owner is Bound to it that is known, and one may be back", known: KnownClaim(), live: []obj.Key{DataKey, had}, reads: obj.ClaimsKey()},
		{name: "no owner is Bound to it", known: KnownClaim(), live: []obj.Key{DataKey, had, obj.ClaimsKey()}, gives: true},
		{name: "an owner is Bound to another", known: KnownClaim(BoundTo("other")), live: []obj.Key{DataKey, had, obj.ClaimsKey()}, gives: true},
		{name: "one that a list shows is read", known: KnownClaim(BoundTo("vol"), Named("back")), live: []obj.Key{DataKey, had, obj.ClaimsKey()}, reads: obj.ClaimKey("default", "back")},
		{name: "one that a list shows is Bound to it", known: KnownClaim(BoundTo("vol"), Named("back")), live: []obj.Key{DataKey, had, obj.ClaimsKey(), obj.ClaimKey("default", "back")}},
		{name: "an owner is Bound to it", known: KnownClaim(BoundTo("vol")), live: []obj.Key{DataKey}},
	} {
		t.Run(row.name, func(t *testing.T) {
			known := decision.Snapshot{Claims: []*corev1.PersistentVolumeClaim{row.known}, LiveReads: row.live}

			action, lost := decision.GiveBack(KnownVolume("vol"), former, ownedView{known, DataKey})

			require.Equal(t, row.reads, action.Key)
			require.Equal(t, row.gives || row.reads != obj.Key{}, lost)
			if row.gives {
				assert.Equal(t, had, obj.ReferencedClaim(action.Volume))
			}
		})
	}
}

// W8, X8: an announcement that stood on a claim which had what was provisioned for it was of no account, and is not given back to be withdrawn.
func TestW8AnAnnouncementOfNoAccount(t *testing.T) {
	announced := func(c *corev1.PersistentVolumeClaim) {
		reclaim.Announce(c, reclaim.Announcement{By: "a tenant", Token: 5, Seconds: 1})
	}
	now, had := KnownClaim(), KnownClaim(BoundTo(OwnKey.Name), announced)
	assert.False(t, decision.Lost(now, had))

	action, lost := decision.GiveBack(KnownClaim(announced), had, decision.Snapshot{})
	require.True(t, lost, "P2 one that the backup shows is withdrawn")
	assert.Equal(t, "W8 UpdateClaim", action.Rule+" "+string(action.Kind))
	assert.NotContains(t, action.Complete().Claim.Annotations, reclaim.AnnouncementAnnotation)

	assert.True(t, decision.Lost(now, KnownClaim(Naming(OwnKey.Name), announced)), "its tenant may have written that")

	assert.False(t, decision.Lost(now, KnownClaim(OfUID("uid-later"), announced)), "what a later claim of that name had announced is no word of this one")

	action, lost = decision.GiveBack(now, KnownClaim(announced), decision.Snapshot{})
	require.True(t, lost, "R8 one of a claim that had none is given back")
	assert.Contains(t, action.Complete().Claim.Annotations, reclaim.AnnouncementAnnotation)
}

// ownedView is a Snapshot in which a claim is an owner of each volume.
type ownedView struct {
	decision.Snapshot
	owner obj.Key
}

func (v ownedView) Owners(string) []obj.Key { return []obj.Key{v.owner} }
