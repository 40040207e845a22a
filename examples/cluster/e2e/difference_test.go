package e2e

import "strings"

// scene is one world before and after a step, with kube-controller-manager and with pvbinder.
type scene struct {
	before       picture // the same for both
	theirs, ours picture // after the step
}

// differences are those that the README lists and that can show here, each as what it looks like.
var differences = []struct {
	rule string
	is   func(s scene, claim string) bool
}{
	{"M13 a pre-bound volume comes first among all", func(s scene, claim string) bool {
		ours, theirs := s.ours["pvc "+claim].Link, s.theirs["pvc "+claim].Link
		return ours != theirs && s.before["pv "+ours].Link == claim+"?" && s.before["pv "+theirs].Link != claim+"?"
	}},
	{"M13 of several pre-bound volumes, the smallest", func(s scene, claim string) bool {
		ours, theirs := s.ours["pvc "+claim].Link, s.theirs["pvc "+claim].Link
		return ours != theirs && s.before["pv "+ours].Link == claim+"?" && s.before["pv "+theirs].Link == claim+"?"
	}},
	{"C12 nothing is begun for a claim being deleted", func(s scene, claim string) bool {
		ours, theirs := s.ours["pvc "+claim], s.theirs["pvc "+claim]
		return ours.Deleting && ours.Phase == "Pending" && theirs.Phase == "Bound"
	}},
	{"W1 a volume that comes is given to the largest claim first", func(s scene, claim string) bool {
		ours, theirs := s.ours["pvc "+claim].Link, s.theirs["pvc "+claim].Link
		won := ours != "" && s.otherPendingGot(s.theirs, claim, ours)
		lost := theirs != "" && s.otherPendingGot(s.ours, claim, theirs)
		return s.before["pvc "+claim].Phase == "Pending" && (won || lost)
	}},
}

// otherPendingGot tells whether in a picture the volume went to another claim that was Pending before.
func (s scene) otherPendingGot(after picture, claim, volume string) bool {
	got := after["pv "+volume].Link
	return got != claim && s.before["pvc "+got].Phase == "Pending" && after["pvc "+got].Phase == "Bound"
}

// rule is the listed difference that explains why the two differ in some objects; empty if there is none.
func (s scene) rule(objects []string) string {
	for _, object := range objects {
		claim, ok := strings.CutPrefix(object, "pvc ")
		if !ok {
			continue
		}
		for _, difference := range differences {
			if difference.is(s, claim) {
				return difference.rule
			}
		}
	}
	return ""
}
