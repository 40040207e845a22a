package decision_test

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pvbind/pvbind/binding/decision"
	"github.com/pvbind/pvbind/binding/hooks"
	. "github.com/pvbind/pvbind/binding/internal/testkit"
	"github.com/pvbind/pvbind/binding/obj"
	"github.com/pvbind/pvbind/reclaim"
)

// R8: what comes before a deleter and a recycler, in a sync that has announced nothing yet.
func TestR8WhatIsAnnounced(t *testing.T) {
	readLive := Proving(decision.Snapshot{}, DataKey, AKey, obj.PodsKey("default"), detached)
	recycled := func(edits ...VolumeEdit) *corev1.PersistentVolume {
		return Orphan(corev1.PersistentVolumeReclaimRecycle, edits...)
	}
	announces := func(token string, recycles ...string) string {
		return "R8 UpdateVolume pv/a: +annotation " + reclaim.AnnouncementAnnotation + `="{\"by\":\"me\",\"token\":` + token + `,\"seconds\":120` + strings.Join(recycles, "") + `}" +finalizer ` + reclaim.AnnouncementFinalizer
	}
	const recycles = `,\"recycles\":true`
	says := func(known decision.Snapshot, token int64) decision.Snapshot {
		return Answering(known, decision.Answer{Of: decision.UpdateVolume, For: "uid-of-volume", Token: token})
	}
	stands, scrubs := announcedBy("me", false), recyclerAnnounced
	long := says(readLive, 7)
	long.Now, long.Announced = metav1.Unix(10_000, 0), map[obj.Key]metav1.Time{AKey: metav1.Unix(9_000, 0)}
	young := readLive
	young.Now, young.Announced = metav1.Unix(10_000, 0), map[obj.Key]metav1.Time{AKey: metav1.Unix(9_990, 0)}
	old := long
	old.Answers = nil
	another, clock := []string{`controller "another"`, "until about 1970-01-01T00:10:00Z"}, readLive
	clock.Now = metav1.Unix(3, 4)
	freed := func(v *corev1.PersistentVolume) { v.Spec.ClaimRef = nil }
	free, names := KnownClaim(RequestingClass(new(""))), KnownClaim(RequestingClass(new("")), Naming("a"))
	told, scrubTold, failed := []string{"Warning VolumeFailedDelete pv/a"}, []string{"Warning VolumeFailedRecycle pv/a"}, []string{"Warning VolumeFailedDelete pv/a", "Warning FailedBinding pvc/default/data"}
	says8 := []string{"may have none", "remove the annotation " + reclaim.AnnouncementAnnotation, "first set its reclaim policy to Retain and delete it"}
	runDecisions(t, []decisionTest{
		{name: "R8 R3 before a deleter, whatever was read", volume: MadeByOwn(), known: readLive, expected: announces("1")},
		{name: "R8 R4 before a recycler", volume: recycled(), known: readLive, expected: announces("1", recycles)},
		{name: "R8 before any read", volume: recycled(), expected: announces("1", recycles)},
		{name: "R8 the token is the clock's nanoseconds", volume: MadeByOwn(), known: clock, expected: announces("3000000004")},
		{name: "R8 the reads follow", volume: MadeByOwn(stands), known: says(decision.Snapshot{}, 7), expected: "R3 Read volumeattachments"},
		{name: "R8 R4 the pods too", volume: recycled(scrubs), known: says(decision.Snapshot{}, 7), expected: "R4 Read " + obj.PodsKey("default").String()},
		{name: "R8 and the call", volume: MadeByOwn(stands), known: says(readLive, 7), expected: "R3 RunDeleter pv/a by " + Own},
		{name: "R8 our own of an earlier sync is announced anew, with a larger token", volume: MadeByOwn(stands), known: readLive, expected: "R8 UpdateVolume pv/a: " + tokenGrows},
		{name: "R8 one that does not stand any more is announced anew", volume: MadeByOwn(), known: says(readLive, 7), expected: announces("1")},
		{name: "R8 one that is not of this sync is announced anew", volume: MadeByOwn(stands), known: says(readLive, 6), expected: "R8 UpdateVolume pv/a: " + tokenGrows},
		{name: "R8 another's has just been seen", volume: MadeByOwn(announcedBy("another", false)), known: readLive, expected: "R8 Wait", says: another, retry: decision.RetryAfter},
		{name: "F3 R8 so it stays, though it is being deleted: one that is made under its name would not have the announcement", known: readLive, expected: "R8 Wait", says: another, retry: decision.RetryAfter,
			volume: recycled(announcedBy("another", false), VolumeFinalizers(VolumeProtection), func(v *corev1.PersistentVolume) { BeingDeleted(v) })},
		{name: "R8 another's is young", volume: recycled(announcedBy("another", false)), known: young, expected: "R8 Wait", says: another, retry: decision.RetryAfter},
		{name: "R8 another's came after ours: nothing is done with the answer", volume: MadeByOwn(announcedBy("another", false)), known: Answering(says(readLive, 6), decision.Answer{Of: decision.RunDeleter, Hook: Own, For: "uid-of-volume", Token: 6}),
			expected: "R8 Wait", says: another, retry: decision.RetryAfter},
		{name: "R8 ours is gone since the call: the answer does not count", volume: recycled(), known: Answering(says(readLive, 6), decision.Answer{Of: decision.RunRecycler, Hook: "hostPath", For: "uid-of-volume", Token: 6}), expected: announces("1", recycles)},
		{name: "R8 another's has been seen for long enough", volume: MadeByOwn(announcedBy("another", false)), known: old,
			expected: "R8 UpdateVolume pv/a: annotation " + reclaim.AnnouncementAnnotation + `="{\"by\":\"me\",\"token\":10000000000000,\"seconds\":120}"`},
		{name: "R8 nobody can read it: it stands for somebody's", volume: MadeByOwn(VolumeNote(reclaim.AnnouncementAnnotation, "{")), known: young, expected: "R8 Wait", retry: decision.RetryAfter},
		{name: "R8 no token is larger", volume: MadeByOwn(func(v *corev1.PersistentVolume) {
			reclaim.Announce(v, reclaim.Announcement{By: "me", Token: math.MaxInt64})
		}), known: readLive,
			expected: `R3 UpdateVolumeStatus pv/a: status.message="the volume cannot be reclaimed: no token is larger than that in its annotation pvbind.github.io/reclaiming: remove the annotation" status.phase=Failed status.reason=VolumeFailedDelete`,
			events:   []string{"Warning VolumeFailedDelete pv/a"}},
		{name: "R8 the storage has seen a larger token", volume: MadeByOwn(stands), known: Answering(says(readLive, 7), decision.Answer{Of: decision.RunDeleter, Hook: Own, For: "uid-of-volume", Token: 7, Err: Meaning(hooks.StaleToken)}),
			expected: "R8 Wait", events: []string{"Warning VolumeFailedDelete pv/a"}, says: []string{"larger token"}, retry: decision.RetryBackoff},
		{name: "R8 R3 nothing is announced while it is attached", volume: MadeByOwn(), known: Knowing(AttachedTo("n")), expected: "R3 Wait", events: []string{"Normal VolumeDelete pv/a"}, retry: decision.RetryBackoff},
		{name: "R8 C7 B1 nothing is bound that another may be destroying", claim: names, known: Knowing(KnownVolume("a", OfClass(""), announcedBy("another", false))),
			expected: "R8 Wait", says: another, retry: decision.RetryAfter},
		{name: "R8 C7 nor where the claim names it", claim: KnownClaim(RequestingClass(new("")), func(c *corev1.PersistentVolumeClaim) { c.Spec.VolumeName = "a" }), known: Knowing(KnownVolume("a", OfClass(""), announcedBy("another", false))),
			expected: "R8 Wait", says: another, retry: decision.RetryAfter},
		{name: "R8 V1 a person has removed the claimRef, and another may be destroying it", volume: recycled(freed, announcedBy("another", false)), expected: "R8 Wait", says: another, retry: decision.RetryAfter},
		{name: "R8 V1 nobody else destroys it any more, but it may be scrubbed yet", volume: recycled(freed, scrubs), expected: "R8 Wait", events: scrubTold, says: []string{"recycler", "remove the annotation " + reclaim.AnnouncementAnnotation}},
		{name: "R8 V1 its storage may be gone", volume: MadeByOwn(freed, stands), expected: "R8 Wait", events: told, says: says8},
		{name: "R8 V1 so it may under Recycle", volume: recycled(freed, stands), expected: "R8 Wait", events: told, says: says8},
		{name: "R8 L2 whoever it is given to", volume: recycled(stands, RefersTo("default", "other", "")), expected: "R8 Wait", events: told, says: says8},
		{name: "R8 V2 or bound to", volume: recycled(stands), known: Knowing(KnownClaim()), expected: "R8 Wait", events: told, says: says8},
		{name: "R8 V2 a claim that has it already keeps it, and it is told", volume: MadeByOwn(stands, InPhase(corev1.VolumeBound)), known: Knowing(KnownClaim(BoundTo("a"))), expected: "R8 Wait", events: told, says: says8},
		{name: "R8 R4 a deleter was announced: no recycler runs", volume: recycled(stands), known: readLive, expected: "R8 Wait", events: told, says: says8},
		{name: "R8 R4 nobody can read what was announced: no recycler runs", volume: recycled(VolumeNote(reclaim.AnnouncementAnnotation, "{")), known: old, expected: "R8 Wait", events: told, says: says8},
		{name: "R8 R3 a recycler was announced: no deleter runs, for it may go on once the volume is gone", volume: MadeByOwn(scrubs), known: readLive, expected: "R8 Wait", events: scrubTold, says: []string{"recycler"}},
		{name: "R8 R2 Retain since a deleter was announced: told", volume: Orphan(corev1.PersistentVolumeReclaimRetain, stands), expected: "R8 Wait", events: told, says: says8},
		{name: "R8 R2 Retain since a recycler was announced: told", volume: Orphan(corev1.PersistentVolumeReclaimRetain, scrubs), expected: "R8 Wait", events: scrubTold},
		{name: "R8 V4 what takes a volume from a claim that has another drops no announcement", volume: Orphan(corev1.PersistentVolumeReclaimRetain, stands), known: Proving(Knowing(KnownClaim(Naming("b")), KnownVolume("b", BoundToClaim)), DataKey, obj.VolumeKey("b")),
			expected: "V4 UpdateVolume pv/a: spec.claimRef={default/data}"},
		{name: "R8 C7 B1 nor is a volume bound whose storage may be gone", claim: names, known: Knowing(KnownVolume("a", OfClass(""), stands)), expected: "R8 Wait", events: failed, says: says8},
		{name: "R8 C7 B1 under Recycle too", claim: names, known: Knowing(KnownVolume("a", OfClass(""), WithPolicy(corev1.PersistentVolumeReclaimRecycle), stands)), expected: "R8 Wait", events: failed, says: says8},
		{name: "R8 C7 B1 nor one that may be scrubbed yet", claim: names, known: Knowing(KnownVolume("a", OfClass(""), WithPolicy(corev1.PersistentVolumeReclaimRecycle), scrubs)), expected: "R8 Wait", events: []string{"Warning VolumeFailedRecycle pv/a", "Warning FailedBinding pvc/default/data"}},
		{name: "R8 M9 C1 one that no claim names is passed over", claim: free, known: Knowing(KnownVolume("a", OfClass(""), stands), KnownVolume("b", OfClass(""), Sized("50Gi"))),
			expected: "B1 UpdateVolume pv/b: spec.claimRef={default/data uid-1} +annotation " + BoundBy},
		{name: "R8 M9 C5 where no other fits, the claim is told", claim: free, known: Knowing(KnownVolume("a", OfClass(""), stands)), expected: "C5 Wait",
			events: []string{"Normal FailedBinding pvc/default/data"}, says: []string{"1 NotAvailable", "a would fit", "annotation " + reclaim.AnnouncementAnnotation}},
		{name: "R8 M12 nor where a person gives it to the claim", claim: free, known: Knowing(KnownVolume("a", OfClass(""), RefersTo("default", "data", ""), stands)), expected: "R8 Wait", events: failed, says: says8},
		{name: "R8 B2 with its UID", claim: free, known: Knowing(KnownVolume("a", OfClass(""), BoundToClaim, stands)), expected: "R8 Wait", events: failed, says: says8},
		{name: "R8 C11 B1 a claim that is Bound to it has its claimRef again, whoever may be at work", claim: KnownClaim(BoundTo("a")), known: Proving(Knowing(KnownVolume("a", announcedBy("another", false))), DataKey),
			expected: "B1 UpdateVolume pv/a: spec.claimRef={default/data uid-1} +annotation " + BoundBy},
		{name: "R8 C11 C12 also before it is let go", claim: KnownClaim(BoundTo("a"), ClaimBeingDeleted), known: Proving(Knowing(KnownVolume("a", announcedBy("another", false))), DataKey),
			expected: "B1 UpdateVolume pv/a: spec.claimRef={default/data uid-1} +annotation " + BoundBy},
		{name: "R8 C11 B1 a claim that is Bound to it keeps it, and the announcement stands", claim: KnownClaim(BoundTo("a")), known: Proving(Knowing(KnownVolume("a", stands)), DataKey),
			expected: "B1 UpdateVolume pv/a: spec.claimRef={default/data uid-1} +annotation " + BoundBy},
	}, alone)
}

