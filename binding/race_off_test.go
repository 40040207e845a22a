//go:build !race

package binding_test

// slowedBy is 1: without the race detector everything takes as long as it does.
const slowedBy = 1
