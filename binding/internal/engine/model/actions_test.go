package model_test

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"

	"github.com/pvbind/pvbind/binding/internal/scenario"
	"github.com/pvbind/pvbind/binding/obj"
	"github.com/pvbind/pvbind/phase"
)

// userAction is something that somebody other than a controller may do: a command as in a scenario file ("set",
// "annotate", "delete", "remove", "unprotect"), or "create KEY", which stands for that object's row in the model's tables.
// "{pvc/default/a}" in it is the UID of that object, "{pvc/default/a#1}" that of the first of its name.
type userAction struct {
	text string
	when func(now *state) bool // nil: always
	do   func(next *state) bool

	trouble trouble // "" for what people do every day
}

// newAction readies an action, whose do reports whether the server did anything.
func (m *model) newAction(d userAction) userAction {
	words := strings.Fields(d.text)
	name, _ := withUID(&tinyServer{revisions: m.revisions}, words[1])
	_, key, err := scenario.KeyNamed(name)
	if err != nil {
		panic(err)
	}
	at, act := m.indexOf(key), m.effectOf(words)
	d.trouble = troubleIn(d.text)
	d.do = func(next *state) bool {
		if d.when != nil && !d.when(next) {
			return false
		}
		before, written, created := next.server.objects[at], next.server.written[at], next.server.created[at]
		act(&next.server, at)
		if next.server.created[at] != created {
			m.addStorage(next, at)
		}
		m.retainStorage(next, at, before)
		m.excuseForce(next, d.trouble, at, before)
		if d.trouble == adminReserves {
			next.outrun()
		}
		next.data[at] = next.data[at].Edited(asVolume(before), asVolume(next.server.objects[at]))
		return next.server.written[at] != written
	}
	return d
}

// effectOf returns what a command does to the server.
func (m *model) effectOf(words []string) func(*tinyServer, int) {
	switch verb, args := words[0], words[2:]; verb {
	case "create":
		return m.creating(words[1])
	case "delete":
		return func(s *tinyServer, at int) { s.delete(at) }
	case "remove":
		return func(s *tinyServer, at int) {
			s.delete(at)
			editing(func(_ *tinyServer, object obj.Object) bool { object.SetFinalizers(nil); return true })(s, at)
		}
	case "unprotect":
		return editing(func(_ *tinyServer, object obj.Object) bool { return scenario.Unprotect(object) })
	case "set":
		tables := scenario.KindTables() // once: they are many
		return editing(func(s *tinyServer, object obj.Object) bool { return setAll(s, tables, object, args) })
	case "annotate":
		return editing(func(_ *tinyServer, object obj.Object) bool { annotate(object, args); return true })
	default:
		panic("the model does not know how to " + verb)
	}
}

// creating returns an action that creates the object of that row.
func (m *model) creating(name string) func(*tinyServer, int) {
	row, ok := m.rows[name]
	if !ok {
		panic("no row for " + name)
	}
	return func(s *tinyServer, _ int) {
		if object, ok := row.object(s); ok {
			s.create(object)
		}
	}
}

// editing returns an action that edits the newest version of an object, which a person has read just now.
func editing(edit func(*tinyServer, obj.Object) bool) func(*tinyServer, int) {
	return func(s *tinyServer, at int) {
		if s.objects[at] == nil {
			return
		}
		object := s.objects[at].object.DeepCopyObject().(obj.Object)
		if edit(s, object) {
			s.update(object, specPart)
		}
	}
}

func setAll(s *tinyServer, tables []scenario.KindTable, object obj.Object, args []string) bool {
	kind := tables[slices.IndexFunc(tables, func(t scenario.KindTable) bool { return t.Kind == keyOfAny(object).Kind })]
	for _, arg := range args {
		name, value, _ := strings.Cut(arg, "=")
		column, ok := kind.Column(name)
		value, known := withUID(s, value)
		if !known {
			return false
		}
		if !ok || column.Set(object, value) != nil {
			panic("the model cannot set " + arg)
		}
	}
	return true
}

func annotate(object obj.Object, args []string) {
	marks := object.GetAnnotations()
	if marks == nil {
		marks = map[string]string{}
	}
	for _, arg := range args {
		name, value, found := strings.Cut(arg, "=")
		if found {
			marks[name] = value
		} else {
			delete(marks, strings.TrimSuffix(name, "-"))
		}
	}
	object.SetAnnotations(marks)
}

// withUID puts in UIDs for the names in braces; it fails if there is no such object. A number after the name asks
// for the UID of that creation, whether it still exists or not.
func withUID(s *tinyServer, text string) (string, bool) {
	before, rest, found := strings.Cut(text, "{")
	if !found {
		return text, true
	}
	name, after, _ := strings.Cut(rest, "}")
	name, number, past := strings.Cut(name, "#")
	_, key, err := scenario.KeyNamed(name)
	if err != nil {
		panic(err)
	}
	at := s.revisions.indexOf(key)
	switch {
	case past:
		return before + fmt.Sprintf("%s.%s", key.Name, number) + after, true
	case s.objects[at] == nil:
		return "", false
	}
	return before + string(s.objects[at].object.GetUID()) + after, true
}

// row is an object as a table has it.
type row struct {
	header, cells string
}

func (r row) object(s *tinyServer) (obj.Object, bool) {
	kind, columns, err := scenario.HeaderOf(r.header)
	if err != nil {
		panic(err)
	}
	cells, ok := withUID(s, r.cells)
	if !ok {
		return nil, false
	}
	object, err := kind.Object(columns, strings.Fields(cells))
	if err != nil {
		panic(err)
	}
	if class, ok := object.(*storagev1.StorageClass); ok { // the tables leave these to the server's defaults
		class.ReclaimPolicy = new(corev1.PersistentVolumeReclaimDelete)
		if class.VolumeBindingMode == nil {
			class.VolumeBindingMode = new(storagev1.VolumeBindingImmediate)
		}
	}
	return object, true
}

// rowsIn returns the rows of tables, by key, and the keys in their order.
func rowsIn(tables string) (rows map[string]row, names []string) {
	rows = map[string]row{}
	header := ""
	for line := range strings.Lines(tables) {
		line = strings.TrimSpace(line)
		words := strings.Fields(line)
		switch {
		case len(words) == 0:
			header = ""
		case header == "":
			header = line
		default:
			name := strings.ToLower(strings.Fields(header)[0]) + "/" + words[0]
			rows[name] = row{header, line}
			names = append(names, name)
		}
	}
	return rows, names
}

// claimAsks reports whether the provisioner may serve a claim: it was requested once, and nobody knows that it has a volume.
func claimAsks(now *state) bool { return now.asked }

// volumeIs reports whether a volume is in a phase.
func volumeIs(name string, at corev1.PersistentVolumePhase) func(*state) bool {
	return func(now *state) bool {
		volume := now.server.volume(name)
		return volume != nil && volume.Status.Phase == at
	}
}

// claimIsUnbound reports whether a scheduler may choose for a claim.
func claimIsUnbound(name string) func(*state) bool {
	return func(now *state) bool {
		claim := now.server.claim(obj.ClaimKey("default", name))
		return claim != nil && claim.Spec.VolumeName == "" && !phase.BindCompleted(claim)
	}
}