// alone has the hooks in the options, and nothing announced.
func alone(row *decisionTest) { row.options, row.fresh = Hooked(), true }

// R8, P2: a claim whose storage another controller may be deleting is left alone, and nothing is made or bound for it.
func TestR8WhatIsMadeForAClaim(t *testing.T) {
	theirs := ProvisioningClaim(func(claim *corev1.PersistentVolumeClaim) {
		reclaim.Announce(claim, reclaim.Announcement{By: "another", Token: 7, Seconds: 60})
	})
	leaving := theirs.DeepCopy()
	leaving.DeletionTimestamp = &metav1.Time{}
	fast := Proving(Knowing(ClassOf("fast", Own)), OwnKey)
	stored := Knowing(ClassOf("fast", Own), KnownVolume(OwnKey.Name, OfClass("fast"), BoundToClaim, InPhase(corev1.VolumeBound)))
	runDecisions(t, []decisionTest{
		{name: "R8 P2 nor is what was made for that deleted before it is time", known: fast,
			claim: ProvisioningClaim(ClaimBeingDeleted, ClaimNote(Completed, "yes"), ClaimPhase(corev1.ClaimLost), func(claim *corev1.PersistentVolumeClaim) {
				reclaim.Announce(claim, reclaim.Announcement{By: "another", Token: 7, Seconds: 3600})
			}), expected: "R8 Wait", retry: decision.RetryAfter},
		{name: "R8 C10 X3 what a tenant announces on a claim that was bound does not keep it Bound to what is another's", known: Proving(Knowing(KnownVolume("a", RefersToOther)), obj.VolumeKey("a")),
			claim: ProvisioningClaim(BoundTo("a"), func(claim *corev1.PersistentVolumeClaim) {
				reclaim.Announce(claim, reclaim.Announcement{By: "another", Token: 7, Seconds: 3600})
			}), expected: "C10 UpdateClaimStatus pvc/default/data: -status.accessModes -status.capacity.storage status.phase=Lost", events: []string{"Warning ClaimMisbound pvc/default/data"}},
		{name: "R8 P2 nothing is made", claim: theirs, known: fast, expected: "R8 Wait", retry: decision.RetryAfter},
		{name: "R8 B3 nothing is bound", claim: theirs, known: stored, expected: "R8 Wait", retry: decision.RetryAfter},
		{name: "R8 P2 nothing is deleted", claim: leaving, known: fast, expected: "R8 Wait", retry: decision.RetryAfter},
		{name: "R8 P2 it is announced on the claim", claim: ProvisioningClaim(ClaimBeingDeleted), known: fast,
			expected: "R8 UpdateClaim pvc/default/data: +annotation " + reclaim.AnnouncementAnnotation + `="{\"by\":\"me\",\"token\":1,\"seconds\":120}"`},
	}, alone)
}

