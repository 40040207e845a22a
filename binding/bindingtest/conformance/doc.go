// Package conformance holds an API server to what binding relies on (rules A1 to A6), as testing/fstest does with a
// file system. The server in memory of bindingtest and a real kube-apiserver have to pass the same tests, or a
// unit test on the one says nothing of a cluster with the other.
//
// Run runs them all against a server that a NewAPI makes:
//
//	conformance.Run(t, func(*testing.T) conformance.API { return bindingtest.NewServer() })
package conformance
