package binding_test

func verbAdvices() []advice { return nil }

func (r *reader) askVerbs() {}
