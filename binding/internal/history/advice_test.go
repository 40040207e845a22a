package history

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/pvbind/pvbind/binding/bindingtest"
	"github.com/pvbind/pvbind/binding/decision"
	"github.com/pvbind/pvbind/binding/hooks"
	"github.com/pvbind/pvbind/binding/internal/judge"
	. "github.com/pvbind/pvbind/binding/internal/testkit"
	"github.com/pvbind/pvbind/binding/obj"
	"github.com/pvbind/pvbind/reclaim"
)

// TestAdviceIsFollowed plays random histories in which a person asks what to do, of CheckPair, of the operations and of the
// events, and does literally what is said; what the text leaves open is drawn at random. What was promised comes true,
// and the X rules hold, as in all histories. Each sentence that people are told has a row in a table with what a reader
// does about it: one without a row fails the test, one that asks for something and has a row without a reader, and in the full
// mode a row that is never followed. What random histories hardly reach, directed ones bring about in every mode but the short one.
//
// PVBIND_SEED replays one history; PVBIND_MODE=full plays enough that each row is followed, and long many more.
func TestAdviceIsFollowed(t *testing.T) {
	t.Parallel()
	seeds := Seeds(t, Counts{Short: 5, Usual: 120, Full: 600, Long: 50_000})
	followed := map[string]int{}
	t.Run("histories", func(t *testing.T) {
		for seed := range seeds {
			r := newReader(rand.NewPCG(seed, 11), followed)
			r.play()
			if len(r.Broken) > 0 {
				require.Empty(t, r.Broken, "replay with PVBIND_SEED=%d go test ./binding/internal/history -run '^TestAdviceIsFollowed$':\n%s", seed, strings.Join(r.log, "\n"))
			}
		}
	})
	if ModeOfRun() != RunShort {
		directed := map[string]int{} // apart, so that no random history hides that a directed one is missing
		t.Run("directed", func(t *testing.T) { playDirected(t, directed) })
		for _, row := range keptAdvices() {
			assert.NotZero(t, directed["kept "+row.pattern], "no directed history reaches: %s", row.pattern)
		}
		for text, count := range directed {
			followed[text] += count
		}
	}
	for _, row := range advices() {
		t.Logf("%6d %6d kept  %s", followed[row.pattern], followed["kept "+row.pattern], row.pattern)
		if row.follow != nil && ModeOfRun() == RunFull && os.Getenv("PVBIND_SEED") == "" {
			assert.NotZero(t, followed[row.pattern], "nobody was told: %s", row.pattern)
			assert.NotZero(t, followed["kept "+row.pattern], "never looked whether it came true: %s", row.pattern)
		}
	}
}

// patterns are those of the table, compiled.
var patterns = func() map[string]*regexp.Regexp {
	compiled := map[string]*regexp.Regexp{}
	for _, row := range advices() {
		compiled[row.pattern] = regexp.MustCompile(row.pattern)
	}
	return compiled
}()

// asks finds what a text asks a person to do.
var asks = regexp.MustCompile(`(^|[:;,] |\b(?:and|or|then|else|again) )(set|remove|delete|create|take|run|finish|use|give) (its|the|a|it|every|spec|reclaim|claimRef|Reserve)\b`)

// quotes begins a text that repeats the status of a Failed volume. That stays what it was, whatever people have done since.
const quotes = "DataDestroyed: reclaiming it was tried and failed, perhaps halfway: "

// promise looks, once all has settled, whether what the text promised is so; "" if it is.
type promise func() string

// advice is a sentence that people are told, and how it is followed. Without a follower it only says what is so, and asks for
// nothing.
type advice struct {
	pattern string // of the text
	follow  func(r *reader, a message) promise
}

// message is what somebody was told, and about what.
type message struct {
	text    string
	claim   *corev1.PersistentVolumeClaim
	volume  *corev1.PersistentVolume
	action  decision.Action // of a repair
	attempt attempt         // of an operation
	again   func() []string // what is said if the same is asked again
}

