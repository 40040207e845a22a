package scenario

import (
	"errors"
	"fmt"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/pvbind/pvbind/binding/bindingtest"
	"github.com/pvbind/pvbind/binding/internal/testkit"
	"github.com/pvbind/pvbind/binding/obj"
	"github.com/pvbind/pvbind/phase"
)

// What must hold in every scenario, whatever its file says.

func (s *Runner) violate(format string, args ...any) {
	s.violations = append(s.violations, fmt.Sprintf(format, args...))
}

// guard watches every call of a controller.
func (s *Runner) guard(a *controller) bindingtest.Hook {
	return func(call *bindingtest.Call, do func() error) error {
		a.made[kindOf(call)]++
		if a.down && kindOf(call) != "event" {
			return errTimedOut
		}
		s.checkInputs(a)
		if call.Writes() {
			s.checkWrite(a, call)
		}
		err := do()
		if err == nil && call.Writes() && call.After != nil {
			a.written[call.Key] = versionOf(call.After)
		}
		return err
	}
}

// checkInputs compares what the controller was handed with what the server has of the same version (X6).
func (s *Runner) checkInputs(a *controller) {
	calls := s.Server.CallsSince(s.recorded)
	s.recorded += len(calls)
	for _, call := range calls {
		if call.After != nil {
			s.versions[identityOf(call.After)] = call.After
		}
	}
	for _, known := range testkit.Remembered(a.Controller) {
		if original := s.versions[identityOf(known)]; !equality.Semantic.DeepEqual(original, known) {
			s.violate("X6: %s was modified: %s", identityOf(known), bindingtest.Diff(original, known))
		}
	}
}

// identityOf tells apart all states of all objects.
func identityOf(object obj.Object) string {
	return fmt.Sprintf("%T %s/%s uid %s version %s", object, object.GetNamespace(), object.GetName(), object.GetUID(), object.GetResourceVersion())
}

// checkWrite holds a write to B5, X2 and X5 before it is made.
func (s *Runner) checkWrite(a *controller, call *bindingtest.Call) {
	switch {
	case call.Verb != bindingtest.VerbUpdate && a.hooks.Provisioners == nil:
		s.violate("X2: %s: nothing is created or deleted without hooks", call)
		return
	case call.Verb == bindingtest.VerbDelete:
		s.checkDeletion(call)
		return
	case call.Verb == bindingtest.VerbCreate:
		return
	}
	if call.Sent.GetResourceVersion() == "" {
		s.violate("B5: %s carries no resourceVersion", call)
	}
	if known := a.written[call.Key]; versionOf(call.Sent) < known {
		s.violate("X5: %s was decided on version %d, and the controller has written %d", call, versionOf(call.Sent), known)
	}
	if volume, ok := call.Sent.(*corev1.PersistentVolume); ok && call.Subresource == bindingtest.Status {
		s.checkRelease(volume)
	}
}

// checkRelease holds a change of phase to X2.
func (s *Runner) checkRelease(volume *corev1.PersistentVolume) {
	to, ref := volume.Status.Phase, volume.Spec.ClaimRef
	if ref == nil || to != corev1.VolumeReleased && to != corev1.VolumeFailed || s.Server.Volume(volume.Name).Status.Phase == to {
		return
	}
	claim := s.Server.Claim(ref.Namespace, ref.Name)
	if claim != nil && claim.UID == ref.UID && (claim.Spec.VolumeName == "" || claim.Spec.VolumeName == volume.Name) {
		s.violate("X2: %s becomes %s, and its claim exists", volume.Name, to)
	}
}

func versionOf(object obj.Object) uint64 {
	version, _ := strconv.ParseUint(object.GetResourceVersion(), 10, 64) // zero is older than any
	return version
}

// checkEnd holds the end of a scenario to X1, X4 and X8.
func (s *Runner) checkEnd() {
	s.violations = append(s.violations, s.steps.check()...)
	s.checkSecondPass()
	s.checkStorage()
	volumes := s.all(obj.KindVolume)
	boundTo := map[string]string{}
	for _, object := range s.all(obj.KindClaim) {
		claim := object.(*corev1.PersistentVolumeClaim)
		s.checkHeld(claim, volumes)
		if claim.Status.Phase != corev1.ClaimBound {
			continue
		}
		if other, taken := boundTo[claim.Spec.VolumeName]; taken {
			s.violate("X1: %s and %s are Bound to %s", other, claim.Name, claim.Spec.VolumeName)
		}
		boundTo[claim.Spec.VolumeName] = claim.Name
	}
}

// checkHeld holds a claim to one volume (X1), beside those that wait to be reclaimed, and to that if it
// exists (X4).
func (s *Runner) checkHeld(claim *corev1.PersistentVolumeClaim, volumes []obj.Object) {
	held := 0
	for _, object := range volumes {
		volume := object.(*corev1.PersistentVolume)
		if at := volume.Status.Phase; phase.ClaimRefStateOf(volume, claim) != phase.ClaimRefBound || at == corev1.VolumeReleased || at == corev1.VolumeFailed {
			continue
		}
		held++
		if claim.Status.Phase == corev1.ClaimLost && claim.Spec.VolumeName == volume.Name {
			s.violate("X4: %s is Lost, and %s is bound to it", claim.Name, volume.Name)
		}
	}
	if held > 1 {
		s.violate("X1: %s holds %d volumes", claim.Name, held)
	}
}

// checkSecondPass syncs everything once more: that writes nothing and sends no event (X8).
func (s *Runner) checkSecondPass() {
	s.Printed = len(s.Server.Calls())
	for _, a := range s.controllers {
		if a.Client.Crashed() {
			s.violate("the scenario ends in a crash; let it restart and settle")
			return
		}
		a.Release(bindingtest.Kinds()...)
		a.Resync()
		var unsettled *bindingtest.UnsettledError
		if err := a.Settle(s.Ctx); errors.As(err, &unsettled) {
			s.violate("X8: a second pass: %v", err)
		}
		s.checkInputs(a)
	}
	for _, call := range s.Server.CallsSince(s.Printed) {
		if call.Writes() && call.Changed() || call.Verb == bindingtest.VerbRecord {
			s.violate("X8: a second pass: %s", call)
		}
	}
}

func (s *Runner) all(kind obj.Kind) []obj.Object {
	list, err := s.Server.List(s.Ctx, kind, "")
	if err != nil {
		s.violate("cannot list: %v", err)
	}
	return list
}
