package history

import (
	"context"
	"errors"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/pvbind/pvbind/binding/bindingtest"
	. "github.com/pvbind/pvbind/binding/internal/testkit"
	"github.com/pvbind/pvbind/binding/obj"
	"github.com/pvbind/pvbind/reclaim"
)

// operationAdvices returns what the operations and a transfer can tell.
func operationAdvices() []advice {
	return []advice{
		{"^Unknown: .* was not read from the server$", readIt},
		{"^unless .* is accepted$", accept},
		{"^PolicyDestroys: .* set the policy to Retain first$", retainForOperation},
		{"^Transferring: a transfer of it is under way: finish it, or remove the annotation .*, which ends it and leaves the volume as it is$", endTransfer},
		{"^Missing: claim .* had it and is gone: remove the annotation .*, which ends the transfer; its policy stays Retain$", endTransferKept},
		{"^Missing: no claim has it, so that there is none to transfer it from: use Reserve for ", useReserve},
		{"^Taken: it is .* and was that of an earlier claim .*: use Reserve for the one that has that name now, or will have it$", useReserve},
		{"^Missing: its claim is gone, .* give the new one in full, with access modes and a size$", giveInFull},
		{"^Taken: claim .* exists and may take another volume: set its spec.volumeName to .* first$", nameIt},
		{"^Taken: claim .* the transfer goes on once that claim is gone; before it is deleted, set reclaim policy Retain on every volume whose claimRef has its UID ", deleteHeir},
		{"^Wait: .*(a controller binds them|it is being bound to .*|it is bound to it again)$", awaitController},
		{"^Wait: .* is being deleted", awaitClaimsEnd},
		{"^(Deleting|ClaimLives|InUse|PreBound|Unfit): ", nil},
		{"^Taken: (claim .* names another volume, |claim .* was bound before|it is being bound to|somebody gave it to)", nil},
		{"^Missing: it does not exist$", nil},
		{"^Transferring: it is being transferred to ", nil},
		{"^(DataDisclosed|DataDestroyed|VolumeLost): ", nil},
	}
}

// attempt is an operation on a volume for a claim, and what comes of it.
type attempt struct {
	operation string // "open", "reserve" or "move"
	volume    string
	to        *corev1.PersistentVolumeClaim
}

// try uses the operation on what the server says, and returns what is objected, or the step that follows.
func (r *reader) try(a attempt, accepting ...reclaim.Risk) ([]reclaim.Reason, reclaim.Step) {
	r.tool.known = reclaim.Known{}
	for range 10 {
		step, err := r.once(a, accepting)
		var refused *reclaim.Error
		switch {
		case step.Kind == reclaim.StepRead:
			_ = r.tool.read(context.Background(), step.Read)
			continue
		case !errors.As(err, &refused):
			return nil, step
		case len(refused.Reads()) == 0:
			return refused.Reasons, step
		}
		for _, read := range refused.Reads() {
			_ = r.tool.read(context.Background(), read)
		}
	}
	r.Broke("R7: %s asks for reads without end", a.operation)
	return nil, reclaim.Step{}
}

// once uses the operation on what is known.
func (r *reader) once(a attempt, accepting []reclaim.Risk) (reclaim.Step, error) {
	volume := r.Server.Volume(a.volume)
	if a.operation == "move" {
		return reclaim.NextTransfer(reclaim.Transfer{Volume: a.volume, To: a.to}, r.tool.known, accepting...)
	}
	if volume == nil {
		return reclaim.Step{}, nil
	}
	change, err := reclaim.Change{}, error(nil)
	if a.operation == "open" {
		change, err = reclaim.MakeAvailable(volume, r.tool.known, accepting...)
	} else {
		change, err = reclaim.Reserve(volume, a.to, r.tool.known, accepting...)
	}
	return reclaim.Step{Kind: reclaim.StepUpdateVolume, Volume: change.Volume, Warnings: change.Warnings}, err
}

// texts returns the objections as people read them, and what is waited for.
func texts(objections []reclaim.Reason, step reclaim.Step) (said []string) {
	for _, objection := range objections {
		said = append(said, string(objection.Code)+": "+objection.Message)
	}
	if step.Kind == reclaim.StepWait {
		said = append(said, "Wait: "+step.Why)
	}
	return said
}