// reader is a person who does what is said.
type reader struct {
	*person
	followed    map[string]int
	table       []advice
	deleted     map[types.UID]string // volumes whose storage was deleted or scrubbed, by their UID
	undisturbed bool                 // nobody comes in between
	// reclaims is what a deleter or recycler does.
	reclaims func(volume *corev1.PersistentVolume) error
}

func newReader(source rand.Source, followed map[string]int) *reader {
	h := newRandom(source, small)
	r := &reader{followed: followed, table: advices(), deleted: map[types.UID]string{}}
	r.person = &person{History: h, done: map[string]int{}, tool: &tool{client: h.Server.NewClient("people")}}
	r.reclaims = r.destroy
	destroys := func(_ context.Context, request hooks.ReclaimRequest) error { return r.reclaims(request.Volume) }
	for _, m := range h.Controllers {
		m.Hooks = hooks.Set{Deleters: map[string]hooks.Deleter{"csi.example.com": Deletes(destroys)},
			SourceDeleters: map[string]hooks.Deleter{"hostPath": Deletes(destroys)}, Recyclers: map[string]hooks.Recycler{"hostPath": Recycles(destroys)}}
		m.Rules.Hooks = m.Hooks.Names()
		h.Restart(m)
	}
	return r
}

// destroy notes whose storage is gone, and holds that to X2, if the volume is as it was when that was decided.
func (r *reader) destroy(volume *corev1.PersistentVolume) error {
	r.deleted[volume.UID] = volume.Name
	now := r.Server.Volume(volume.Name)
	if now == nil || now.ResourceVersion != volume.ResourceVersion {
		return nil
	}
	if now.Spec.PersistentVolumeReclaimPolicy == corev1.PersistentVolumeReclaimRetain {
		r.Broke("X2: the storage of %s is deleted, which is to be retained", volume.Name)
	}
	claim := r.Server.Claim(now.Spec.ClaimRef.Namespace, now.Spec.ClaimRef.Name)
	if claim != nil && claim.UID == now.Spec.ClaimRef.UID && (claim.Spec.VolumeName == "" || claim.Spec.VolumeName == volume.Name) {
		r.Broke("X2: the storage of %s is deleted, which %s has", volume.Name, claim.Name)
	}
	return nil
}

func (r *reader) play() {
	for range 3 {
		for range r.steps / 2 {
			switch r.IntN(12) {
			case 0:
				r.disrupt()
			case 1, 2, 3:
				r.ask()
			default:
				r.step()
			}
			if len(r.Broken) > 0 {
				return
			}
		}
		if !r.rest() {
			return
		}
	}
}

// rest lets all settle, and judges what there is then.
func (r *reader) rest() bool {
	if !r.Settle() {
		r.Broke("X8: it does not settle")
		return false
	}
	r.JudgeEnd()
	r.PassAgain()
	return len(r.Broken) == 0
}

// follow does what a text says. If nobody comes in between, what it promised must be so once all has settled.
func (r *reader) follow(a message) {
	for _, row := range r.table {
		if !patterns[row.pattern].MatchString(a.text) {
			continue
		}
		r.followed[row.pattern]++
		if row.follow == nil {
			if asks.MatchString(a.text) && !strings.HasPrefix(a.text, quotes) {
				r.Broke("nobody does what is asked for: %s", a.text)
			}
			return
		}
		r.note("people are told: %s", a.text)
		kept := row.follow(r, a)
		r.judgeCalls("people")
		if kept == nil {
			return
		}
		if !r.undisturbed && r.oneIn(4) {
			for range r.IntN(8) {
				r.step()
			}
			return
		}
		if !r.rest() {
			return
		}
		if wrong := kept(); wrong != "" {
			r.Broke("it was said: %s\nbut %s", a.text, wrong)
		}
		r.followed["kept "+row.pattern]++
		return
	}
	r.Broke("nobody knows what to do about: %s", a.text)
}

