package model_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	corev1 "k8s.io/api/core/v1"

	"github.com/pvbind/pvbind/binding/decision"
	"github.com/pvbind/pvbind/binding/internal/judge"
	"github.com/pvbind/pvbind/reclaim"
)

// trouble is something that happens to the controllers, or that others do, and that they have to survive.
type trouble string

const (
	crash            trouble = "a crash"
	refusal          trouble = "a Conflict"
	lostCall         trouble = "a lost call or answer"
	goingOn          trouble = "a hook that goes on"
	lateWrite        trouble = "a write that is late"
	lie              trouble = "a NotFound that is a lie"
	proxyLie         trouble = "a proxy's NotFound"
	oldLie           trouble = "an old reply"
	bareLie          trouble = "a proxy's bare metadata"
	otherLeader      trouble = "another leader, in a sync"
	pause            trouble = "a leader paused for long"
	restored         trouble = "the server restored"
	tenantMarks      trouble = "tenant: annotations"
	tenantNames      trouble = "tenant: volumeName"
	tenantFinalizers trouble = "tenant: finalizers"
	adminPolicy      trouble = "admin: policy"
	adminFrees       trouble = "admin: claimRef cleared"
	adminReserves    trouble = "admin: claimRef edited"
	adminFinalizers  trouble = "admin: finalizers"
	adminMarks       trouble = "admin: annotations"
	forcedDeletion   trouble = "a forced deletion"
)

var troubles = []trouble{crash, refusal, lostCall, goingOn, lateWrite, lie, proxyLie, oldLie, bareLie, otherLeader, pause, restored, tenantMarks, tenantNames, tenantFinalizers,
	adminPolicy, adminFrees, adminReserves, adminFinalizers, adminMarks, forcedDeletion}

// troubleSet is a set of troubles, a bit for each.
type troubleSet uint32

// troubleOf returns which trouble a move is, as a set.
func (m *model) troubleOf(mv move) troubleSet {
	is, ok := map[moveKind]trouble{crashes: crash, conflicts: refusal, losesRequest: lostCall, losesAnswer: lostCall, goesOn: goingOn, arrives: lateWrite,
		lies: lie, proxies: proxyLie, recalls: oldLie, bares: bareLie, repeats: oldLie, outwaits: pause, goesBack: restored}[mv.kind]
	if mv.kind == userActs {
		is, ok = m.actions[mv.at].trouble, true
	}
	if !ok || is == "" {
		return 0
	}
	return 1 << slices.Index(troubles, is)
}

// troubleBeside returns which trouble lasts while a move is taken: another leader that is paused anywhere in a sync.
func troubleBeside(now *state, mv move) troubleSet {
	if other := now.leaders[1-mv.who]; other == nil || other.busy() == 0 {
		return 0
	}
	return 1 << slices.Index(troubles, otherLeader)
}

// troubleIn returns which trouble an action of people is; "" for what they do every day.
func troubleIn(text string) trouble {
	words := strings.Fields(text)
	about, _, _ := strings.Cut(words[1], "/")
	column := ""
	if len(words) > 2 {
		column, _, _ = strings.Cut(words[2], "=")
	}
	switch verb := words[0] + " " + about + " " + column; {
	case words[0] == "remove":
		return forcedDeletion
	case words[0] == "annotate" && about == "pvc":
		return tenantMarks
	case words[0] == "annotate":
		return adminMarks
	case verb == "set pvc VOLUME":
		return tenantNames
	case verb == "set pvc FINALIZERS":
		return tenantFinalizers
	case verb == "set pv POLICY":
		return adminPolicy
	case verb == "set pv FINALIZERS":
		return adminFinalizers
	case verb == "set pv CLAIM" && strings.HasSuffix(words[2], "=-"):
		return adminFrees
	case verb == "set pv CLAIM":
		return adminReserves
	}
	return ""
}

// destruction is a step of a controller that destroys something, or by which data may come to somebody else.
type destruction string

const (
	deletesStorage  destruction = "deleter"
	scrubs          destruction = "recycler"
	deletesLeftover destruction = "leftover"
	deletesVolume   destruction = "volume gone"
	letsStorageGo   destruction = "finalizer"
	releases        destruction = "Released"
	frees           destruction = "unbound"
	unprotects      destruction = "unprotected"
	loses           destruction = "Lost"
	takes           destruction = "bound"
)

var destructions = []destruction{deletesStorage, scrubs, deletesLeftover, deletesVolume, letsStorageGo, releases, frees, unprotects, loses, takes}

// destructionSet is a set of them, a bit for each.
type destructionSet uint16

// coverage is which trouble has met which destructive step: that step took effect some time after the trouble.
type coverage map[trouble]map[destruction]bool

func (c coverage) add(t trouble, d destruction) {
	if c[t] == nil {
		c[t] = map[destruction]bool{}
	}
	c[t][d] = true
}