// askOperations tries an operation and follows one of the objections, or goes on.
func (r *reader) askOperations() {
	a := attempt{operation: r.oneOf("open", "reserve", "move", "move", "move"), volume: r.anyVolume().Name}
	heir := r.anyClaim()
	if r.oneIn(3) {
		heir.Name += "-new"
	}
	a.to = toClaim(heir.Namespace, heir.Name)
	for _, volume := range r.snapshot().Volumes {
		if _, moving := volume.Annotations[reclaim.TransferAnnotation]; moving && !r.oneIn(4) {
			a.volume = volume.Name
			if a.operation == "move" {
				a.to = nil
			}
		}
	}
	volume := r.Server.Volume(a.volume)
	if volume == nil {
		return
	}
	if r.oneIn(6) {
		r.askUnread(a, volume)
		return
	}
	objections, step := r.try(a)
	said := texts(objections, step)
	for range 4 { // a transfer goes on for some steps
		if len(said) > 0 || a.operation != "move" {
			break
		}
		r.takeStep(step)
		objections, step = r.try(a)
		said = texts(objections, step)
	}
	if len(said) == 0 {
		return
	}
	at := r.IntN(len(said))
	if r.oneIn(3) && at < len(objections) && objections[at].Risk != "" {
		r.follow(r.messageOf("unless "+string(objections[at].Risk)+" is accepted", a, volume))
		return
	}
	r.follow(r.messageOf(said[at], a, volume))
}

// messageOf returns what was said to the attempt, which can be made again.
func (r *reader) messageOf(text string, a attempt, volume *corev1.PersistentVolume) message {
	return message{text: text, volume: volume, attempt: a, again: func() []string { return texts(r.try(a)) }}
}

// askUnread tries the operation without having read anything.
func (r *reader) askUnread(a attempt, volume *corev1.PersistentVolume) {
	r.tool.known = reclaim.Known{}
	_, err := r.once(a, nil)
	var refused *reclaim.Error
	if errors.As(err, &refused) && len(refused.Reads()) > 0 {
		for _, objection := range refused.Reasons {
			if objection.Code == reclaim.Unknown {
				r.follow(r.messageOf(string(objection.Code)+": "+objection.Message, a, volume))
				return
			}
		}
	}
}

// takeStep writes what a transfer says.
func (r *reader) takeStep(step reclaim.Step) {
	var err error
	switch step.Kind {
	case reclaim.StepUpdateVolume:
		_, err = r.Server.Update(context.Background(), step.Volume)
	case reclaim.StepDeleteClaim:
		r.remove(obj.KeyOf(step.Claim))
	case reclaim.StepCreateClaim:
		_, err = r.Server.Create(context.Background(), step.Claim)
	}
	r.note("people move: %s: %v", step, err)
	r.judgeCalls("people")
}

// notAgain promises that what was said is not said again.
func notAgain(s message) promise {
	reason, _, _ := strings.Cut(s.text, " ")
	return func() string {
		for _, said := range s.again() {
			if said == s.text || reason == "PolicyDestroys:" && strings.HasPrefix(said, reason) {
				return "the same is said again: " + said
			}
		}
		return ""
	}
}

// readIt reads nothing: every attempt reads what is required.
func readIt(_ *reader, s message) promise { return notAgain(s) }

// accept names the risk: then nothing is objected that could be accepted by it.
func accept(r *reader, s message) promise {
	risk := reclaim.Risk(strings.TrimSuffix(strings.TrimPrefix(s.text, "unless "), " is accepted"))
	return func() string {
		objections, _ := r.try(s.attempt, risk)
		for _, objection := range objections {
			if objection.Risk == risk {
				return "it is objected still: " + objection.String()
			}
		}
		return ""
	}
}

func retainForOperation(r *reader, s message) promise {
	late, gone := r.runsHooks(), r.goes()
	r.editVolume("keeps", obj.VolumeKey(s.volume.Name), func(v *corev1.PersistentVolume) { *v = *reclaim.SetRetain(v).Volume })
	again := notAgain(s)
	return func() string {
		if gone(s.volume) && !late {
			return "its storage is gone"
		}
		return again()
	}
}