// disrupt makes what people ask about: volumes that go, claims that come again, and claims that a restore left incomplete.
func (r *reader) disrupt() {
	key, volume := r.anyClaim(), r.anyVolume()
	claim := r.Server.Claim(key.Namespace, key.Name)
	switch r.IntN(13) {
	case 8, 9, 10, 11:
		r.disruptTransfer()
	case 12:
		if claim != nil && claim.Status.Phase == corev1.ClaimBound {
			r.contend(claim)
		}
	case 7: // both are restored, the volume with the UID that the claim had then
		if claim == nil {
			r.create(bindingtest.Volume(volume.Name, "2Gi", RefersTo(key.Namespace, key.Name, "earlier"), WithPolicy(r.policy()), VolumeNote(ProvisionedBy, r.oneOf("csi.example.com", "other.example.com"))))
			r.create(bindingtest.Claim(key.Namespace, key.Name, "1Gi", Naming(volume.Name), RequestingClass(new(""))))
		}
	case 0, 1:
		if claim != nil && claim.Spec.VolumeName != "" {
			r.end(obj.VolumeKey(claim.Spec.VolumeName))
		}
	case 2:
		if claim != nil {
			r.end(key)
			again := bindingtest.Claim(key.Namespace, key.Name, "1Gi", Naming(claim.Spec.VolumeName), RequestingClass(new("")))
			r.create(again)
		}
	case 3:
		if claim == nil {
			r.create(bindingtest.Claim(key.Namespace, key.Name, "1Gi", ClaimNote(Completed, "yes"), RequestingClass(new(""))))
		}
	case 4:
		if claim != nil { // a volume for the claim, as a person makes it, or as it is made for a claim that has another
			made := bindingtest.Volume(volume.Name, r.size(), RefersTo(key.Namespace, key.Name, claim.UID), WithPolicy(r.policy()))
			if r.oneIn(2) {
				metav1.SetMetaDataAnnotation(&made.ObjectMeta, ProvisionedBy, "csi.example.com")
			}
			if r.oneIn(3) {
				made.Spec.VolumeMode = new(corev1.PersistentVolumeBlock)
			}
			if r.oneIn(2) {
				metav1.SetMetaDataAnnotation(&made.ObjectMeta, BoundBy, "yes")
			}
			r.create(made)
		}
	case 5:
		if claim == nil {
			r.create(bindingtest.Claim(key.Namespace, key.Name, "1Gi", ClaimNote(Provisioner, "gone.example.com"), ClaimFinalizers(ProvisioningFinalizer), RequestingClass(new(""))))
		}
	case 6:
		r.create(ClassOf("fast", "other.example.com"))
		if claim == nil {
			r.create(bindingtest.Claim(key.Namespace, key.Name, "1Gi", RequestingClass(new("fast"))))
		}
	}
	r.judgeCalls("people")
}

// contend has another claim Bound to the volume of a claim that is, as a status that was restored may say, and takes the
// volume's claimRef away.
func (r *reader) contend(claim *corev1.PersistentVolumeClaim) {
	other := bindingtest.Claim("default", r.anyClaim().Name, "1Gi", Naming(claim.Spec.VolumeName), RequestingClass(new("")), ClaimNote(Completed, "yes"))
	made, err := r.Server.Create(context.Background(), other)
	if err != nil {
		return // there is one of that name
	}
	bound := made.(*corev1.PersistentVolumeClaim)
	bound.Status = claim.Status
	_, err = r.Server.UpdateStatus(context.Background(), bound)
	r.note("people restore %s as Bound to %s: %v", other.Name, claim.Spec.VolumeName, err)
	r.editVolume("frees", obj.VolumeKey(claim.Spec.VolumeName), func(v *corev1.PersistentVolume) { v.Spec.ClaimRef = nil })
}

// disruptTransfer ends the claim that a volume on the move is with, or brings one that has another volume.
func (r *reader) disruptTransfer() {
	for _, volume := range r.snapshot().Volumes {
		if _, moving := volume.Annotations[reclaim.TransferAnnotation]; !moving || volume.Spec.ClaimRef == nil {
			continue
		}
		for range 10 { // halfway, or nearly to its end
			objections, step := r.try(attempt{operation: "move", volume: volume.Name})
			if len(objections) > 0 || strings.HasSuffix(step.Why, " as before") || r.oneIn(12) || step.Kind == reclaim.StepCreateClaim && r.oneIn(2) {
				break
			}
			r.takeStep(step)
			if step.Kind == reclaim.StepWait && !r.Settle() {
				return
			}
		}
		now := r.Server.Volume(volume.Name)
		if now == nil || now.Spec.ClaimRef == nil {
			continue
		}
		key := judge.ClaimOf(now)
		if r.Server.Claim(key.Namespace, key.Name) != nil {
			r.end(key)
		} else {
			r.create(bindingtest.Claim(key.Namespace, key.Name, "1Gi", Naming(r.anyVolume().Name), RequestingClass(new(""))))
			again := attempt{operation: "move", volume: now.Name}
			if said := texts(r.try(again)); len(said) > 0 && r.oneIn(2) { // whoever moves it sees that first
				r.follow(r.messageOf(said[0], again, now))
			}
		}
	}
}

