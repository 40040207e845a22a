package index

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/pvbind/pvbind/accessmode"
	"github.com/pvbind/pvbind/binding/internal/quantities"
)

func entryOf(name, capacity string) volumeEntry {
	volume := &corev1.PersistentVolume{}
	volume.Name = name
	volume.Spec.Capacity = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse(capacity)}
	return volumeEntry{volume}
}

func keyOf(e volumeEntry) *key {
	k := lowest(e.capacity())
	k.name = e.Name
	return &k
}

func compareEntries(a, b volumeEntry) int {
	return cmp.Or(quantities.Compare(a.capacity(), b.capacity()), cmp.Compare(a.Name, b.Name))
}

// requireEntries compares a tree with the sorted list of its entries: forwards, backwards, and by what
// every node says of itself.
func requireEntries(t *testing.T, want []volumeEntry, tree *btree[volumeEntry]) {
	t.Helper()
	require.Equal(t, len(want), tree.len())
	var got []volumeEntry
	for size, e := range tree.from(&key{size: negative}) {
		require.Equal(t, sizeOf(e.capacity()), size)
		got = append(got, e)
	}
	require.Equal(t, want, got)
	before := &key{size: beyond, quantity: resource.MustParse("99E"), name: "~"}
	for _, e := range slices.Backward(want) {
		last, found := tree.last(before)
		require.True(t, found)
		require.Equal(t, e, last)
		before = keyOf(last)
	}
	_, found := tree.last(before)
	require.False(t, found)
	if len(want) > 0 {
		requireNode(t, &tree.root)
	}
}

func requireNode(t *testing.T, n *node[volumeEntry]) (depth int) {
	t.Helper()
	require.LessOrEqual(t, len(n.sizes), maxNode)
	require.NotEmpty(t, n.sizes)
	if n.isLeaf() {
		require.Len(t, n.sizes, len(n.entries))
		require.Equal(t, n.count, len(n.entries))
		return 0
	}
	require.Len(t, n.sizes, len(n.children))
	count, depths := 0, map[int]bool{}
	for i, child := range n.children {
		require.Equal(t, child.sizes[0], n.sizes[i])
		count += child.count
		depth = requireNode(t, child)
		depths[depth] = true
	}
	require.Equal(t, n.count, count)
	require.Len(t, depths, 1, "all leaves are on one level")
	return depth + 1
}

// A random tree after random changes is what sorting makes of its entries, with many equal sizes, with
// fractions and with what 64 bits do not hold.
func TestBTreeIsSorted(t *testing.T) {
	t.Parallel()
	capacities := []string{"0", "1m", "999m", "1", "1001m", "1Ki", "1Gi", "1024Mi", "4Ei", "8Ei", "9E", "10E", "11E", "123456789012345678901m"}
	for _, c := range []struct {
		name    string
		items   int
		changes int
	}{{"one leaf", 100, 2_000}, {"one level", 2_000, 5_000}, {"two levels", 25_000, 50_000}} {
		t.Run(c.name, func(t *testing.T) {
			if testing.Short() && c.items > 2_000 {
				t.Skip("takes seconds")
			}
			r := rand.New(rand.NewPCG(1, uint64(c.items)))
			var tree btree[volumeEntry]
			in := map[string]volumeEntry{}
			change := func(share int) {
				item := entryOf(fmt.Sprint(r.IntN(c.items)), capacities[r.IntN(len(capacities))])
				if known, ok := in[item.Name]; ok {
					require.True(t, tree.remove(keyOf(known)))
					require.False(t, tree.remove(keyOf(known)))
					delete(in, item.Name)
				}
				if r.IntN(100) < share {
					tree.insert(keyOf(item), item)
					in[item.Name] = item
				}
			}
			check := func() {
				sorted := slices.SortedFunc(func(yield func(volumeEntry) bool) {
					for _, item := range in {
						if !yield(item) {
							return
						}
					}
				}, compareEntries)
				requireEntries(t, sorted, &tree)
				requirePlaces(t, r, sorted, &tree)
			}
			for range c.changes {
				change(95)
			}
			check()
			for range c.changes {
				change(20)
			}
			check()
			for range 5 * c.changes {
				change(0)
			}
			check()
		})
	}
}

// requirePlaces compares random searches with the sorted list.
func requirePlaces(t *testing.T, r *rand.Rand, sorted []volumeEntry, tree *btree[volumeEntry]) {
	t.Helper()
	for range min(200, len(sorted)) {
		probe := keyOf(sorted[r.IntN(len(sorted))])
		if r.IntN(2) == 0 {
			probe.name = []string{"", "5", "~"}[r.IntN(3)]
		}
		at, _ := slices.BinarySearchFunc(sorted, probe, func(e volumeEntry, probe *key) int {
			return cmp.Or(compareCapacity(e, probe), cmp.Compare(e.Name, probe.name))
		})
		require.Equal(t, at, tree.below(probe))
		first, found := firstIn(tree, probe)
		require.Equal(t, at < len(sorted), found)
		if at < len(sorted) {
			require.Equal(t, sorted[at], first)
			like, _ := firstIn(tree, new(lowest(first.capacity())))
			require.Zero(t, quantities.Compare(like.capacity(), sorted[at].capacity()))
			require.LessOrEqual(t, like.Name, sorted[at].Name)
		}
		last, found := tree.last(probe)
		require.Equal(t, at > 0, found)
		if at > 0 {
			require.Equal(t, sorted[at-1], last)
		}
	}
}

