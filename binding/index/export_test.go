package index

// Len returns the number of volumes.
func (x *Index) Len() int { return len(x.volumes) }
