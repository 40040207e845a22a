package binding

// InvalidError is an object that no decision can be made on (X7). It concerns that object alone, and
// nothing but a change of it mends it.
type InvalidError struct {
	Object  string // such as "pvc/default/data" or "storageclass/fast"
	Field   string // such as "spec.selector"
	Problem string
}

func (e *InvalidError) Error() string { return e.Object + ": " + e.Field + ": " + e.Problem }