// endTransfer finishes the transfer, or takes its note off: then there is none.
func endTransfer(r *reader, s message) promise {
	if r.oneIn(2) {
		return r.withoutNote(s)
	}
	for range 60 {
		objections, step := r.try(attempt{operation: "move", volume: s.volume.Name})
		switch {
		case len(objections) > 0: // that is another matter
			return nil
		case step.Kind == reclaim.StepDone:
			return notAgain(s)
		case step.Kind == reclaim.StepWait:
			if !r.Settle() {
				return nil
			}
			if again := texts(r.try(attempt{operation: "move", volume: s.volume.Name})); len(again) > 0 && again[0] == "Wait: "+step.Why {
				return nil // somebody else must do something
			}
		default:
			r.takeStep(step)
		}
	}
	r.Broke("R7: the move of %s does not end", s.volume.Name)
	return nil
}

func (r *reader) withoutNote(s message) promise {
	var policy corev1.PersistentVolumeReclaimPolicy
	r.editVolume("ends the move of", obj.VolumeKey(s.volume.Name), func(v *corev1.PersistentVolume) {
		delete(v.Annotations, reclaim.TransferAnnotation)
		policy = v.Spec.PersistentVolumeReclaimPolicy
	})
	again := notAgain(s)
	return func() string {
		if now := r.Server.Volume(s.volume.Name); now != nil && now.Spec.PersistentVolumeReclaimPolicy != policy {
			return "its policy has changed"
		}
		return again()
	}
}

func endTransferKept(r *reader, s message) promise {
	ended, gone := r.withoutNote(s), r.goes()
	return func() string {
		now := r.Server.Volume(s.volume.Name)
		if now != nil && now.UID == s.volume.UID && now.Spec.PersistentVolumeReclaimPolicy != corev1.PersistentVolumeReclaimRetain || gone(s.volume) {
			return "it is not kept"
		}
		return ended()
	}
}

// useReserve sets the volume aside: the claim has it then, if it is there, or says itself what is against it. Nobody gets a volume
// that an announcement keeps, as Reserve warns.
func useReserve(r *reader, s message) promise {
	objections, step := r.try(attempt{operation: "reserve", volume: s.volume.Name, to: s.attempt.to})
	if len(objections) > 0 || step.Volume == nil {
		return nil
	}
	if _, err := r.Server.Update(context.Background(), step.Volume); err != nil {
		return nil
	}
	r.note("people reserve %s for %s", s.volume.Name, s.attempt.to.Name)
	if _, announced := reclaim.AnnouncementOf(step.Volume); announced {
		return nil
	}
	return func() string {
		claim := r.Server.Claim(s.attempt.to.Namespace, s.attempt.to.Name)
		if claim == nil || claim.DeletionTimestamp != nil || claim.Spec.VolumeName != "" && claim.Status.Phase == corev1.ClaimBound {
			return ""
		}
		return fmt.Sprintf("%s is %s, and names %q", claim.Name, claim.Status.Phase, claim.Spec.VolumeName)
	}
}

func giveInFull(r *reader, s message) promise {
	s.attempt.to = bindingtest.Claim(s.attempt.to.Namespace, s.attempt.to.Name, r.size(), RequestingClass(new("")))
	again := r.messageOf(s.text, s.attempt, s.volume)
	return notAgain(again)
}

// claimIn returns the claim that the text names; nil if it is gone.
func (r *reader) claimIn(text string) *corev1.PersistentVolumeClaim {
	for _, claim := range r.snapshot().Claims {
		if strings.Contains(text, " "+claim.Namespace+"/"+claim.Name+" ") {
			return claim
		}
	}
	return nil
}

func nameIt(r *reader, s message) promise {
	r.editClaim("names "+s.volume.Name+" in", obj.KeyOf(r.claimIn(s.text)), Naming(s.volume.Name))
	return notAgain(s)
}

// deleteHeir ends the claim that has the name of the one to come, and keeps what it held.
func deleteHeir(r *reader, s message) promise {
	claim := r.claimIn(s.text)
	held := r.keepHeld(claim.UID)
	r.end(obj.KeyOf(claim))
	stays, again := r.stay(held), notAgain(s)
	return func() string {
		if wrong := stays(); wrong != "" {
			return wrong
		}
		return again()
	}
}

func awaitController(_ *reader, s message) promise { return notAgain(s) }

// awaitClaimsEnd has the owners of the finalizers of the claim take them off.
func awaitClaimsEnd(r *reader, s message) promise {
	for _, claim := range r.snapshot().Claims {
		if claim.DeletionTimestamp != nil && strings.Contains(s.text, claim.Namespace+"/"+claim.Name+" ") {
			r.end(obj.KeyOf(claim))
		}
	}
	return notAgain(s)
}
