// Package zeromap writes to maps whose zero value is ready to use.
package zeromap

// Put assigns to a map that may not have been made yet.
func Put[M ~map[K]V, K comparable, V any](m *M, key K, value V) {
	if *m == nil {
		*m = M{}
	}
	(*m)[key] = value
}