// firstIn returns the first entry that does not come before the key, if there is one.
func firstIn(tree *btree[volumeEntry], k *key) (first volumeEntry, found bool) {
	for _, first = range tree.from(k) {
		return first, true
	}
	return first, false
}

func compareCapacity(e volumeEntry, k *key) int {
	capacity := e.capacity()
	return capacity.Cmp(k.quantity)
}

// What is taken out leaves no row of nearly empty nodes.
func TestBTreeShrinks(t *testing.T) {
	var tree btree[volumeEntry]
	var items []volumeEntry
	for i := range 20 * maxNode {
		items = append(items, entryOf(fmt.Sprintf("%05d", i), "1Gi"))
		tree.insert(keyOf(items[i]), items[i])
	}
	rand.New(rand.NewPCG(1, 1)).Shuffle(len(items), func(i, j int) { items[i], items[j] = items[j], items[i] })
	for _, item := range items[maxNode:] {
		tree.remove(keyOf(item))
	}
	assert.Equal(t, maxNode, tree.len())
	assert.LessOrEqual(t, len(tree.root.children), 6)
}

// What comes in order leaves full nodes behind.
func TestBTreeIsCompact(t *testing.T) {
	var tree btree[volumeEntry]
	for i := range 10 * maxNode {
		item := entryOf(fmt.Sprintf("%05d", i), "1Gi")
		tree.insert(keyOf(item), item)
	}
	assert.Len(t, tree.root.children, 10)
}

func TestEmptyBTree(t *testing.T) {
	var tree btree[volumeEntry]
	probe := keyOf(entryOf("a", "1"))
	assert.Zero(t, tree.len())
	assert.Zero(t, tree.below(probe))
	_, found := firstIn(&tree, probe)
	assert.False(t, found)
	_, found = tree.last(probe)
	assert.False(t, found)
	assert.False(t, tree.remove(probe))
}

// Sizes are in the order of the quantities, and where they are exact, equal ones mean equal quantities.
func TestSizes(t *testing.T) {
	var amounts []resource.Quantity
	for _, text := range []string{"-10E", "-1", "-1m", "0", "1n", "1m", "999m", "1", "1000m", "1.5", "2", "1Ki", "1024", "1G", "1Gi", "4E",
		"4Ei", "4611686018427387903", "4611686018427387904", "4611686018427387903500m", "9223372036854775807", "9223372036854775808", "10E", "999999E"} {
		amounts = append(amounts, resource.MustParse(text))
	}
	for n := range 60 {
		amounts = append(amounts, *resource.NewQuantity(1<<n, resource.BinarySI), *resource.NewScaledQuantity(7, resource.Scale(n%19)))
		long := resource.MustParse(fmt.Sprintf("%d000000000000000000001n", n)) // not held in 64 bits
		amounts = append(amounts, long)
	}
	for _, a := range amounts {
		for _, b := range amounts {
			order, sizes := a.Cmp(b), cmp.Compare(sizeOf(a), sizeOf(b))
			assert.Equal(t, order, quantities.Compare(a, b), "%s and %s", &a, &b)
			assert.True(t, sizes == order || sizes == 0, "%s and %s are %d, their sizes %d", &a, &b, order, sizes)
			if sizes == 0 && exact(sizeOf(a)) {
				assert.Zero(t, order, "%s and %s", &a, &b)
			}
		}
	}
	assert.Equal(t, int64(math.MaxInt64), sizeOf(resource.MustParse("10E")))
	assert.Equal(t, int64(2<<30), sizeOf(resource.MustParse("1Gi")))
}

// There is a tree for each set of access modes in it, the smallest set first, and none for others.
func TestModeTrees(t *testing.T) {
	var trees volumeTrees
	r := record[volumeEntry]{entry: entryOf("a", "1Gi"), key: *keyOf(entryOf("a", "1Gi"))}
	for _, r.modes = range []accessmode.Set{15, 0, 12, 3, 8} {
		trees = trees.insert(r)
	}
	for _, r.modes = range []accessmode.Set{3, 3, 5} {
		trees = trees.remove(r)
	}
	var modes []accessmode.Set
	for i := range trees {
		assert.Equal(t, 1, trees[i].len())
		modes = append(modes, trees[i].modes)
	}
	assert.Equal(t, []accessmode.Set{0, 8, 12, 15}, modes)
	assert.Equal(t, 4, trees.len())
	assert.Zero(t, volumeTrees(nil).len())
}
