package bindingtest

import (
	"maps"

	"k8s.io/apimachinery/pkg/types"

	"github.com/pvbind/pvbind/binding/obj"
)

// stores are the objects of a server by kind, so that what looks for those of one kind does not meet the
// others. The objects in here are never modified, only replaced, so that copies of the server share them.
type stores map[obj.Kind]map[obj.Key]stored

type stored struct {
	object obj.Object
	serial int // of the change that made it so
}

// uid is that of the object; "" if there is none.
func (s stored) uid() types.UID {
	if s.object == nil {
		return ""
	}
	return s.object.GetUID()
}

func (s stores) get(key obj.Key) stored { return s[key.Kind][key] }

func (s stores) put(key obj.Key, object stored) {
	if s[key.Kind] == nil {
		s[key.Kind] = map[obj.Key]stored{}
	}
	s[key.Kind][key] = object
}

func (s stores) len() (n int) {
	for _, ofKind := range s {
		n += len(ofKind)
	}
	return n
}

func (s stores) clone() stores {
	c := make(stores, len(s))
	for kind, ofKind := range s {
		c[kind] = maps.Clone(ofKind)
	}
	return c
}
