package scheduling

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/pvbind/pvbind/binding/internal/quantities"
	"github.com/pvbind/pvbind/storageclass"
)

// pools are what a class can provision a claim's volume from. Those whose topology requires a label with one of some
// values, as nearly all do, are looked up by the node's labels: a driver with local storage has as many as there are
// nodes (S5).
type pools struct {
	byLabel map[nodeLabel][]pool
	others  []pool
}

// pool is a capacity that suffices for the claim on some nodes.
type pool struct {
	*storagev1.CSIStorageCapacity
	nodes labels.Selector
}

// poolsOf returns the pools that are large enough for the claim; nil if they do not count: the claim requests no size, or
// the provisioner is no CSI driver that publishes its capacity.
func poolsOf(claim *corev1.PersistentVolumeClaim, class *storagev1.StorageClass, view View) *pools {
	request, requested := claim.Spec.Resources.Requests[corev1.ResourceStorage]
	if !requested || !storageclass.Provisions(class) {
		return nil
	}
	driver := view.CSIDriver(class.Provisioner)
	if driver == nil || driver.Spec.StorageCapacity == nil || !*driver.Spec.StorageCapacity {
		return nil
	}
	p := &pools{byLabel: map[nodeLabel][]pool{}}
	for _, capacity := range view.CSIStorageCapacities(class.Name) {
		limit := cmp.Or(capacity.MaximumVolumeSize, capacity.Capacity)
		if capacity.NodeTopology != nil && limit != nil && quantities.Compare(*limit, request) >= 0 {
			p.add(capacity)
		}
	}
	return p
}

// freeIn returns how much is left; the largest size of one volume counts if the total is not published.
func freeIn(capacity *storagev1.CSIStorageCapacity) resource.Quantity {
	if free := cmp.Or(capacity.Capacity, capacity.MaximumVolumeSize); free != nil {
		return *free
	}
	return resource.Quantity{}
}

// add adds a capacity. One with a malformed topology is for no node.
func (p *pools) add(capacity *storagev1.CSIStorageCapacity) {
	nodes, err := metav1.LabelSelectorAsSelector(capacity.NodeTopology)
	if err != nil {
		return
	}
	found := pool{capacity, nodes}
	key, values := requiredLabel(capacity.NodeTopology)
	if key == "" {
		p.others = append(p.others, found)
		return
	}
	for i, value := range values {
		if !slices.Contains(values[:i], value) {
			p.byLabel[nodeLabel{key, value}] = append(p.byLabel[nodeLabel{key, value}], found)
		}
	}
}

// nodeLabel is a label of a node.
type nodeLabel struct{ key, value string }

// requiredLabel returns a label that a node must have, and the values of which it must have one; "" if there is no such.
func requiredLabel(topology *metav1.LabelSelector) (key string, values []string) {
	for key, value := range topology.MatchLabels {
		return key, []string{value}
	}
	for _, required := range topology.MatchExpressions {
		if required.Operator == metav1.LabelSelectorOpIn {
			return required.Key, required.Values
		}
	}
	return "", nil
}

// largestOn returns the pool with the most free storage that the node can use; nil if there is none.
func (p *pools) largestOn(node *corev1.Node) *storagev1.CSIStorageCapacity {
	best := largestOf(p.others, node, nil)
	if len(p.byLabel) == 0 {
		return best
	}
	for key, value := range node.Labels {
		best = largestOf(p.byLabel[nodeLabel{key, value}], node, best)
	}
	return best
}

func largestOf(some []pool, node *corev1.Node, best *storagev1.CSIStorageCapacity) *storagev1.CSIStorageCapacity {
	for i := range some {
		if some[i].nodes.Matches(labels.Set(node.Labels)) && (best == nil || roomier(some[i].CSIStorageCapacity, best)) {
			best = some[i].CSIStorageCapacity
		}
	}
	return best
}

// roomier reports whether a has more free storage than b; ties are broken by name.
func roomier(a, b *storagev1.CSIStorageCapacity) bool {
	inA, inB := freeIn(a), freeIn(b)
	return cmp.Or(-quantities.Compare(inA, inB), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name)) < 0
}
