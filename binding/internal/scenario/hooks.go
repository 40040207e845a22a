package scenario

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/pvbind/pvbind/binding/bindingtest"
	"github.com/pvbind/pvbind/binding/hooks"
	"github.com/pvbind/pvbind/binding/internal/judge"
	"github.com/pvbind/pvbind/binding/internal/testkit"
	"github.com/pvbind/pvbind/binding/obj"
)

// hookLine is the call of a hook, as a scenario tells it.
type hookLine struct {
	at               int // calls of the server before it
	controller, text string
}

// hookFault is how a call of a hook goes wrong, and whether it did its work all the same.
type hookFault struct {
	err   error
	works bool
	small bool   // it makes less than was asked for
	first func() // happens before
	last  func() // happens after
}

// planAfter keeps what was planned to happen before the same call.
func (f *hookFault) planAfter(earlier hookFault) {
	if last := f.first; earlier.first != nil && last != nil {
		f.first = func() { earlier.first(); last() }
	} else if earlier.first != nil {
		f.first = earlier.first
	}
}

// setHooks gives hooks to the controllers that start after it: "provisioner=own.example.com deleter=own.example.com,nfs".
// A deleter is one of a provisioner if its name has a dot, and else one of a source.
func (s *Runner) setHooks(words []string) error {
	s.hooks = map[string][]string{}
	for _, word := range words {
		if word == "none" {
			continue
		}
		what, names, found := strings.Cut(word, "=")
		if !found || what != "provisioner" && what != "deleter" && what != "recycler" {
			return fmt.Errorf("%q is not provisioner=, deleter= or recycler=", word)
		}
		s.hooks[what] = strings.Split(names, ",")
	}
	return nil
}

// hooksOf returns the hooks of a controller that starts now. All work on the one storage of the runner.
func (s *Runner) hooksOf(a *controller) hooks.Set {
	if len(s.hooks) == 0 {
		return hooks.Set{}
	}
	set := hooks.Set{
		Provisioners: map[string]hooks.Provisioner{}, Deleters: map[string]hooks.Deleter{},
		SourceDeleters: map[string]hooks.Deleter{}, Recyclers: map[string]hooks.Recycler{},
	}
	for _, name := range s.hooks["provisioner"] {
		set.Provisioners[name] = testkit.Provisions(func(_ context.Context, request hooks.ProvisionRequest) (*corev1.PersistentVolume, error) {
			return s.provision(a, name, request)
		})
	}
	for _, name := range s.hooks["deleter"] {
		deleter := testkit.Deletes(func(_ context.Context, request hooks.ReclaimRequest) error { return s.deleteStorage(a, name, request) })
		if strings.Contains(name, ".") {
			set.Deleters[name] = deleter
		} else {
			set.SourceDeleters[name] = deleter
		}
	}
	for _, name := range s.hooks["recycler"] {
		set.Recyclers[name] = testkit.Recycles(func(_ context.Context, request hooks.ReclaimRequest) error {
			if err := s.checkToken(a, "recycle ", request.Volume, request.Token); err != nil {
				return err
			}
			s.checkDetached(request.Volume)
			return s.callHook(a, "recycle "+request.Volume.Name, func(hookFault) string { return "scrubbed" })
		})
	}
	return set
}

func (s *Runner) provision(a *controller, by string, request hooks.ProvisionRequest) (*corev1.PersistentVolume, error) {
	volume, what := request.Volume, "provision "+request.Volume.Name
	if request.Node != "" {
		what += " for node " + request.Node
	}
	s.tokens[volume.Name] = max(s.tokens[volume.Name], request.Token) // which refuses no provisioner that comes late: others do not either
	err := s.callHook(a, what, func(fault hookFault) string {
		volume.Spec.NFS = &corev1.NFSVolumeSource{Server: "nfs", Path: "/" + volume.Name}
		s.stored[volume.Name], s.madeBy[volume.Name] = true, by
		if fault.small {
			volume.Spec.Capacity[corev1.ResourceStorage] = resource.MustParse("1")
			return "made too small"
		}
		return "made"
	})
	if err != nil {
		return nil, err
	}
	return volume, nil
}

// checkToken refuses a call whose token is smaller than one that was seen for the same volume, as storage should.
func (s *Runner) checkToken(a *controller, what string, volume *corev1.PersistentVolume, token int64) error {
	if token < s.tokens[volume.Name] {
		s.hookLines = append(s.hookLines, hookLine{len(s.Server.Calls()), a.name, what + volume.Name + ": refused, for its token is stale"})
		return &hooks.Error{Meaning: hooks.StaleToken}
	}
	s.tokens[volume.Name] = token
	return nil
}

func (s *Runner) deleteStorage(a *controller, by string, request hooks.ReclaimRequest) error {
	volume := request.Volume
	if err := s.checkToken(a, "delete storage of ", volume, request.Token); err != nil {
		return err
	}
	s.checkStorageIsFree(volume)
	return s.callHook(a, "delete storage of "+volume.Name, func(hookFault) string {
		if maker := s.madeBy[volume.Name]; maker != "" && strings.Contains(by, ".") && by != maker {
			return by + " has none"
		}
		was, made := s.stored[volume.Name]
		s.stored[volume.Name] = false
		if made && !was {
			return "there is none any more"
		}
		return "deleted"
	})
}

