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
)

// buckets has the volumes of each group in a bucket of their own.
type buckets map[match.Group]*bucket

func (b *buckets) insert(volume *corev1.PersistentVolume) {
	group := match.GroupOf(volume)
	if (*b)[group] == nil {
		zeromap.Put(b, group, &bucket{})
	}
	(*b)[group].insert(volume)
}

func (b buckets) remove(volume *corev1.PersistentVolume) {
	group := match.GroupOf(volume)
	if b[group].remove(volume); b[group].len() == 0 {
		delete(b, group)
	}
}

// volumeTrees has volumes in order of capacity, then by name.
type volumeTrees = modeTrees[volumeEntry]

// bucket has the volumes of a group. Each is usable on every node or has a node affinity. It can also be found by its labels,
// and by the labels of the nodes that its node affinity accepts.
type bucket struct {
	anywhere volumeTrees
	affine   volumeTrees // those that have a node affinity
	// exact has volumes with a node affinity by node label: that a node has the label is enough. In candidates the node
	// affinity must also be checked. The other volumes with a node affinity are unindexed.
	exact, candidates labelTrees[volumeEntry]
	unindexed         volumeTrees
	labelled          labelTrees[volumeEntry] // by their own labels
	// manyLabels has those that have too many labels to be in a tree for each.
	manyLabels volumeTrees
	// topologyKeys counts the affine volumes by the key of their node labels.
	topologyKeys map[string]int
}

func (b *bucket) len() int { return b.anywhere.len() + b.affine.len() }

func (b *bucket) insert(volume *corev1.PersistentVolume) { b.update(volume, volumeTrees.insert, 1) }

func (b *bucket) remove(volume *corev1.PersistentVolume) { b.update(volume, volumeTrees.remove, -1) }

type volumeChange = func(volumeTrees, record[volumeEntry]) volumeTrees

func (b *bucket) update(volume *corev1.PersistentVolume, change volumeChange, count int) {
	r := recordOf(volume)
	if len(volume.Labels) > maxLabels {
		b.manyLabels = change(b.manyLabels, r)
	} else {
		for key, value := range volume.Labels {
			b.labelled.update(label{key, value}, r, change)
		}
	}
	b.updateTopology(r, change, count)
}

// maxLabels is how many labels a volume may have to be found by each (X9).
const maxLabels = 64

func (b *bucket) updateTopology(r record[volumeEntry], change volumeChange, count int) {
	required := match.RequiredAffinity(r.entry.PersistentVolume)
	if required == nil {
		b.anywhere = change(b.anywhere, r)
		return
	}
	b.affine = change(b.affine, r)
	var topology topology
	if !match.LargeAffinity(r.entry.PersistentVolume) {
		topology = topologyOf(required)
	}
	if len(topology.labels) == 0 {
		b.unindexed = change(b.unindexed, r)
		return
	}
	key := topology.labels[0].key
	if zeromap.Put(&b.topologyKeys, key, b.topologyKeys[key]+count); b.topologyKeys[key] == 0 {
		delete(b.topologyKeys, key)
	}
	trees := &b.candidates
	if topology.exact {
		trees = &b.exact
	}
	for _, l := range topology.labels {
		trees.update(l, r, change)
	}
}

// eachOn visits the trees of all volumes that may be usable on the node. All in a tree are usable if exact is set. Without
// a node, all volumes are.
func (b *bucket) eachOn(node *corev1.Node, visit func(trees volumeTrees, exact bool)) {
	visit(b.anywhere, true)
	if node == nil {
		visit(b.affine, true)
		return
	}
	b.eachTopologyLabel(node, func(l label) { visit(b.exact[l], true) })
	if len(b.candidates) > 0 {
		b.eachTopologyLabel(node, func(l label) { visit(b.candidates[l], false) })
	}
	visit(b.unindexed, false)
}

// eachTopologyLabel visits at least the labels of the node whose key is a topology key of the bucket. If the node has fewer
// labels than the bucket has keys it visits all of them; the others have no trees.
func (b *bucket) eachTopologyLabel(node *corev1.Node, visit func(label)) {
	if len(b.topologyKeys) > len(node.Labels) {
		for key, value := range node.Labels {
			visit(label{key, value})
		}
		return
	}
	for key := range b.topologyKeys {
		if value, ok := node.Labels[key]; ok {
			visit(label{key, value})
		}
	}
}

// countOn returns how many volumes there are to look at for a node.
func (b *bucket) countOn(node *corev1.Node) (count int) {
	b.eachOn(node, func(trees volumeTrees, _ bool) { count += trees.len() })
	return count
}

// eachLabelled visits the trees of the volumes that may meet a requirement of a selector. Those in exact ones do.
func (b *bucket) eachLabelled(required requirement, visit func(trees volumeTrees, exact bool)) {
	required.eachLabel(func(l label) { visit(b.labelled[l], true) })
	visit(b.manyLabels, false)
}

// narrowest returns the requirement of the selector that the fewest volumes meet, and how many those are.
func (b *bucket) narrowest(selector *metav1.LabelSelector) (best requirement, fewest int) {
	best, fewest = narrowest(selector, func(l label) int { return b.labelled[l].len() })
	return best, fewest + b.manyLabels.len()
}

// eachSelectable visits the trees that have every volume that the selector matches.
func (b *bucket) eachSelectable(selector *metav1.LabelSelector, visit func(volumeTrees)) {
	if required, _ := b.narrowest(selector); required.key != "" {
		b.eachLabelled(required, func(trees volumeTrees, _ bool) { visit(trees) })
		return
	}
	visit(b.anywhere)
	visit(b.affine)
}

