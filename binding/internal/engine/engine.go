package engine

import (
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/pvbind/pvbind/binding/decision"
	"github.com/pvbind/pvbind/binding/hooks"
	"github.com/pvbind/pvbind/binding/index"
	"github.com/pvbind/pvbind/binding/internal/zeromap"
	"github.com/pvbind/pvbind/binding/obj"
)

// State is all that a Controller remembers. It is not safe for concurrent use.
type State struct {
	store
	options decision.Options
	// tasks are the syncs that have begun and not finished.
	tasks map[obj.Key]*task
	// locks maps a locked object to the key of the sync that has it locked. A sync locks its own object, and a claim's sync
	// also the volume that it binds.
	locks map[obj.Key]obj.Key
	// waiters are the syncs to run once an object is unlocked.
	waiters links
	// inDoubt maps each object that must be read live before the next decision to the sync that left it so: its last write
	// conflicted or has an unknown outcome, or a cache contradicts what is known (W7). A volume that a claim's sync left in
	// doubt stays reserved for that claim until the read (B6).
	inDoubt map[obj.Key]obj.Key
	// leftInDoubt is the same from the other side: by sync, the objects that it left in doubt.
	leftInDoubt links
	// offers are the claims that volumes were offered to (W1).
	offers offers
	// hooks bounds how many hooks run at once (Rh), and workers how many syncs (W9).
	hooks, workers slots
	// lastEvents are the events of the last decision on a key (N), and of earlier ones on what has had no turn since (stillTold).
	lastEvents map[obj.Key]told
	// rejected are the claims whose last write the server rejected, and that are to be synced again after a delay.
	rejected map[obj.Key]rejection
	refused  map[obj.Key]refusal // by object: the last write that got a conflict for an answer
	failures map[obj.Key]failure
	// restore is what is left to do since the server went back in time (W8).
	restore restore
	// unclaimed is what provisioners made in syncs that ended before there was a volume for it. It counts only once its claim is
	// gone, by the key of that, and until it is deleted (P2). The first have their turn in the next sync.
	unclaimed map[obj.Key][]decision.Answer
	// deleted is what deleters have done in syncs that ended before it was noted on their volumes, by the UIDs of these (R8).
	deleted map[types.UID]decision.Answer
	// announced says since when the announcement on each claim or volume that has one was seen as it is (R8).
	announced map[obj.Key]sighting
	now       time.Time
}

// sighting is an announcement, and when it was first seen. Of a claim it may have until when that version takes no volume for it.
type sighting struct {
	text    string
	since   time.Time
	version string // "" if that is not known
	halted  time.Time
}

// failure says how often a key has failed in a row, and until when it waits, whatever wakes it: its writes are undone, and what wakes it is most
// often what it has written itself, or who has undone that (W6).
type failure struct {
	times int
	held  time.Time // zero if a change of an object may help
}

// rejection has the versions of claim and volume that a rejected write was about.
type rejection struct {
	claimVersion          string
	volume, volumeVersion string
}

// New returns a State that has no objects yet, and runs at most maxHooks hooks at once.
func New(options decision.Options, maxHooks int) *State {
	return &State{store: store{index: &index.Index{}}, options: options.WithDefaults(), hooks: slots{limit: maxHooks}}
}

// ShareWorkers bounds how many syncs run at once, and shares them out among the namespaces (W9). The caller calls Start for one
// more than that, so that whoever comes is seen at once.
func (s *State) ShareWorkers(workers int) { s.workers.limit = max(0, workers) }

// Step is what a sync needs next: an action to perform, whose Reply goes to Proceed, or nothing if the sync is done.
type Step struct {
	Publish []decision.Event // before the action is performed
	Action  decision.Action
	Done    bool
	Err     error
	Next    []obj.Key     // the keys to sync next, in order; none twice
	After   time.Duration // if not zero, how long to wait before the same key is synced again
}

// Complete returns the step with a complete action: see decision.Action.Complete.
func (s Step) Complete() Step {
	s.Action = s.Action.Complete()
	return s
}

