package model_test

import (
	"errors"
	"fmt"
	"math/bits"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/pvbind/pvbind/binding/decision"
	"github.com/pvbind/pvbind/binding/hooks"
	"github.com/pvbind/pvbind/binding/internal/engine"
	. "github.com/pvbind/pvbind/binding/internal/testkit"
	"github.com/pvbind/pvbind/binding/obj"
	"github.com/pvbind/pvbind/reclaim"
)

// move is one step of the world: which kind, of which leader, and about what.
type move struct {
	kind moveKind
	who  uint8 // which leader
	at   uint8 // which name, kind or action
}

type moveKind uint8

const (
	observes      moveKind = iota // a change reaches a cache
	starts                        // a sync begins, and decides
	sends                         // what was decided reaches the server
	receives                      // its answer is seen, and the sync decides again
	outlives                      // it has seen the announcement of a leader that is gone for long enough
	resyncs                       // it compares its caches with what it knows, some time after a restore (W7)
	retries                       // a delay is over
	firstByOthers                 // the first that is not a controller's own
	crashes                       // all that a controller knew is lost
	conflicts                     // a write is refused, for somebody else's was first
	losesRequest                  // a call does not arrive, and nobody can tell
	losesAnswer                   // a write takes effect, and its answer is lost
	goesOn                        // a deleter or recycler answers that it is at work
	delays                        // the answer is lost, and the write may arrive later
	arrives                       // such a write arrives
	userActs                      // people do something
	outwaits                      // as outlives, of a leader that is paused for so long
	lies                          // a read is told NotFound, as by a server restored elsewhere
	proxies                       // a read is told NotFound, by a proxy
	recalls                       // a read is told NotFound, by what keeps replies from before the object
	bares                         // a read is answered with the metadata of another object, by a proxy
	repeats                       // a read is answered as known, by what keeps replies, after one that says otherwise
	backsUp                       // a backup of the server is made
	goesBack                      // the server is restored from it
	notices                       // a list tells a leader of that
)

func (m move) byController() bool { return m.kind < firstByOthers }

// moves returns all that can happen in the state.
func (m *model) moves(now *state) []move {
	found := m.found[:0]
	for who, l := range now.leaders {
		if l != nil {
			found = m.movesOf(found, now, uint8(who), l)
		}
	}
	if now.late != nil {
		found = append(found, move{kind: arrives})
	}
	if now.people > 0 {
		for at := range m.actions {
			found = append(found, move{kind: userActs, at: uint8(at)})
		}
	}
	switch now.travel {
	case mayBackUp:
		found = append(found, move{kind: backsUp})
	case backedUp:
		called := slices.ContainsFunc(now.leaders[:], func(l *leader) bool { return l != nil && l.calls() })
		if called || !m.whileCalled {
			found = append(found, move{kind: goesBack})
		}
	}
	m.found = found
	return found
}

func (m *model) movesOf(found []move, now *state, who uint8, l *leader) []move {
	for kind := range watched {
		if _, ok := l.next(&now.server, kind); ok {
			found = append(found, move{observes, who, uint8(kind)})
		}
	}
	free := l.busy() < m.workers
	for at := range l.queue.each {
		if free && l.running[at] == nil {
			found = append(found, move{starts, who, uint8(at)})
		}
	}
	for at, running := range l.running {
		switch {
		case running == nil:
		case running.answer != nil:
			found = append(found, move{receives, who, uint8(at)})
		default:
			found = append(found, move{sends, who, uint8(at)})
			found = m.faultsOf(found, now, who, uint8(at), running)
		}
	}
	if now.faults > 0 {
		found = append(found, move{kind: crashes, who: who})
	}
	if l.resyncDue && l.idle(&now.server) {
		found = append(found, move{kind: resyncs, who: who})
	}
	for at := range l.due.each {
		if l.idle(&now.server) {
			found = append(found, move{retries, who, uint8(at)})
		}
	}
	if l.mayNotice {
		found = append(found, move{kind: notices, who: who})
	}
	return m.waitsOf(found, now, who, l)
}