// step is a move between two states: which trouble it is, and what it destroys.
type step struct {
	from, to uint32
	is       troubleSet
	beside   troubleSet // that lasts while it is taken, and no longer
	destroys destructionSet
}

// coverageOf returns which troubles are followed by which destructive steps, on any way.
func coverageOf(states int, steps []step) coverage {
	after := make([]troubleSet, states)
	for changed := true; changed; {
		changed = false
		for _, s := range steps {
			if then := after[s.to] | after[s.from] | s.is; then != after[s.to] {
				after[s.to], changed = then, true
			}
		}
	}
	met := coverage{}
	for _, s := range steps {
		for i, t := range troubles {
			for j, d := range destructions {
				if (after[s.from]|s.beside)&(1<<i) != 0 && s.destroys&(1<<j) != 0 {
					met.add(t, d)
				}
			}
		}
	}
	return met
}

// destructionsOf returns what a call that takes effect destroys. Before is what a write has replaced.
func destructionsOf(action decision.Action, before *revision) (all destructionSet) {
	for _, d := range listDestructions(action, before) {
		all |= 1 << slices.Index(destructions, d)
	}
	return all
}

func listDestructions(action decision.Action, before *revision) (all []destruction) {
	switch action.Kind {
	case decision.RunDeleter:
		if action.Volume.UID == "" {
			return []destruction{deletesLeftover}
		}
		return []destruction{deletesStorage}
	case decision.RunRecycler:
		return []destruction{scrubs}
	case decision.DeleteVolume:
		return []destruction{deletesVolume}
	}
	if before == nil {
		return nil
	}
	was, sent := before.object, subject(action)
	lets := func(finalizer string) bool {
		return was.GetDeletionTimestamp() != nil && slices.Contains(was.GetFinalizers(), finalizer) && !slices.Contains(sent.GetFinalizers(), finalizer)
	}
	if lets(reclaim.ClaimProtection) || lets(reclaim.VolumeProtection) {
		all = append(all, unprotects)
	}
	if lets(reclaim.InTreeFinalizer) {
		all = append(all, letsStorageGo)
	}
	switch action.Kind {
	case decision.UpdateVolumeStatus:
		if action.Volume.Status.Phase == corev1.VolumeReleased {
			all = append(all, releases)
		}
	case decision.UpdateVolume:
		volume := was.(*corev1.PersistentVolume)
		if judge.Unbinds(volume, action.Volume) {
			all = append(all, frees)
		}
		if ref := action.Volume.Spec.ClaimRef; ref != nil && ref.UID != "" && (volume.Spec.ClaimRef == nil || volume.Spec.ClaimRef.UID == "") {
			all = append(all, takes)
		}
	case decision.UpdateClaimStatus:
		if action.Claim.Status.Phase == corev1.ClaimLost {
			all = append(all, loses)
		}
	}
	return all
}

// cannotMeet are the cells that stay empty, with the reason.
var cannotMeet = func() map[trouble]map[destruction]string {
	cannot := map[trouble]map[destruction]string{}
	for _, edit := range []trouble{adminPolicy, adminFrees, adminFinalizers, adminMarks} {
		cannot[edit] = map[destruction]string{deletesLeftover: "what is left over never had a volume that could be edited"}
	}
	cannot[adminReserves] = map[destruction]string{deletesLeftover: "what stood for it is retained"}
	cannot[pause] = map[destruction]string{
		releases: "it is not announced, so that nobody waits: see the row of the other leader",
		loses:    "it is not announced, so that nobody waits: see the row of the other leader",
	}
	cannot[goingOn] = map[destruction]string{
		releases: "it is Released already",
		loses:    "nobody has it any more",
	}
	return cannot
}()

// judge prints the table, and holds a run of all worlds to it: each trouble meets each destructive step.
func (c coverage) judge(t *testing.T, complete bool) {
	var table strings.Builder
	fmt.Fprintf(&table, "%-26s", "")
	for _, d := range destructions {
		fmt.Fprintf(&table, "%-12s", d)
	}
	for _, of := range troubles {
		fmt.Fprintf(&table, "\n%-26s", of)
		for _, d := range destructions {
			cell := map[bool]string{true: "met", false: "-"}[c[of][d]]
			why := cannotMeet[of][d]
			if why != "" {
				cell = "cannot"
			}
			fmt.Fprintf(&table, "%-12s", cell)
			if complete {
				assert.True(t, c[of][d] != (why != ""), "%s, and then %s: met=%v, cannot be met: %q", of, d, c[of][d], why)
			}
		}
	}
	t.Logf("which trouble has met which destructive step:\n%s", table.String())
}

// tells reports whether an event that was published is sent.
func (m *model) tells(decision.Event) bool { return m.sabotage != tellsNobody }
