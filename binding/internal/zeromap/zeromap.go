package zeromap

// put is an assignment to a map that may not have been made yet.
func Put[M ~map[K]V, K comparable, V any](m *M, key K, value V) {
	if *m == nil {
		*m = M{}
	}
	(*m)[key] = value
}
