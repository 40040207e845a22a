package binding

import (
	"errors"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Answer is what came of an action that a later decision must know of: of a hook, or of a CreateVolume that
// failed. It holds until the sync that it was given to ends (Rh), through writes too; but what a deleter answered
// holds only until a provisioner runs for the same object.
type Answer struct {
	// Of is the kind of the action, and Hook the hook that it named.
	Of   ActionKind
	Hook string
	// For is the UID of the claim, or of the volume, that the action was about. What was made for another
	// object of the same name does not count.
	For types.UID
	// Volume is what a provisioner returned.
	Volume *corev1.PersistentVolume
	// Err is nil for success.
	Err error
}

func answered(all []Answer, of ActionKind, about types.UID) (some []Answer) {
	for _, answer := range all {
		if answer.Of == of && answer.For == about {
			some = append(some, answer)
		}
	}
	return some
}

// lastOf is the newest of the answers that one hook gave: another may have been run for the same object before,
// as when a class got another provisioner.
func lastOf(hook string, answers []Answer) (answer Answer, ran bool) {
	for _, answer := range slices.Backward(answers) {
		if answer.Hook == hook {
			return answer, true
		}
	}
	return Answer{}, false
}

// meaning is what the hook says beside its error.
func (a Answer) meaning() HookError {
	var said *HookError
	if errors.As(a.Err, &said) {
		return *said
	}
	return HookError{Err: a.Err}
}

// later is when to try again what a hook did not do: after what it says itself, with back-off, or not before
// something has changed.
func (a Answer) later(waiting Action) Action {
	switch said := a.meaning(); {
	case said.Meaning == HookInProgress && said.After > 0:
		waiting.Retry, waiting.After = RetryAfter, said.After
	case said.Meaning == HookRefused, said.Meaning == HookNotMine:
		waiting.Retry = RetryNever
	default:
		waiting.Retry = RetryBackoff
	}
	return waiting
}
