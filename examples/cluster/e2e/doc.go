// Package e2e holds the library to a real API server, and to kube-controller-manager beside it. It is tests only:
//
//	go test ./e2e                     # the short form
//	PVBIND_MODE=long go test ./e2e    # more worlds, more kills
//	go test ./e2e -run '^$' -bench .  # against kube-controller-manager
//
// Package controlplane has the control plane that they run on.
package e2e
