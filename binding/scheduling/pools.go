package scheduling

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/pvbind/pvbind/binding/internal/quantities"
	"github.com/pvbind/pvbind/binding/internal/requirements"
	"github.com/pvbind/pvbind/storageclass"
)

// source is where a class provisions from, for the claims of a pod (S5).
type source struct {
	class *storagev1.StorageClass
	least resource.Quantity // that a claim requests
	pools pools             // those that have room for that; nil if free storage is not counted

	// On the node at hand:
	blocked Cause                           // why nothing is provisioned; empty if something may be
	usable  []*storagev1.CSIStorageCapacity // with the most free storage first
}

// addSources gives each unbound claim the source of its class.
func (p *planner) addSources(request Request) {
	ofClass := map[string]*source{}
	for _, claim := range p.unbound {
		s := ofClass[claim.criteria.Class]
		if s == nil {
			s = &source{class: claim.class, least: claim.criteria.Request}
			ofClass[claim.criteria.Class] = s
			p.sources = append(p.sources, s)
		}
		if quantities.Compare(claim.criteria.Request, s.least) < 0 {
			s.least = claim.criteria.Request
		}
		claim.source = s
	}
	for _, s := range p.sources {
		s.pools = poolsOf(s.class, s.least, request)
	}
}

// lookOn finds what the node can use.
func (s *source) lookOn(node *corev1.Node) {
	s.blocked, s.usable = "", s.usable[:0]
	switch {
	case !storageclass.Provisions(s.class):
		s.blocked = CauseNoVolume
	case !storageclass.AllowsNode(s.class, node.Labels):
		s.blocked = CauseTopology
	case s.pools != nil:
		s.usable = s.pools.on(node, s.usable)
		slices.SortFunc(s.usable, compareRoom)
	}
}

// provision returns where a volume for the claim can be provisioned for the node, or why none can (S5).
func (c *unboundClaim) provision() (*storagev1.CSIStorageCapacity, Cause) {
	size, requested := c.criteria.Claim.Spec.Resources.Requests[corev1.ResourceStorage]
	if c.source.blocked != "" || c.source.pools == nil || !requested {
		return nil, c.source.blocked
	}
	for _, pool := range c.source.usable {
		if HasRoom(pool, size) {
			return pool, ""
		}
	}
	return nil, CauseStorage
}

// pools are what a class can provision volumes from, by a label that a node must have; those that require none in
// particular are under the zero label. Nearly all require one: a driver with local storage has as many as there are
// nodes (S5).
type pools map[nodeLabel][]pool

// nodeLabel is a label of a node.
type nodeLabel struct{ key, value string }

// pool is a capacity that suffices for the claim on some nodes.
type pool struct {
	*storagev1.CSIStorageCapacity
	nodes *requirements.Set
}

// poolsOf returns the pools that are large enough for a claim of that size; nil if they do not count: the provisioner is no CSI
// driver that publishes its capacity.
func poolsOf(class *storagev1.StorageClass, size resource.Quantity, request Request) pools {
	if !storageclass.Provisions(class) {
		return nil
	}
	driver := request.View.CSIDriver(class.Provisioner)
	if driver == nil || driver.Spec.StorageCapacity == nil || !*driver.Spec.StorageCapacity {
		return nil
	}
	found := pools{}
	for _, capacity := range request.View.CSIStorageCapacities(class.Name) {
		if HasRoom(capacity, size) {
			found.add(capacity, request.Assumptions)
		}
	}
	return found
}

// HasRoom reports whether a volume of the size can be provisioned from the capacity, on some node (S5).
func HasRoom(capacity *storagev1.CSIStorageCapacity, size resource.Quantity) bool {
	limit := cmp.Or(capacity.MaximumVolumeSize, capacity.Capacity)
	return capacity.NodeTopology != nil && limit != nil && quantities.Compare(*limit, size) >= 0
}

// add adds a capacity. One with a malformed topology is for no node.
func (p pools) add(capacity *storagev1.CSIStorageCapacity, assumptions *Assumptions) {
	nodes := assumptions.topologyOf(capacity)
	if nodes == nil {
		return
	}
	key, values := nodes.In(maxTopologyValues)
	if key == "" {
		p[nodeLabel{}] = append(p[nodeLabel{}], pool{capacity, nodes})
	}
	for _, value := range values {
		label := nodeLabel{key, value}
		p[label] = append(p[label], pool{capacity, nodes})
	}
}

// maxTopologyValues is how many values of a label a capacity's topology may have to be found by each.
const maxTopologyValues = 64

// on adds the pools that the node can use to a list.
func (p pools) on(node *corev1.Node, usable []*storagev1.CSIStorageCapacity) []*storagev1.CSIStorageCapacity {
	among := func(some []pool) {
		for _, pool := range some {
			if pool.nodes.Matches(node.Labels) {
				usable = append(usable, pool.CSIStorageCapacity)
			}
		}
	}
	among(p[nodeLabel{}])
	if len(node.Labels) > len(p) {
		for label, some := range p {
			if value, has := node.Labels[label.key]; has && value == label.value {
				among(some)
			}
		}
		return usable
	}
	for key, value := range node.Labels {
		among(p[nodeLabel{key, value}])
	}
	return usable
}

// compareRoom puts the one first that has more free storage; ties are broken by name.
func compareRoom(a, b *storagev1.CSIStorageCapacity) int {
	order := quantities.Compare(freeIn(b), freeIn(a))
	return cmp.Or(order, cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
}

// freeIn returns how much is left; the largest size of one volume counts if the total is not published.
func freeIn(capacity *storagev1.CSIStorageCapacity) resource.Quantity {
	return *cmp.Or(capacity.Capacity, capacity.MaximumVolumeSize, &resource.Quantity{})
}
