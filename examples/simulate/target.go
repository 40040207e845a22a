package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/pvbind/pvbind/binding/bindingtest"
	"github.com/pvbind/pvbind/binding/obj"
	"github.com/pvbind/pvbind/examples/internal/dump"
)

// target names an object to delete.
type target struct {
	kind            string // short, as in kind
	namespace, name string
}

func (t target) String() string {
	if t.namespace == "" {
		return t.kind + "/" + t.name
	}
	return t.kind + "/" + t.namespace + "/" + t.name
}

// parseTarget reads KIND/[NAMESPACE/]NAME.
func parseTarget(text string) (target, error) {
	parts := strings.Split(text, "/")
	if slices.Contains(parts, "") || len(parts) < 2 || len(parts) > 3 {
		return target{}, fmt.Errorf("must be KIND/[NAMESPACE/]NAME")
	}
	t := target{kind: shortKind(parts[0]), name: parts[len(parts)-1]}
	switch {
	case t.kind == "":
		return target{}, fmt.Errorf("kind must be pv, pvc or pod")
	case t.kind == "pv" && len(parts) == 3:
		return target{}, fmt.Errorf("a pv has no namespace")
	case t.kind == "pv":
		return t, nil
	case len(parts) == 3:
		t.namespace = parts[1]
	default:
		t.namespace = dump.DefaultNamespace
	}
	return t, nil
}

// shortKind takes the spellings that kubectl takes.
func shortKind(name string) string {
	switch strings.ToLower(name) {
	case "pv", "persistentvolume", "persistentvolumes":
		return "pv"
	case "pvc", "persistentvolumeclaim", "persistentvolumeclaims":
		return "pvc"
	case "po", "pod", "pods":
		return "pod"
	}
	return ""
}

func (t target) key() obj.Key {
	switch t.kind {
	case "pv":
		return obj.VolumeKey(t.name)
	case "pvc":
		return obj.ClaimKey(t.namespace, t.name)
	}
	return bindingtest.PodKey(t.namespace, t.name)
}
