package index

import (
	"cmp"
	"math"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"

	"github.com/pvbind/pvbind/accessmode"
	"github.com/pvbind/pvbind/binding/internal/quantities"
	"github.com/pvbind/pvbind/binding/internal/zeromap"
	"github.com/pvbind/pvbind/binding/match"
	"github.com/pvbind/pvbind/storageclass"
)

// buckets are the volumes by their group.
type buckets map[group]*bucket

func (c *buckets) put(volume *corev1.PersistentVolume) {
	group := groupOf(volume)
	if (*c)[group] == nil {
		zeromap.Put(c, group, &bucket{})
	}
	(*c)[group].put(fileOf(volume))
}

func (c buckets) take(volume *corev1.PersistentVolume) {
	group := groupOf(volume)
	if c[group].take(fileOf(volume)); c[group].len() == 0 {
		delete(c, group)
	}
}

// bucket keeps the volumes of a group. Each is either usable anywhere or placed; beside that, it can be
// found by its labels, and by its places or among the odd ones that have none.
type bucket struct {
	anywhere modeTrees[stock]
	placed   modeTrees[stock]
	odd      modeTrees[stock]
	// sure are the placed volumes whose places suffice, perhaps the others that have places.
	sure, perhaps labelTrees[stock]
	labelled      labelTrees[stock]
	// placeKeys counts the placed volumes by the key of their places.
	placeKeys map[string]int
}

func (s *bucket) len() int { return s.anywhere.len() + s.placed.len() }

func (s *bucket) put(f filing) {
	for key, value := range f.Labels {
		s.labelled.insert(label{key, value}, f.modes, f.rank, f.stock)
	}
	s.place(f)
}