// requirement is a part of a selector that labels can be looked up by: a key with one value, or with one of several. The
// zero value is no requirement.
type requirement struct {
	key    string
	value  string
	values []string // in place of value, if not nil
}

// eachLabel visits the labels that meet the requirement, each once. For no requirement it visits the zero label.
func (r requirement) eachLabel(visit func(label)) {
	if r.values == nil {
		visit(label{r.key, r.value})
		return
	}
	for i, value := range r.values {
		if !slices.Contains(r.values[:i], value) {
			visit(label{r.key, value})
		}
	}
}

// A selector may have any number of requirements, with any number of values. These bound how many are looked at (X9).
const (
	maxRequirements = 64
	maxValues       = 64
)

// narrowest returns the requirement of the selector whose labels have the lowest count, and that count.
func narrowest(selector *metav1.LabelSelector, count func(label) int) (best requirement, fewest int) {
	fewest = math.MaxInt / 2
	considered := 0
	consider := func(r requirement) {
		considered++
		sum := 0
		r.eachLabel(func(l label) { sum += count(l) })
		if sum < fewest {
			best, fewest = r, sum
		}
	}
	for key, value := range selector.MatchLabels {
		if considered >= maxRequirements {
			break
		}
		consider(requirement{key: key, value: value})
	}
	for i := range min(len(selector.MatchExpressions), maxRequirements) {
		if part := &selector.MatchExpressions[i]; part.Operator == metav1.LabelSelectorOpIn && len(part.Values) <= maxValues {
			consider(requirement{key: part.Key, values: part.Values})
		}
	}
	return best, fewest
}

// volumeEntry is a volume in a tree.
type volumeEntry struct{ *corev1.PersistentVolume }

func (e volumeEntry) capacity() resource.Quantity { return e.Spec.Capacity[corev1.ResourceStorage] }

func (e volumeEntry) compareTie(k key) int {
	if !exact(k.size) {
		if order := quantities.Compare(e.capacity(), k.quantity); order != 0 {
			return order
		}
	}
	return cmp.Compare(e.Name, k.name)
}

// recordOf returns the record of a well-formed volume.
func recordOf(volume *corev1.PersistentVolume) record[volumeEntry] {
	r := record[volumeEntry]{entry: volumeEntry{volume}}
	r.key = lowest(r.entry.capacity())
	r.key.name = volume.Name
	r.modes, _ = accessmode.Of(volume.Spec.AccessModes...)
	return r
}

// topology is by which node labels a volume with a node affinity can be found.
type topology struct {
	// labels are of one key, and a node must have one of them for the volume to be usable on it. Without labels, the volume
	// must be checked on every node.
	labels []label
	// exact says that one of the labels is enough. Else the volume must be checked on a node that has one.
	exact bool
}

// maxTopologyLabels is how many values a node affinity may list for the volume to be found by each.
const maxTopologyLabels = 16

// topologyOf chooses a key that every term requires by In, and returns its labels. Of several keys it takes the one that the
// fewest nodes have. The labels are exact if no term requires anything else, as with nearly every local or zonal volume; a term
// with a region beside the zone is not.
func topologyOf(required *corev1.NodeSelector) topology {
	if len(required.NodeSelectorTerms) == 0 {
		return topology{}
	}
	var best []label
	for _, requested := range required.NodeSelectorTerms[0].MatchExpressions {
		found := labelsOf(required, requested.Key)
		if len(found) > 0 && (best == nil || compareTopology(found, best) < 0) {
			best = found
		}
	}
	return topology{labels: best, exact: len(best) > 0 && !slices.ContainsFunc(required.NodeSelectorTerms, requiresMore)}
}

// labelsOf returns the values of the key that the terms require, if each requires some and they are not too many.
func labelsOf(required *corev1.NodeSelector, key string) (all []label) {
	for _, term := range required.NodeSelectorTerms {
		at := slices.IndexFunc(term.MatchExpressions, func(requested corev1.NodeSelectorRequirement) bool {
			return requested.Key == key && requested.Operator == corev1.NodeSelectorOpIn
		})
		if at < 0 {
			return nil
		}
		for _, value := range term.MatchExpressions[at].Values {
			if l := (label{key, value}); !slices.Contains(all, l) {
				all = append(all, l)
			}
			if len(all) > maxTopologyLabels {
				return nil
			}
		}
	}
	return all
}

// compareTopology puts labels first that fewer nodes have: a host; then a label that is not known here, which may be a
// driver's own name of a node; then a zone, a region, and what nodes are made of.
func compareTopology(a, b []label) int {
	return cmp.Or(cmp.Compare(widths[a[0].key], widths[b[0].key]), cmp.Compare(len(a), len(b)), cmp.Compare(a[0].key, b[0].key))
}

var widths = map[string]int{
	corev1.LabelHostname:                -1,
	corev1.LabelTopologyZone:            1,
	corev1.LabelFailureDomainBetaZone:   1,
	corev1.LabelTopologyRegion:          2,
	corev1.LabelFailureDomainBetaRegion: 2,
	corev1.LabelOSStable:                3,
	corev1.LabelArchStable:              3,
	corev1.LabelInstanceTypeStable:      3,
}

// requiresMore reports whether a term that requires one of some values of a label may accept less than that: it requires
// something else too, or it is malformed and accepts nothing.
func requiresMore(term corev1.NodeSelectorTerm) bool {
	if len(term.MatchExpressions) != 1 || len(term.MatchFields) != 0 {
		return true
	}
	requested := &term.MatchExpressions[0]
	_, err := labels.NewRequirement(requested.Key, selection.In, requested.Values)
	return err != nil
}