// end deletes an object, and takes off what keeps it.
func (r *reader) end(key obj.Key) {
	r.remove(key)
	r.removeFinalizers(key, key)
}

// ask asks about something, and does what is said.
func (r *reader) ask() {
	switch r.IntN(7) {
	case 0, 1, 2:
		r.askAboutPair()
	case 3, 4, 5:
		r.askOperations()
	default:
		r.readEvents()
	}
}

// askAboutPair asks CheckPair about a claim and the volume that it names, or a volume and the claim that it names.
func (r *reader) askAboutPair() {
	world := r.snapshot()
	var claim *corev1.PersistentVolumeClaim
	var volume *corev1.PersistentVolume
	switch {
	case len(world.Claims) > 0 && r.oneIn(2):
		claim = world.Claims[r.IntN(len(world.Claims))]
		volume = r.Server.Volume(claim.Spec.VolumeName)
	case len(world.Volumes) > 0:
		volume = world.Volumes[r.IntN(len(world.Volumes))]
		if ref := volume.Spec.ClaimRef; ref != nil {
			claim = r.Server.Claim(ref.Namespace, ref.Name)
		} else if len(world.Claims) > 0 && r.oneIn(4) {
			claim = world.Claims[r.IntN(len(world.Claims))]
		}
	}
	report := r.check(claim, volume)
	again := func() []string {
		if claim != nil {
			claim = r.Server.Claim(claim.Namespace, claim.Name)
		}
		if volume != nil {
			volume = r.Server.Volume(volume.Name)
		}
		return []string{r.check(claim, volume).Repair.Why}
	}
	if report.Healthy() {
		return
	}
	a := message{text: report.Repair.Why, claim: claim, volume: volume, action: report.Repair.Action, again: again}
	if report.Repair.By == decision.ByController {
		a.text = "the controller mends it: " + a.text
	}
	r.follow(a)
}

func (r *reader) check(claim *corev1.PersistentVolumeClaim, volume *corev1.PersistentVolume) decision.PairReport {
	report, err := decision.CheckPair(decision.PairRequest{Claim: claim, Volume: volume, View: r.world(), Options: r.Controllers[0].Rules})
	if err != nil {
		return decision.PairReport{} // a malformed object
	}
	return report
}

// world returns all that the server has and has not, read live.
func (r *reader) world() decision.Snapshot {
	world := r.snapshot()
	live := map[obj.Key]bool{obj.PodsKey("default"): true}
	for i := range r.volumes {
		live[obj.VolumeKey(fmt.Sprintf("v%d", i))] = true
	}
	for i := range r.claims {
		live[obj.ClaimKey("default", fmt.Sprintf("c%d", i))] = true
	}
	for _, known := range world.Claims {
		live[obj.KeyOf(known)] = true
		live[obj.VolumeKey(known.Spec.VolumeName)] = true
		live[obj.VolumeKey(decision.ProvisionedName(known.UID))] = true
	}
	for _, known := range world.Volumes {
		live[obj.VolumeKey(known.Name)] = true
		if known.Spec.ClaimRef != nil {
			live[judge.ClaimOf(known)] = true
		}
	}
	world.LiveReads = slices.Collect(maps.Keys(live))
	world.Now, world.Announced = metav1.NewTime(r.Server.Now()), map[obj.Key]metav1.Time{}
	for key := range live { // whoever looks now has waited for whatever is announced
		world.Announced[key] = metav1.NewTime(r.Server.Now().Add(-2 * reclaim.LongestCall))
	}
	return world
}