// place is put, but the volume cannot be found by its labels.
func (s *bucket) place(f filing) {
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

func (s *bucket) take(f filing) {
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

// by are the trees for volumes of such places.
func (s *bucket) by(p places) *labelTrees[stock] {
	if p.suffice {
		return &s.sure
	}
	return &s.perhaps
}

// inBucket looks in as few of the bucket's trees as have every volume that could do.
func (s *search) inBucket(f *bucket) {
	if s.Selector == nil || s.selected {
		s.onNode(f)
		return
	}
	sought, count := f.narrowest(s.Claim.Spec.Selector)
	if sought.key == "" || s.Node != nil && f.countOn(s.Node) < count {
		s.recheck = true
		s.onNode(f)
		return
	}
	s.recheck = s.recheck || s.Node != nil || !sought.alone
	f.having(sought, s.in)
}

// onNode looks in the trees that have what is usable on the node; without a node, in all.
func (s *search) onNode(f *bucket) {
	s.in(&f.anywhere)
	if s.Node == nil {
		s.in(&f.placed)
		return
	}
	f.surelyOn(s.Node, s.in)
	s.recheck = true
	f.perhapsOn(s.Node, s.in)
}

// surelyOn visits the trees of the placed volumes that are usable on the node by one of its labels alone; nil where
// there are none.
func (s *bucket) surelyOn(node *corev1.Node, visit func(*modeTrees[stock])) {
	s.eachPlace(node, func(place label) { visit(s.sure[place]) })
}

// perhapsOn visits the trees of the other placed volumes that may be usable on the node.
func (s *bucket) perhapsOn(node *corev1.Node, visit func(*modeTrees[stock])) {
	if len(s.perhaps) > 0 {
		s.eachPlace(node, func(place label) { visit(s.perhaps[place]) })
	}
	visit(&s.odd)
}

// eachPlace visits the node's labels of which there may be volumes.
func (s *bucket) eachPlace(node *corev1.Node, visit func(label)) {
	if len(s.placeKeys) > len(node.Labels) {
		for key, value := range node.Labels {
			visit(label{key, value})
		}
		return
	}
	for key := range s.placeKeys {
		if value, ok := node.Labels[key]; ok {
			visit(label{key, value})
		}
	}
}

// countOn is how many volumes there are to look at for a node.
func (s *bucket) countOn(node *corev1.Node) int {
	count := s.anywhere.len()
	add := func(k *modeTrees[stock]) { count += k.len() }
	s.surelyOn(node, add)
	s.perhapsOn(node, add)
	return count
}

// sought is the part of a selector by which volumes are looked up: a label with one value, or with one
// of several. Without a key, the selector has no such part.
type sought struct {
	key    string
	value  string
	values []string // in place of value, if not nil
	alone  bool     // the selector has no other part
}

// narrowest is the part of the selector that the fewest volumes have, and how many those are.
func (s *bucket) narrowest(selector *metav1.LabelSelector) (best sought, fewest int) {
	fewest = math.MaxInt
	consider := func(part sought) {
		count := 0
		s.having(part, func(k *modeTrees[stock]) { count += k.len() })
		if count < fewest {
			best, fewest = part, count
		}
	}
	for key, value := range selector.MatchLabels {
		consider(sought{key: key, value: value})
	}
	for i := range selector.MatchExpressions {
		if part := &selector.MatchExpressions[i]; part.Operator == metav1.LabelSelectorOpIn {
			consider(sought{key: part.Key, values: part.Values})
		}
	}
	best.alone = len(selector.MatchLabels)+len(selector.MatchExpressions) == 1
	return best, fewest
}

// having visits the trees of volumes that have what is sought, each once; nil for a label that no volume
// has.
func (s *bucket) having(sought sought, visit func(*modeTrees[stock])) {
	if sought.values == nil {
		visit(s.labelled[label{sought.key, sought.value}])
		return
	}
	for i, value := range sought.values {
		if !slices.Contains(sought.values[:i], value) {
			visit(s.labelled[label{sought.key, value}])
		}
	}
}

// stock is a volume in an order: by capacity, then by name.
type stock struct{ *corev1.PersistentVolume }

func (s stock) amount() resource.Quantity {
	capacity, _ := match.CapacityOf(s.PersistentVolume)
	return capacity
}

func (s stock) tie(r rank) int {
	if !exact(r.size) {
		if order := quantities.Compare(s.amount(), r.quantity); order != 0 {
			return order
		}
	}
	return cmp.Compare(s.Name, r.name)
}

// group is what volumes have in common, and with a claim, to be chosen from by size alone (M5 to M7).
type group struct {
	volumeMode      corev1.PersistentVolumeMode
	class           string
	attributesClass string
}

func groupFor(c *match.Criteria) group {
	return group{volumeMode: c.VolumeMode, class: c.Class, attributesClass: c.AttributesClass}
}

func groupOf(volume *corev1.PersistentVolume) group {
	return group{
		volumeMode:      match.VolumeModeOf(volume.Spec.VolumeMode),
		class:           storageclass.OfVolume(volume),
		attributesClass: match.AttributesClassOf(volume),
	}
}

// filing is where in a bucket a volume is kept. It is worked out from the volume whenever that is put in
// or taken out.
type filing struct {
	stock
	rank
	modes  accessmode.Set
	places places
}

// fileOf is the filing of a well-formed volume.
func fileOf(volume *corev1.PersistentVolume) filing {
	capacity, _ := match.CapacityOf(volume)
	modes, _ := match.ModesOf(volume)
	return filing{
		stock:  stock{volume},
		rank:   rank{size: sizeOf(capacity), quantity: capacity, name: volume.Name},
		modes:  modes,
		places: placesOf(match.RequiredAffinity(volume)),
	}
}

// maxPlaces is how many values a node affinity may list for the volume to be looked up by each.
const maxPlaces = 16

// places are labels of one key, of which a node must have one for a volume to be usable on it.
type places struct {
	labels  []label // none: whatever the node's labels, the volume must be checked
	suffice bool    // one of them is enough; else the volume must be checked on a node that has one
}

// placesOf are the places of a volume: what its terms ask for of one key by In, of several keys the one that leaves the
// fewest nodes. They suffice if no term asks for more, as with nearly every local or zonal volume; a region beside the
// zone is more.
func placesOf(required *corev1.NodeSelector) places {
	if required == nil || len(required.NodeSelectorTerms) == 0 {
		return places{}
	}
	var best []label
	for _, asked := range required.NodeSelectorTerms[0].MatchExpressions {
		found := labelsOf(required, asked.Key)
		if len(found) > 0 && (best == nil || compareNarrowness(found, best) < 0) {
			best = found
		}
	}
	return places{labels: best, suffice: len(best) > 0 && !slices.ContainsFunc(required.NodeSelectorTerms, asksMore)}
}

// labelsOf are the values of the key that the terms ask for, if each asks for some and they are not too many.
func labelsOf(required *corev1.NodeSelector, key string) (all []label) {
	for _, term := range required.NodeSelectorTerms {
		at := slices.IndexFunc(term.MatchExpressions, func(asked corev1.NodeSelectorRequirement) bool {
			return asked.Key == key && asked.Operator == corev1.NodeSelectorOpIn
		})
		if at < 0 || len(term.MatchExpressions[at].Values) > maxPlaces {
			return nil
		}
		for _, value := range term.MatchExpressions[at].Values {
			if place := (label{key, value}); !slices.Contains(all, place) {
				all = append(all, place)
			}
		}
	}
	if len(all) > maxPlaces {
		return nil
	}
	return all
}

// compareNarrowness puts labels first that fewer nodes have: a host; then a label that is not known here, which may be a
// driver's own name of a node; then a zone, a region, and what nodes are made of.
func compareNarrowness(a, b []label) int {
	width := func(key string) int {
		switch key {
		case corev1.LabelHostname:
			return 0
		case corev1.LabelTopologyZone, corev1.LabelFailureDomainBetaZone:
			return 2
		case corev1.LabelTopologyRegion, corev1.LabelFailureDomainBetaRegion:
			return 3
		case corev1.LabelOSStable, corev1.LabelArchStable, corev1.LabelInstanceTypeStable:
			return 4
		}
		return 1
	}
	return cmp.Or(cmp.Compare(width(a[0].key), width(b[0].key)), cmp.Compare(len(a), len(b)), cmp.Compare(a[0].key, b[0].key))
}

// asksMore reports whether a term that asks for a label to have one of some values may accept less than that: it
// asks for something else too, or it is malformed and accepts nothing.
func asksMore(term corev1.NodeSelectorTerm) bool {
	if len(term.MatchExpressions) != 1 || len(term.MatchFields) != 0 {
		return true
	}
	asked := &term.MatchExpressions[0]
	_, err := labels.NewRequirement(asked.Key, selection.In, asked.Values)
	return err != nil
}