// waitsOf returns which announcements of others a leader may have waited for, and whether for the calls of others after a restore.
func (m *model) waitsOf(found []move, now *state, who uint8, l *leader) []move {
	if !m.hooked() {
		return found
	}
	if l.state.AwaitsCalls() && l.delayed != 0 && l.idle(&now.server) {
		first := uint8(bits.TrailingZeros16(uint16(l.delayed)))
		switch other := now.leaders[1-who]; {
		case (other == nil || !other.calls()) && !now.callIsLate():
			found = append(found, move{outlives, who, first})
		case now.pauses > 0:
			found = append(found, move{outwaits, who, first})
		}
	}
	for at, key := range m.keys {
		if !l.state.Awaits(key) {
			continue
		}
		by, _ := reclaim.AnnouncementOf(l.state.Known(key))
		alive := now.callIsLate() || slices.ContainsFunc(now.leaders[:], func(other *leader) bool { return other != nil && other.name == by.By })
		switch {
		case alive && now.pauses == 0:
		case alive:
			found = append(found, move{outwaits, who, uint8(at)})
		default:
			found = append(found, move{outlives, who, uint8(at)})
		}
	}
	return found
}

// faultsOf returns what may happen to a call.
func (m *model) faultsOf(found []move, now *state, who, at uint8, running *request) []move {
	if now.lies > 0 && running.action.Kind == decision.Read && !isList(running.action.Key) {
		found = append(found, move{proxies, who, at}, move{recalls, who, at}, move{bares, who, at})
		if now.server.objects[running.target] != nil {
			found = append(found, move{lies, who, at})
		}
		if now.leaders[who].state.Disputed(running.action.Key) && now.leaders[who].state.Known(running.action.Key) != nil {
			found = append(found, move{repeats, who, at})
		}
	}
	if now.faults == 0 {
		return found
	}
	for _, fault := range []moveKind{conflicts, losesRequest, losesAnswer, goesOn, delays} {
		happens := running.action.Writes()
		switch fault {
		case losesRequest:
			happens = true
		case losesAnswer:
			happens = happens || running.action.RunsHook()
		case goesOn:
			happens = running.action.RunsHook() && running.action.Kind != decision.RunProvisioner
		case delays:
			happens = happens && now.late == nil
		}
		if !happens {
			continue
		}
		found = append(found, move{fault, who, at})
	}
	return found
}

// apply returns the state after the move; nil if nothing comes of it. What it does and breaks is in m.effect.
func (m *model) apply(now *state, mv move) *state {
	m.effect = effect{}
	if m.beyond(now, mv) {
		return nil
	}
	next := *now
	switch mv.kind {
	case observes, starts, sends, receives, resyncs, retries, notices:
		m.step(&next, mv)
	case outwaits, outlives:
		if mv.kind == outwaits {
			next.pauses--
		}
		m.step(&next, mv)
	case crashes:
		next.faults--
		next.leaders[mv.who] = begin(&next.server, m.rules, int(mv.who), now.leaders[mv.who].starts+1)
	case conflicts, losesRequest, losesAnswer, goesOn, delays:
		next.faults--
		m.step(&next, mv)
	case lies, proxies, recalls, bares, repeats:
		next.lies--
		m.step(&next, mv)
		if now.travel == wentBack {
			next.leaders[mv.who].resyncDue = true // the next one finds what a lie has hidden (W7)
		}
	case arrives:
		m.perform(&next, next.late)
		next.late = nil
	case backsUp:
		next.backUp()
	case goesBack:
		m.goBack(&next)
	case userActs:
		if !m.actions[mv.at].do(&next) {
			return nil
		}
		next.people--
	}
	for who, l := range next.leaders {
		if l != nil && next.server.writes != now.server.writes && l.due != l.delayed {
			l = new(*l)
			l.due, next.leaders[who] = l.delayed, l
		}
		m.catchUp(now, &next, who)
	}
	return &next
}

