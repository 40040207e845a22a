package decision_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/pvbind/pvbind/binding/bindingtest"
	"github.com/pvbind/pvbind/binding/decision"
	. "github.com/pvbind/pvbind/binding/internal/testkit"
	"github.com/pvbind/pvbind/binding/obj"
	"github.com/pvbind/pvbind/reclaim"
)

// decisionTest is one row of a table: an object, what else is known, and what must follow from it.
type decisionTest struct {
	name    string // begins with the rule
	claim   *corev1.PersistentVolumeClaim
	volume  *corev1.PersistentVolume // the object of the decision if there is no claim
	known   decision.Snapshot        // the object itself is added to it
	options decision.Options

	expected string   // "C1 Kind object: every difference that the write makes"
	events   []string // "Type Reason object"
	says     []string // each is part of the message of every event, and of the reason
	fails    string   // part of the error; "": none
	retry    decision.Retry

	fresh bool // nothing was announced in this sync; else, with hooks, the object carries an announcement that was (R8)
}

// longest is as long as a name may be. What is longer is no object's (X9).
var longest = strings.Repeat("n", obj.MaxName)

func runDecisions(t *testing.T, table []decisionTest, edits ...func(*decisionTest)) {
	for _, row := range table {
		for _, edit := range edits {
			edit(&row)
		}
		t.Run(row.name, row.run)
	}
}

func (d decisionTest) run(t *testing.T) {
	d = d.complete()
	before := d.copy()

	action, err := d.decide()

	d.checkAnswer(t, action, err)
	d.checkWrite(t, action)
	d.checkEvents(t, action)
	require.Equal(t, before, d, "X6: the inputs stay as they were")
	d.checkOrder(t, action)
	Spoil(action)
	require.Equal(t, before, d, "X6: what is written shares nothing with the inputs")
}

func (d decisionTest) decide() (decision.Action, error) {
	if d.claim != nil {
		return decision.NextForClaim(d.claim, d.known, Unprotected(d.options))
	}
	return decision.NextForVolume(d.volume, d.known, Unprotected(d.options))
}

func (d decisionTest) checkAnswer(t *testing.T, action decision.Action, err error) {
	if d.fails != "" {
		require.ErrorContains(t, err, d.fails, "X7")
		assert.False(t, action.Writes(), "nothing is written beside an error")
	} else {
		require.NoError(t, err)
	}
	if d.expected != "" || d.fails == "" {
		assert.Equal(t, d.expected, d.text(action))
	}
	assert.Equal(t, d.retry, action.Retry, "W6")
	assert.NotContains(t, action.Why, "\n")
	for _, part := range d.says {
		assert.Contains(t, action.Why, part)
	}
}

// text is the action as a row says it.
func (d decisionTest) text(action decision.Action) string {
	text := action.Rule + " " + string(action.Kind)
	if action.Kind == decision.Nothing {
		text += "Nothing"
	}
	if action.Target() != (obj.Key{}) {
		text += " " + action.Target().String()
	}
	if action.Hook != "" {
		text += " by " + action.Hook
	}
	if before, after := d.written(action); after != nil {
		text += ": " + bindingtest.Diff(before, after)
	}
	return text
}

// written is the object that the action changes, as it was and as it is to be.
func (d decisionTest) written(action decision.Action) (before, after obj.Object) {
	switch {
	case !action.Writes() || action.Kind == decision.CreateVolume || action.Kind == decision.DeleteVolume:
	case action.Volume != nil:
		was, _ := d.known.Volume(action.Volume.Name)
		return was, action.Volume
	case action.Claim != nil:
		was, _ := d.known.Claim(action.Claim.Namespace, action.Claim.Name)
		return was, action.Claim
	}
	return nil, nil
}

// checkWrite holds a write to its half of the object (A2) and to the version it was decided on (B5).
func (d decisionTest) checkWrite(t *testing.T, action decision.Action) {
	switch action.Kind {
	case decision.CreateVolume:
		assert.Empty(t, action.Volume.ResourceVersion+string(action.Volume.UID), "A1: the server sets them")
	case decision.DeleteVolume:
		known, _ := d.known.Volume(action.Volume.Name)
		assert.Equal(t, known, action.Volume, "R3: the preconditions are its UID and resourceVersion")
	}
	before, after := d.written(action)
	if after == nil {
		return
	}
	assert.Equal(t, before.GetResourceVersion(), after.GetResourceVersion(), "B5")
	assert.Equal(t, before.GetUID(), after.GetUID(), "B5")
	assert.NotEmpty(t, bindingtest.Diff(before, after), "B5: what is already so is not written")
	for _, part := range strings.Fields(bindingtest.Diff(before, after)) {
		status := strings.HasPrefix(strings.TrimPrefix(part, "-"), "status.")
		wants := action.Kind == decision.UpdateVolumeStatus || action.Kind == decision.UpdateClaimStatus
		if strings.HasPrefix(strings.TrimPrefix(part, "-"), "spec.") || status {
			assert.Equal(t, wants, status, "A2: %s in a %s", part, action.Kind)
		}
	}
}

