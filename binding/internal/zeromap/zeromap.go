// Package zeromap writes to maps that may be nil, so that the zero value of a struct is ready to use.
package zeromap

// Put sets the value under the key, and makes the map if it is nil.
func Put[M ~map[K]V, K comparable, V any](m *M, key K, value V) {
	if *m == nil {
		*m = M{}
	}
	(*m)[key] = value
}