func TestR8HowLongAnotherIsAwaited(t *testing.T) {
	for name, test := range map[string]struct {
		seconds       int64
		timeout, seen time.Duration
		expected      time.Duration
	}{
		"as long as it says":         {600, time.Minute, 0, 10*time.Minute + hooks.Margin},
		"or as ours may take":        {1, 5 * time.Minute, 0, 5*time.Minute + hooks.Margin},
		"the rest of it":             {60, time.Minute, 50 * time.Second, 40 * time.Second},
		"an hour at most":            {math.MaxInt64, time.Minute, 0, time.Hour + hooks.Margin},
		"whatever a person wrote":    {math.MinInt64, 0, 0, hooks.DefaultTimeout + hooks.Margin},
		"just so long":               {60, time.Minute, time.Minute + hooks.Margin, 0},
		"seen before the clock's 0?": {60, time.Minute, -time.Second, time.Minute + hooks.Margin + time.Second},
	} {
		t.Run("R8 "+name, func(t *testing.T) {
			volume := MadeByOwn(func(v *corev1.PersistentVolume) {
				reclaim.Announce(v, reclaim.Announcement{By: "another", Token: 1, Seconds: test.seconds})
			})
			known := Knowing(volume)
			known.Now, known.Announced = metav1.Unix(10_000, 0), map[obj.Key]metav1.Time{AKey: {Time: time.Unix(10_000, 0).Add(-test.seen)}}
			options := Hooked()
			options.HookTimeout = test.timeout
			action, err := decision.NextForVolume(volume, known, options)
			require.NoError(t, err)
			assert.Equal(t, test.expected == 0, action.Announces())
			assert.Equal(t, test.expected, action.After)
		})
	}
}