func (d decisionTest) checkEvents(t *testing.T, action decision.Action) {
	var events []string
	for _, event := range action.Events {
		events = append(events, event.Type+" "+string(event.Reason)+" "+event.On.String())
		assert.NotContains(t, event.Message, "\n", "N: one line")
		assert.LessOrEqual(t, len(event.Message), 1024, "N: bounded")
		assert.NotEmpty(t, event.Message, "N")
		assert.NotEmpty(t, event.UID, "N: an event is about one object, not about a name")
		for _, part := range d.says {
			assert.Contains(t, event.Message, part, "N")
		}
	}
	assert.Equal(t, d.events, events, "N")
}

// checkOrder asks again with every list the other way round: the answer depends on none of their orders.
func (d decisionTest) checkOrder(t *testing.T, action decision.Action) {
	turned := d.copy()
	slices.Reverse(turned.known.Volumes)
	slices.Reverse(turned.known.Claims)
	slices.Reverse(turned.known.Classes)
	slices.Reverse(turned.known.Attachments)
	slices.Reverse(turned.known.LiveReads)
	again, _ := turned.decide()
	assert.Equal(t, action, again, "the same objects in any order, the same answer")
}

// copy is the row with objects of its own.
func (d decisionTest) copy() decisionTest {
	d.claim, d.volume, d.known = d.claim.DeepCopy(), d.volume.DeepCopy(), CopyOf(d.known)
	return d
}

// complete is the row with its object among what is known, and what a deleter or recycler needs announced on it.
func (d decisionTest) complete() decisionTest {
	if names := d.options.Hooks; !d.fresh && len(names.Deleters)+len(names.SourceDeleters)+len(names.Recyclers) > 0 {
		d = d.announce()
	}
	if d.claim != nil {
		d.known.Claims = append(slices.Clip(d.known.Claims), d.claim)
	} else {
		d.known.Volumes = append(slices.Clip(d.known.Volumes), d.volume)
	}
	return d
}

// announce is the row with an announcement on its object, as this sync has written it for the calls that were answered.
func (d decisionTest) announce() decisionTest {
	d = d.copy()
	announcement := reclaim.Announcement{By: "me", Token: 7, Seconds: 120}
	d.options.Identity = announcement.By
	for i := range d.known.Answers {
		d.known.Answers[i].Token = announcement.Token
	}
	if d.volume != nil {
		announcement.Recycles = d.volume.Spec.PersistentVolumeReclaimPolicy == corev1.PersistentVolumeReclaimRecycle
		reclaim.Announce(d.volume, announcement)
		d.known.Answers = append(d.known.Answers, decision.Answer{Of: decision.UpdateVolume, For: d.volume.UID, Token: announcement.Token})
		return d
	}
	if slices.Contains(d.claim.Finalizers, decision.ProvisioningFinalizer) {
		announcement.Done = slices.ContainsFunc(d.known.Answers, func(answer decision.Answer) bool {
			return answer.Of == decision.RunDeleter && answer.Hook == Own && answer.For == d.claim.UID && answer.Err == nil // and that is noted
		})
		reclaim.Announce(d.claim, announcement)
		d.known.Answers = append(d.known.Answers, decision.Answer{Of: decision.UpdateClaim, For: d.claim.UID, Token: announcement.Token})
		if slices.Contains(d.known.LiveReads, OwnKey) {
			d.known.LiveReads = append(d.known.LiveReads, obj.KeyOf(d.claim))
		}
	}
	return d
}

const (
	// unannounced is how a write differs that drops the announcement, and tokenGrows one that announces anew.
	// On a volume a finalizer goes with it; letsGo is how.
	letsGo        = " -finalizer " + reclaim.AnnouncementFinalizer
	unannounced   = " -annotation " + reclaim.AnnouncementAnnotation
	tokenGrows    = "annotation " + reclaim.AnnouncementAnnotation + `="{\"by\":\"me\",\"token\":8,\"seconds\":120}"`
	notedDone     = "annotation " + reclaim.AnnouncementAnnotation + `="{\"by\":\"me\",\"token\":7,\"seconds\":120,\"done\":true}"`
	announcesAnew = "R8 UpdateClaim pvc/default/data: " + tokenGrows
)

// recyclerAnnounced puts the announcement of a recycler on a volume, by "me".
func recyclerAnnounced(volume *corev1.PersistentVolume) {
	reclaim.Announce(volume, reclaim.Announcement{By: "me", Token: 7, Seconds: 600, Recycles: true})
}

// announcedBy puts the announcement of somebody on a volume.
func announcedBy(who string, done bool) VolumeEdit {
	return func(volume *corev1.PersistentVolume) {
		reclaim.Announce(volume, reclaim.Announcement{By: who, Token: 7, Seconds: 600, Done: done})
	}
}

// listed returns what is known, and that all claims were listed live.
func listed(known decision.Snapshot) decision.Snapshot {
	known.LiveReads = append(slices.Clone(known.LiveReads), obj.ClaimsKey())
	return known
}