// mostCreations is how often controllers may create volumes of one name. One whose cache lags for ever, and another that
// deletes what it creates, would go on without end, with a new UID each time.
const mostCreations = 2

// beyond reports whether a move is out of bounds: it would create a volume once too often.
func (m *model) beyond(now *state, mv move) bool {
	action := decision.Action{}
	switch mv.kind {
	case sends, losesAnswer:
		action = now.leaders[mv.who].running[mv.at].action
	case arrives:
		action = now.late.action
	}
	if action.Kind != decision.CreateVolume {
		return false
	}
	at := m.indexOf(action.Target())
	return now.server.objects[at] == nil && now.server.created[at] >= mostCreations
}

// step takes a step of a leader.
func (m *model) step(next *state, mv move) {
	l := next.leaders[mv.who]
	switch mv.kind {
	case observes, starts, receives, outwaits, outlives, resyncs, retries, notices:
		l = l.clone()
		l.state.SetTime(next.server.now())
	default:
		l = new(*l) // its state learns of nothing yet
	}
	next.leaders[mv.who] = l
	at := int(mv.at)
	switch mv.kind {
	case observes:
		m.observe(next, l, at)
	case starts:
		l.queue &^= nameAt(at)
		m.decided(next, l, at, l.state.Start(m.keys[at]), request{})
	case receives:
		m.receive(next, l, at)
	case outwaits, outlives:
		l.state.Outwait(m.keys[at])
		l.state.OutwaitCalls()
		l.queue |= nameAt(at)
		l.due = l.delayed // a claim may have waited for what is announced on its volume
	case retries:
		l.due &^= nameAt(at)
		l.queue |= nameAt(at)
	case resyncs:
		m.resync(&next.server, l)
	case notices:
		m.noticeRestore(l, -1)
		m.enqueue(l, l.state.ObserveRestore())
	default:
		m.send(next, l, at, mv.kind)
	}
}

// observe tells a leader of the next change of a kind.
func (m *model) observe(now *state, l *leader, kind int) {
	m.effect.observed = append(m.effect.observed, observed{btoi(l == now.leaders[1]), kind})
	told, _ := l.next(&now.server, kind)
	if len(l.first[kind]) > 0 {
		l.first[kind] = l.first[kind][1:]
	} else {
		l.seen[kind]++
	}
	before := l.state.Known(m.keys[told.at])
	switch {
	case told.deleted:
		m.enqueue(l, l.state.ObserveDeleted(told.object))
	case now.travel == wentBack && watched[kind] != obj.KindVolume && watched[kind] != obj.KindClaim:
		m.enqueue(l, l.state.Recheck(told.object)) // of what is never read live, a cache has the newest
	default:
		m.enqueue(l, l.state.Observe(told.object))
	}
	m.judgeKnown(now, l, told.at, before)
}

// catchUp tells a leader what can make no difference: of a change that it knows already, or of a kind whose cache
// does not lag in this model. Telling it now is as good as later: nothing else can come to depend on it.
func (m *model) catchUp(before, now *state, who int) {
	for kind := 0; kind < len(watched) && now.leaders[who] != nil; kind++ {
		for {
			l := now.leaders[who]
			told, ok := l.next(&now.server, kind)
			if !ok || !m.prompt[kind] && (now.travel == wentBack || !m.stale(l, told)) {
				break
			}
			if was := before.leaders[who]; was != nil && l.state == was.state {
				l = l.clone()
				now.leaders[who] = l
			}
			m.observe(now, l, kind)
		}
	}
}

// stale reports whether a change is no news to the leader.
func (m *model) stale(l *leader, told change) bool {
	uid := told.object.GetUID()
	known := l.state.Known(m.keys[told.at])
	if known == nil || known.GetUID() != uid {
		return l.state.Buried(uid)
	}
	return !told.deleted && m.revisions.of(known).version >= told.version
}

