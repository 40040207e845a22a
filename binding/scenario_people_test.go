package binding_test

import (
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pvbind/pvbind/binding/obj"
)

// person does what somebody with kubectl, a scheduler or a provisioner does. It reports whether the
// command is one of those.
func (s *stage) person(text string) (done bool, err error) {
	words := strings.Fields(text)
	if len(words) < 2 {
		return false, nil
	}
	verb, args := words[0], words[2:]
	switch verb {
	case "delete", "remove", "set", "annotate", "label":
	default:
		return false, nil
	}
	kind, key, err := keyNamed(words[1])
	if err != nil {
		return true, err
	}
	switch verb {
	case "delete":
		return true, s.server.Delete(s.ctx, key, metav1.DeleteOptions{})
	case "remove":
		return true, s.remove(key)
	case "set":
		return true, s.set(kind, key, args)
	}
	return true, s.mark(key, verb, args)
}

// remove deletes an object and takes off whatever keeps it.
func (s *stage) remove(key obj.Key) error {
	if err := s.server.Delete(s.ctx, key, metav1.DeleteOptions{}); err != nil {
		return err
	}
	object, err := s.server.Get(s.ctx, key)
	if err != nil {
		return nil // nothing kept it
	}
	object.SetFinalizers(nil)
	_, err = s.server.Update(s.ctx, object)
	return err
}

// set changes columns: "CLASS=fast".
func (s *stage) set(kind kindTable, key obj.Key, args []string) error {
	object, err := s.server.Get(s.ctx, key)
	if err != nil {
		return err
	}
	status := false
	for _, arg := range args {
		name, value, found := strings.Cut(arg, "=")
		column, ok := kind.column(name)
		if !found || !ok {
			return fmt.Errorf("%q is not COLUMN=value; the columns are %s", arg, kind.names())
		}
		if err := column.set(object, value); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		status = status || column.status
	}
	if status {
		_, err = s.server.UpdateStatus(s.ctx, object)
	} else {
		_, err = s.server.Update(s.ctx, object)
	}
	return err
}

// mark changes annotations or labels as kubectl does: "name=value", "name-".
func (s *stage) mark(key obj.Key, verb string, args []string) error {
	object, err := s.server.Get(s.ctx, key)
	if err != nil {
		return err
	}
	marks := object.GetAnnotations()
	if verb == "label" {
		marks = object.GetLabels()
	}
	if marks == nil {
		marks = map[string]string{}
	}
	for _, arg := range args {
		name, value, found := strings.Cut(arg, "=")
		gone, goes := strings.CutSuffix(arg, "-")
		switch {
		case found:
			marks[name] = value
		case goes:
			delete(marks, gone)
		default:
			return fmt.Errorf("%q is neither name=value nor name-", arg)
		}
	}
	if verb == "label" {
		object.SetLabels(marks)
	} else {
		object.SetAnnotations(marks)
	}
	_, err = s.server.Update(s.ctx, object)
	return err
}