// callHook returns a call of a hook that does its work, unless a fault is planned for it.
func (s *Runner) callHook(a *controller, what string, work func(hookFault) string) error {
	a.made["hook"]++
	fault, planned := a.hookFaults[a.made["hook"]]
	if fault.first != nil {
		fault.first()
	}
	outcome := ""
	if !planned || fault.works {
		outcome = work(fault)
	}
	switch {
	case fault.err != nil && outcome != "":
		outcome += ", but answered: " + fault.err.Error()
	case fault.err != nil:
		outcome = "failed: " + fault.err.Error()
	}
	s.hookLines = append(s.hookLines, hookLine{len(s.Server.Calls()), a.name, what + ": " + outcome})
	if fault.last != nil {
		fault.last()
	}
	return fault.err
}

// faultOfHook returns what goes wrong with a hook; unknown if no such fault is known.
func (s *Runner) faultOfHook(a *controller, what, meanwhile string) (fault hookFault, known bool) {
	says := func(meaning hooks.Meaning, err string) hookFault {
		return hookFault{err: &hooks.Error{Meaning: meaning, Err: errors.New(err)}}
	}
	switch what {
	case "fail":
		return hookFault{err: errors.New("out of space")}, true
	case "lose answer of":
		return hookFault{err: errTimedOut, works: true}, true
	case "crash after":
		return hookFault{err: bindingtest.ErrCrashed, works: true, last: func() { a.Client.CrashAfter(0) }}, true
	case "bad answer of":
		return hookFault{works: true, small: true}, true
	case "in progress at":
		return says(hooks.InProgress, "at work"), true
	case "in use at":
		return says(hooks.InUse, "mounted"), true
	case "refuse":
		return says(hooks.Refused, "not here"), true
	case "before":
		return hookFault{works: true, first: func() { s.meanwhile(meanwhile) }}, true
	}
	return hookFault{}, false
}

// hooksBefore prints the calls of hooks that came before the n-th call of the server.
func (s *Runner) hooksBefore(n int) (lines []string) {
	for len(s.hookLines) > 0 && s.hookLines[0].at <= n {
		line := s.hookLines[0].text
		if len(s.controllers) > 1 || s.steps != nil {
			line = s.hookLines[0].controller + ": " + line
		}
		lines = append(lines, line)
		s.hookLines = s.hookLines[1:]
	}
	return lines
}

// checkDetached holds a deleter or recycler to X2.
func (s *Runner) checkDetached(volume *corev1.PersistentVolume) {
	for _, object := range s.all(obj.KindAttachment) {
		if spec := object.(*storagev1.VolumeAttachment).Spec; spec.Source.PersistentVolumeName != nil && *spec.Source.PersistentVolumeName == volume.Name {
			s.violate("X2: the storage of %s is reclaimed, and it is attached to %s", volume.Name, spec.NodeName)
		}
	}
}

// checkStorageIsFree holds a deleter to X2.
func (s *Runner) checkStorageIsFree(volume *corev1.PersistentVolume) {
	s.checkDetached(volume)
	stored := s.Server.Volume(volume.Name)
	switch {
	case stored == nil:
		return
	case s.steps != nil: // somebody may have stored the volume, or changed the policy, after the controller looked
	case volume.UID == "":
		s.violate("P2: the storage of %s is deleted as if no volume stood for it", volume.Name)
	case stored.Spec.PersistentVolumeReclaimPolicy != corev1.PersistentVolumeReclaimDelete:
		s.violate("X2: the storage of %s is deleted, whose policy is %s", volume.Name, stored.Spec.PersistentVolumeReclaimPolicy)
	}
	if ref := stored.Spec.ClaimRef; ref != nil {
		claim := s.Server.Claim(ref.Namespace, ref.Name)
		if claim != nil && claim.UID == ref.UID && (claim.Spec.VolumeName == "" || claim.Spec.VolumeName == volume.Name) {
			s.violate("X2: the storage of %s is deleted, and its claim exists", volume.Name)
		}
	}
}

// checkDeletion holds the deletion of a volume to R3: after its storage, and with preconditions.
func (s *Runner) checkDeletion(call *bindingtest.Call) {
	if conditions := call.Options.Preconditions; conditions == nil || conditions.UID == nil || conditions.ResourceVersion == nil {
		s.violate("R3: %s without preconditions", call)
	}
	volume := s.Server.Volume(call.Key.Name)
	ref := obj.ReferencedClaim(volume)
	if s.stored[call.Key.Name] && !judge.StandsFor(s.Server.Claim(ref.Namespace, ref.Name), volume) {
		s.violate("R3: %s before its storage", call)
	}
}

// checkStorage compares the storage that was made with the volumes, at the end of a scenario.
func (s *Runner) checkStorage() {
	for name, exists := range s.stored {
		volume := s.Server.Volume(name)
		retained := volume == nil && s.retained(name)
		if exists && volume == nil && !retained {
			s.violate("P2: storage %s is left behind", name)
		}
		if !exists && retained {
			s.violate("X2: storage %s is deleted, which was to be retained", name)
		}
		if !exists && volume != nil && volume.DeletionTimestamp == nil {
			s.violate("R3: volume %s has no storage any more", name)
		}
	}
}

// retained reports whether the storage of a volume that is gone was to stay, as its policy said at the end.
func (s *Runner) retained(name string) bool {
	for _, call := range slices.Backward(s.Server.Calls()) {
		if last, ok := call.Before.(*corev1.PersistentVolume); ok && last.Name == name && call.Changed() {
			return call.After == nil && last.Spec.PersistentVolumeReclaimPolicy == corev1.PersistentVolumeReclaimRetain
		}
	}
	return false
}
