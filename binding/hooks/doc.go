// Package hooks is the interface to storage of one's own: who provisions storage, deletes it or removes the data from it.
//
// A Set has the hooks of a Controller: a Provisioner for each provisioner that classes name, Deleters for the volumes that
// were provisioned and for those that nobody is said to have provisioned, and Recyclers. When a hook is called, in which order
// with the writes, and what follows when it fails, is decided by package decision. An Error tells more than that a hook
// failed: that the work goes on, that it will never succeed, or that somebody uses the storage.
//
// All of it is in hooks.go. The rules P2, R3, R4 and Rh are those of RULES.md in package binding.
package hooks