func (m *model) enqueue(l *leader, keys []obj.Key) {
	for _, key := range keys {
		l.queue |= nameAt(m.indexOf(key))
	}
}

// effect is what a move did.
type effect struct {
	writes int      // of the controllers, that changed something
	events int      // sent
	said   string   // by a sync that ended with an error
	broken []string // rules, and how

	observed []observed
	destroys destructionSet
}

// observed is that a leader was told of a change of a kind.
type observed struct{ who, kind int }

func (m *model) broke(format string, args ...any) {
	m.effect.broken = append(m.effect.broken, fmt.Sprintf(format, args...))
}

// decided takes what a step of a sync came to.
func (m *model) decided(now *state, l *leader, at int, step engine.Step, was request) {
	m.effect.events += len(step.Publish)
	m.noteTold(now, step.Publish)
	l.running[at] = nil
	failed := was.failed
	if !step.Done {
		next := &request{action: step.Action, target: m.indexOf(step.Action.Target()), reads: was.reads, failed: failed, outrun: was.outrun}
		if sent := subject(next.action); sent != nil {
			next.content, next.version, next.token = m.revisions.contentOf(sent), versionIn(sent), tokenOn(sent)
		}
		m.judgeDecision(l, next)
		l.running[at] = next
		return
	}
	if step.Err != nil {
		m.effect.said = step.Err.Error()
	}
	if errors.Is(step.Err, engine.ErrWentBack) {
		m.noticeRestore(l, was.target)
	}
	again := step.After > 0 && (failed || step.Err != nil)
	if again {
		l.queue |= nameAt(at)
		l.state.OutwaitDelay(m.keys[at])
	}
	l.due &^= nameAt(at)
	if l.delayed &^= nameAt(at); step.After > 0 && !again && !l.state.Awaits(m.keys[at]) {
		l.delayed |= nameAt(at)
	}
	if m.sabotage != wakesNobody {
		m.enqueue(l, step.Next)
	}
}

// send lets a call reach the server, or not.
func (m *model) send(now *state, l *leader, at int, how moveKind) {
	running := *l.running[at]
	running.noticed = l.noticed
	var got answer
	switch {
	case how == conflicts:
		got = answer{fail: conflict}
	case how == losesRequest, how == delays:
		got = answer{fail: noAnswer}
	case how == goesOn:
		got = m.beginHook(now, &running)
	case how == lies:
		got = answer{fail: notFound, lied: true}
	case how == recalls:
		got = answer{fail: fromBefore}
	case how == proxies:
		got = answer{fail: proxied}
	case how == repeats:
		got = answer{got: m.of(l.state.Known(running.action.Key)), lied: true}
	case how == bares:
		got = answer{fail: metadataOnly}
	default:
		got = m.sabotaged(now, l, &running)
	}
	switch how {
	case losesAnswer:
		got = answer{fail: noAnswer}
	case delays:
		now.late = &running
	}
	answered := running
	answered.answer = &got
	l.running[at] = &answered
}

// perform does what a controller asks of the server.
func (m *model) perform(now *state, of *request) answer {
	s, action := &now.server, of.action
	switch {
	case action.RunsHook():
		return m.runHook(now, of)
	case !action.Writes():
		switch action.Key.Kind {
		case obj.KindPods:
			return s.list(obj.KindPod)
		case obj.KindAttachments:
			return s.list(obj.KindAttachment)
		case obj.KindClaims:
			return s.list(obj.KindClaim)
		}
		return s.get(m.indexOf(action.Key))
	}
	at := m.indexOf(action.Target())
	before, wrote := s.objects[at], s.written[at]
	got := s.write(at, action)
	if s.written[at] != wrote {
		m.effect.writes++
		m.effect.destroys |= destructionsOf(of.action, before)
		m.judgeWrite(now, at, before, of.outrun)
		m.judgeEnd(now, action, before)
		m.retainStorage(now, at, before)
		if m.whileCalled && action.Kind == decision.CreateVolume && (of.outrun || now.travel == wentBack && of.noticed == 0) { // the storage has seen no token since the restore
			now.storage.excused |= nameAt(at)
		}
		if action.Claim != nil {
			now.asked = now.asked || action.Claim.Annotations[Provisioner] != ""
			m.writeByPods(now, action.Claim)
			m.noteData(now, of, before)
		}
	}
	return got
}

