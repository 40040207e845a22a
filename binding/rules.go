package binding

import (
	"github.com/pvbind/pvbind/reclaim"
	"github.com/pvbind/pvbind/storageclass"
)

// Protection says whether the in-use protection finalizers are kept (F).
type Protection string

const (
	// ProtectionOff leaves them to kube-controller-manager.
	ProtectionOff Protection = ""
	// ProtectionOn adds and removes them, which needs pods to be observed.
	ProtectionOn Protection = "On"
)

// Rules are what an administrator has decided beforehand. The zero value is a cluster as it comes:
// the migrations of G1, and kube-controller-manager protecting what is in use.
type Rules struct {
	// Migrations are the in-tree provisioners that a CSI driver stands in for (G1). Nil is the table
	// of G1; an empty map migrates nothing.
	Migrations storageclass.Migrations
	// Protection is off unless set.
	Protection Protection
	// Hooks are the names of the hooks that can be run. A Controller fills them in from its own.
	Hooks HookNames
}

// filled has the defaults spelled out.
func (r Rules) filled() Rules {
	if r.Migrations == nil {
		r.Migrations = storageclass.InTreeMigrations()
	}
	return r
}

// reclaim are the rules that a released volume is reclaimed by.
func (r Rules) reclaim() reclaim.Rules {
	return reclaim.Rules{
		Migrations:     r.Migrations,
		Deleters:       r.Hooks.Deleters,
		SourceDeleters: r.Hooks.SourceDeleters,
		Recyclers:      r.Hooks.Recyclers,
	}
}
