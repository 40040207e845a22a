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

func stockOf(name, capacity string) stock {
	volume := &corev1.PersistentVolume{}
	volume.Name = name
	volume.Spec.Capacity = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse(capacity)}
	return stock{volume}
}

func rankOf(s stock) rank {
	return rank{size: sizeOf(s.amount()), quantity: s.amount(), name: s.Name}
}

func compareStock(a, b stock) int {
	return cmp.Or(quantities.Compare(a.amount(), b.amount()), cmp.Compare(a.Name, b.Name))
}

// requireOrder compares an order with the sorted list of its items: forwards, backwards, and by what
// every node says of itself.
func requireOrder(t *testing.T, want []stock, order *btree[stock]) {
	t.Helper()
	require.Equal(t, len(want), order.len())
	start := rank{size: negative}
	at := order.seek(&start)
	for _, item := range want {
		require.Equal(t, item, at.item())
		at = at.forward()
	}
	require.False(t, at.ok())
	at = order.last(&rank{size: beyond, quantity: resource.MustParse("99E"), name: "~"})
	for _, item := range slices.Backward(want) {
		require.Equal(t, item, at.item())
		at = at.back()
	}
	require.False(t, at.ok())
	if order.root != nil {
		requireNode(t, order.root)
	}
}

func requireNode(t *testing.T, n *node[stock]) (depth int) {
	t.Helper()
	require.LessOrEqual(t, len(n.sizes), maxNode)
	require.NotEmpty(t, n.sizes)
	if n.isLeaf() {
		require.Len(t, n.sizes, len(n.items))
		require.Equal(t, n.count, len(n.items))
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

// A random order after random changes is what sorting makes of its items, with many equal sizes, with
// fractions and with what 64 bits do not hold.
func TestOrderIsSorted(t *testing.T) {
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
			var order btree[stock]
			in := map[string]stock{}
			change := func(share int) {
				item := stockOf(fmt.Sprint(r.IntN(c.items)), capacities[r.IntN(len(capacities))])
				if known, ok := in[item.Name]; ok {
					require.True(t, order.remove(rankOf(known)))
					require.False(t, order.remove(rankOf(known)))
					delete(in, item.Name)
				}
				if r.IntN(100) < share {
					order.insert(rankOf(item), item)
					in[item.Name] = item
				}
			}
			check := func() {
				sorted := slices.SortedFunc(func(yield func(stock) bool) {
					for _, item := range in {
						if !yield(item) {
							return
						}
					}
				}, compareStock)
				requireOrder(t, sorted, &order)
				requirePlaces(t, r, sorted, &order)
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
func requirePlaces(t *testing.T, r *rand.Rand, sorted []stock, order *btree[stock]) {
	t.Helper()
	for range min(200, len(sorted)) {
		probe := rankOf(sorted[r.IntN(len(sorted))])
		if r.IntN(2) == 0 {
			probe.name = []string{"", "5", "~"}[r.IntN(3)]
		}
		at, _ := slices.BinarySearchFunc(sorted, probe, func(item stock, probe rank) int {
			return cmp.Or(sizeCompare(item, probe), cmp.Compare(item.Name, probe.name))
		})
		require.Equal(t, at, order.below(&probe))
		found := order.seek(&probe)
		require.Equal(t, at < len(sorted), found.ok())
		if at < len(sorted) {
			require.Equal(t, sorted[at], found.item())
			first := order.start(found).item()
			require.Zero(t, quantities.Compare(first.amount(), sorted[at].amount()))
			require.LessOrEqual(t, first.Name, sorted[at].Name)
		}
		before := order.last(&probe)
		require.Equal(t, at > 0, before.ok())
		if at > 0 {
			require.Equal(t, sorted[at-1], before.item())
		}
	}
}

func sizeCompare(item stock, r rank) int {
	amount := item.amount()
	return amount.Cmp(r.quantity)
}

// What is taken out leaves no row of nearly empty nodes.
func TestOrderShrinks(t *testing.T) {
	var order btree[stock]
	var items []stock
	for i := range 20 * maxNode {
		items = append(items, stockOf(fmt.Sprintf("%05d", i), "1Gi"))
		order.insert(rankOf(items[i]), items[i])
	}
	rand.New(rand.NewPCG(1, 1)).Shuffle(len(items), func(i, j int) { items[i], items[j] = items[j], items[i] })
	for _, item := range items[maxNode:] {
		order.remove(rankOf(item))
	}
	assert.Equal(t, maxNode, order.len())
	assert.LessOrEqual(t, len(order.root.children), 6)
}

// What comes in order leaves full nodes behind.
func TestOrderIsCompact(t *testing.T) {
	var order btree[stock]
	for i := range 10 * maxNode {
		item := stockOf(fmt.Sprintf("%05d", i), "1Gi")
		order.insert(rankOf(item), item)
	}
	assert.Len(t, order.root.children, 10)
}

func TestEmptyOrder(t *testing.T) {
	var order btree[stock]
	probe := rankOf(stockOf("a", "1"))
	assert.Zero(t, order.len())
	assert.Zero(t, order.below(&probe))
	assert.False(t, order.seek(&probe).ok())
	assert.False(t, order.last(&probe).ok())
	assert.False(t, order.remove(probe))
	var none *btree[stock]
	assert.Zero(t, none.len())
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

func TestSlots(t *testing.T) {
	for modes := range accessmode.Set(16) {
		slot := slotOf(modes)
		assert.Equal(t, modes, narrowest[slot])
		if slot > 0 {
			assert.LessOrEqual(t, narrowest[slot-1].Len(), modes.Len(), "the narrowest come first")
		}
		for other := range accessmode.Set(16) {
			assert.Equal(t, other.Contains(modes), serving(modes)>>slotOf(other)&1 == 1)
			assert.Equal(t, modes.Contains(other), servedBy(modes)>>slotOf(other)&1 == 1)
		}
	}
	assert.Panics(t, func() { slotOf(16) })
}

// There is a tree for each set of modes in it, and none for others.
func TestRack(t *testing.T) {
	var r modeTrees[stock]
	volume := stockOf("a", "1Gi")
	for _, modes := range []accessmode.Set{15, 0, 3, 8} {
		r.insert(modes, rankOf(volume), volume)
	}
	r.remove(3, rankOf(volume))
	r.remove(3, rankOf(volume))
	r.remove(5, rankOf(volume))
	for modes := range accessmode.Set(16) {
		want := 0
		if modes == 15 || modes == 0 || modes == 8 {
			want = 1
		}
		assert.Equal(t, want, r.in(slotOf(modes)).len(), "modes %s", modes)
	}
	assert.Equal(t, 3, r.len())
	var none *modeTrees[stock]
	assert.Zero(t, none.len())
	assert.Nil(t, none.in(0))
}