// receive lets a sync see its answer, and decide again.
func (m *model) receive(now *state, l *leader, at int) {
	was := l.running[at]
	before := l.state.Known(m.keys[was.target])
	next := *was
	step := l.state.Proceed(m.keys[at], replyOf(was.action.Target(), was.answer))
	target := nameAt(was.target)
	switch fail := was.answer.fail; {
	case was.action.Kind == decision.Read && (fail == "" || fail == notFound) && !was.answer.lied:
		next.reads |= target
		l.inDoubt &^= target
		if was.noticed == l.noticed {
			l.unread &^= target
		}
	case was.action.Writes():
		next.reads, next.outrun = 0, false
		if fail != "" && fail != invalid || was.action.Kind == decision.DeleteVolume { // its finalizers may keep it
			l.inDoubt |= target
		}
	}
	if was.action.Writes() && was.answer.got != nil && now.travel != wentBack {
		m.judgeReply(l, was.answer.got)
	}
	m.judgeKnown(now, l, was.target, before)
	next.failed = was.failed || was.answer.fail != "" && (was.action.RunsHook() || was.action.Kind == decision.CreateVolume)
	m.decided(now, l, at, step, next)
}

var (
	errNoAnswer    = errors.New("connection lost")
	errorsByReason = map[failure]error{
		alreadyExists: apierrors.NewAlreadyExists(schema.GroupResource{Resource: "things"}, "it"),
		conflict:      apierrors.NewConflict(schema.GroupResource{Resource: "things"}, "it", errors.New("modified")),
		invalid:       apierrors.NewInvalid(schema.GroupKind{Kind: "Thing"}, "it", nil),
		noAnswer:      errNoAnswer,
		staleToken:    &hooks.Error{Meaning: hooks.StaleToken},
		inProgress:    &hooks.Error{Meaning: hooks.InProgress},
	}
)

// replyOf returns the answer as the controller sees it. Objects are shared: nobody may modify them (X6).
func replyOf(read obj.Key, a *answer) engine.Reply {
	switch {
	case a.fail == notFound:
		return engine.Reply{Err: NotFoundError(read)}
	case a.fail == fromBefore:
		return engine.Reply{Err: AbsentAsOf(read, strconv.Itoa(beforeAll))}
	case a.fail == proxied:
		return engine.Reply{Err: ProxyError(read)}
	case a.fail == metadataOnly:
		return engine.Reply{Object: BareObject(read)}.Checked(decision.Action{Kind: decision.Read, Key: read})
	case a.fail != "":
		return engine.Reply{Err: errorsByReason[a.fail]}
	case a.got != nil:
		return engine.Reply{Object: a.got.object}
	}
	switch read.Kind {
	case obj.KindAttachments:
		return engine.Reply{Attachments: objectsOf[*storagev1.VolumeAttachment](a.listed)}
	case obj.KindClaims:
		return engine.Reply{Claims: objectsOf[*corev1.PersistentVolumeClaim](a.listed)}
	}
	return engine.Reply{Pods: objectsOf[*corev1.Pod](a.listed)}
}

func objectsOf[T obj.Object](listed []*revision) []T {
	objects := make([]T, len(listed))
	for i, one := range listed {
		objects[i] = one.object.(T)
	}
	return objects
}
