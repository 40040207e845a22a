package clientgo

import (
	"errors"
	"fmt"

	"github.com/pvbind/pvbind/binding"
)

// PodWatch says whether pods are watched.
type PodWatch string

const (
	// PodsWatched: a claim says which pods it waits for (C3), and is synced when they change (W5).
	PodsWatched PodWatch = ""
	// PodsIgnored: C3 says only that a consumer is awaited. Protection and recycling, which must know when a pod is
	// gone, are refused.
	PodsIgnored PodWatch = "Ignored"
)

// Check is an error where these rules or hooks need to know of pods that are not watched.
func (p PodWatch) Check(rules binding.Rules, hooks binding.Hooks) error {
	switch {
	case p != PodsWatched && p != PodsIgnored:
		return fmt.Errorf("unknown Pods: %q", p)
	case p == PodsIgnored && rules.Protection == binding.ProtectionOn:
		return errors.New("protection needs to know of pods, and Pods is Ignored")
	case p == PodsIgnored && len(hooks.Recyclers) > 0:
		return errors.New("recyclers need to know of pods, and Pods is Ignored")
	}
	return nil
}