// Reply is what came of an action.
type Reply struct {
	Object obj.Object // what the server stored or holds; nil: nothing, or an error
	Err    error

	Claims      []*corev1.PersistentVolumeClaim // for a read of all claims
	Pods        []*corev1.Pod                   // for a read of pods
	Attachments []*storagev1.VolumeAttachment   // for a read of attachments

	parsed      Parsed
	owners      map[string][]*corev1.PersistentVolumeClaim // of the claims: those that may own each volume (M2)
	podsByClaim podLists                                   // of the pods: those of very many claims too
	podClaims   map[obj.Key]*podClaims
}

// SetTime sets the time, which the engine does not read itself. Call it before every other method, once time has passed. It
// must not go back: a time.Time of time.Now does not, by its monotonic reading.
func (s *State) SetTime(now time.Time) { s.now = now }

// Start begins a sync. If another sync has the object locked, or there is no worker for its namespace, this one is done at once,
// and runs again after another has ended.
func (s *State) Start(key obj.Key) Step { return s.StartDraft(key).Complete() }

// StartDraft is Start for a caller who holds a lock, and calls Step.Complete when it does not any more.
func (s *State) StartDraft(key obj.Key) Step {
	if _, locked := s.locks[key]; locked {
		s.waiters.add(key, key)
		return s.refuse(key)
	}
	if rest := s.failures[key].held.Sub(s.now); rest > 0 {
		return s.keepWaiting(key, rest)
	}
	if !s.workers.acquire(key, s.namespaceOf(key)) {
		return s.refuse(key)
	}
	t := &task{key: key, answers: slices.Concat(s.resume(key), s.takeUnclaimed(key))}
	zeromap.Put(&s.locks, key, key)
	zeromap.Put(&s.tasks, key, t)
	return s.advance(t)
}

// refuse ends a sync that cannot begin. What was promised to it goes to others, unless the same key is being synced: that sync may
// have been promised it, and leaves it when it ends.
func (s *State) refuse(key obj.Key) Step {
	if s.tasks[key] != nil {
		return Step{Done: true}
	}
	return Step{Done: true, Next: s.release(key)}
}

// keepWaiting ends a sync whose writes were undone before, and whose delay is not over. What was offered to it is offered to others (W1).
func (s *State) keepWaiting(key obj.Key, rest time.Duration) Step {
	next := append(s.offers.endWait(key), s.release(key)...)
	s.unnotify(key)
	return Step{Done: true, Next: Unique(next), After: rest}
}

// Proceed takes the reply to the action of the last step, and returns the next step.
func (s *State) Proceed(key obj.Key, got Reply) Step { return s.ProceedDraft(key, got).Complete() }

// ProceedDraft is to Proceed what StartDraft is to Start.
func (s *State) ProceedDraft(key obj.Key, got Reply) Step {
	t := s.tasks[key]
	var err error
	switch {
	case t.pending.Kind == decision.Read:
		err = s.handleRead(t, got)
	case t.pending.RunsHook():
		if t.outdated && t.pending.Kind != decision.RunProvisioner {
			// What it was called for may not be so any more, and its context has ended meanwhile.
			got = Reply{Err: &hooks.Error{Meaning: hooks.InProgress, Err: ErrWentBack}}
		}
		s.recordAnswer(t, got, t.outdated) // as unsettleMade says
		switch {
		case t.pending.Kind == decision.RunProvisioner: // somebody else may have stored the volume meanwhile, and the claim been deleted
			delete(t.live, t.pending.Target())
			delete(t.live, t.key)
		case t.key.Kind == obj.KindClaim && got.Err == nil: // a volume that stood for what was deleted does not for what is made after it
			s.goneVolumes.remove(t.pending.Volume.Name)
			delete(t.live, t.key) // nor does the next call of the deleter rely on what was read before this one
		case t.key.Kind == obj.KindClaim:
			t.live = nil
		}
	default:
		err = s.handleWrite(t, got)
	}
	if errors.Is(err, errNotStored) { // as by a policy, under which other writes of this sync may have made versions
		return s.finishHeld(t, s.failedUpdate(t, err), fmt.Errorf("%s: %w", t.pending, err))
	}
	if err != nil {
		return s.finish(t, decision.Action{Events: s.failedUpdate(t, err)}, fmt.Errorf("%s: %w", t.pending, err))
	}
	return s.advance(t)
}
