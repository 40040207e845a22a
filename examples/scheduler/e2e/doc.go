// Package e2e has tests that run kube-scheduler with the plugin compiled in, in place of its own VolumeBinding, on a real API server,
// with kube-controller-manager's binder or pvbinder behind it, and beside a kube-scheduler as it comes. Nodes are objects that nobody stands
// behind: no pod ever starts.
//
//	go test -v ./e2e
package e2e
