// Package e2e has tests that run pvextender under a real kube-scheduler whose own VolumeBinding plugin is switched off,
// on a real API server, with a binder beside them. Nodes are objects that nobody stands behind: no pod ever starts.
//
//	go test -v ./e2e
package e2e
