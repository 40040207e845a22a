//go:build race

package binding_test

// slowedBy is how many times as long as usual everything but a sleep takes under the race detector, about. What
// is measured beside such work has to take as much longer.
const slowedBy = 10
