package bindingtest

import (
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// String is the call in one line, without its actor:
//
//	update pv/a: spec.claimRef={default/data uid-3} +annotation pv.kubernetes.io/bound-by-controller
//	update status pv/a: status.phase=Bound
//	update pvc/default/data: -finalizer kubernetes.io/pvc-protection, gone
//	delete pv/a: failed: Conflict
//	event Normal FailedBinding pvc/default/data: no volume fits
func (c Call) String() string {
	switch c.Verb {
	case VerbRecord:
		return "event " + c.Event.String()
	case VerbList:
		return c.listLine()
	}
	line := string(c.Verb)
	if c.Subresource != "" {
		line += " " + string(c.Subresource)
	}
	line += " " + display(c.Key)
	if outcome := c.outcome(); outcome != "" {
		line += ": " + outcome
	}
	return line
}

func (c Call) listLine() string {
	info, _ := infoOf(c.Key.Kind)
	line := "list " + info.resource
	if c.Key.Namespace != "" {
		line += " in " + c.Key.Namespace
	}
	if c.Err != nil {
		line += ": failed: " + reason(c.Err)
	}
	return line
}

// outcome is what the call changed and what its caller was told, as far as they need saying.
func (c Call) outcome() string {
	effect := c.effect()
	switch {
	case c.Err == nil:
		return effect
	case !c.Changed():
		return "failed: " + reason(c.Err)
	case effect == "":
		return "done, but answered: " + reason(c.Err)
	}
	return effect + ", but answered: " + reason(c.Err)
}

func (c Call) effect() string {
	switch {
	case c.Verb == VerbUpdate && !c.Changed():
		return "nothing changed"
	case c.Verb == VerbUpdate && c.After == nil:
		return "-finalizer " + strings.Join(c.Before.GetFinalizers(), " -finalizer ") + ", gone"
	case c.Before != nil && c.After != nil:
		return Diff(c.Before, c.After)
	}
	return ""
}

func reason(err error) string {
	if reason := apierrors.ReasonForError(err); reason != metav1.StatusReasonUnknown {
		return string(reason)
	}
	return err.Error()
}
