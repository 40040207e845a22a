package binding

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/pvbind/pvbind/binding/internal/zeromap"
	"github.com/pvbind/pvbind/binding/match"
)

// catalog keeps volumes on shelves, one for each group.
type catalog map[group]*shelf

func (c *catalog) put(volume *corev1.PersistentVolume) {
	group := groupOf(volume)
	if (*c)[group] == nil {
		zeromap.Put(c, group, &shelf{})
	}
	(*c)[group].put(fileOf(volume))
}

func (c catalog) take(volume *corev1.PersistentVolume) {
	group := groupOf(volume)
	if c[group].take(fileOf(volume)); c[group].len() == 0 {
		delete(c, group)
	}
}

// shelf keeps the volumes of a group. Each is either usable anywhere or placed; beside that, it can be
// found by its labels, and by its places or among the odd ones that have none.
type shelf struct {
	anywhere rack[stock]
	placed   rack[stock]
	odd      rack[stock]
	// sure are the placed volumes whose places suffice, perhaps the others that have places.
	sure, perhaps racks[stock]
	labelled      racks[stock]
	// placeKeys counts the placed volumes by the key of their places.
	placeKeys map[string]int
}

func (s *shelf) len() int { return s.anywhere.len() + s.placed.len() }

func (s *shelf) put(f filing) {
	for key, value := range f.Labels {
		s.labelled.insert(label{key, value}, f.modes, f.rank, f.stock)
	}
	s.place(f)
}

// place is put, but the volume cannot be found by its labels.
func (s *shelf) place(f filing) {
	if match.RequiredAffinity(f.PersistentVolume) == nil {
		s.anywhere.insert(f.modes, f.rank, f.stock)
		return
	}
	s.placed.insert(f.modes, f.rank, f.stock)
	if len(f.places.labels) == 0 {
		s.odd.insert(f.modes, f.rank, f.stock)
		return
	}
	key := f.places.labels[0].key
	zeromap.Put(&s.placeKeys, key, s.placeKeys[key]+1)
	for _, place := range f.places.labels {
		s.by(f.places).insert(place, f.modes, f.rank, f.stock)
	}
}

func (s *shelf) take(f filing) {
	for key, value := range f.Labels {
		s.labelled.remove(label{key, value}, f.modes, f.rank)
	}
	if match.RequiredAffinity(f.PersistentVolume) == nil {
		s.anywhere.remove(f.modes, f.rank)
		return
	}
	s.placed.remove(f.modes, f.rank)
	if len(f.places.labels) == 0 {
		s.odd.remove(f.modes, f.rank)
		return
	}
	key := f.places.labels[0].key
	if s.placeKeys[key]--; s.placeKeys[key] == 0 {
		delete(s.placeKeys, key)
	}
	for _, place := range f.places.labels {
		s.by(f.places).remove(place, f.modes, f.rank)
	}
}

// by are the racks for volumes of such places.
func (s *shelf) by(p places) *racks[stock] {
	if p.suffice {
		return &s.sure
	}
	return &s.perhaps
}
