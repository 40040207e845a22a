package scheduling_test

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	volumehelpers "k8s.io/component-helpers/storage/volume"

	"github.com/pvbind/pvbind/accessmode"
	. "github.com/pvbind/pvbind/binding/internal/testkit"
	"github.com/pvbind/pvbind/binding/match"
	"github.com/pvbind/pvbind/binding/scheduling"
)

// An assignment gives each claim a volume, or nil if one is to be provisioned.
type assignment []*corev1.PersistentVolume

func (a assignment) volumes() (count int, capacity int64) {
	for _, volume := range a {
		if volume != nil {
			count++
			capacity += CapacityOf(volume)
		}
	}
	return count, capacity
}

// better is S6: more volumes, then less capacity.
func (a assignment) better(than assignment) bool {
	count, capacity := a.volumes()
	thanCount, thanCapacity := than.volumes()
	return count > thanCount || count == thanCount && capacity < thanCapacity
}

// planOptions are what each claim could have on the node, by Find for each volume alone and by a reading of S5 and M13 of its own.
type planOptions struct {
	volumes   [][]*corev1.PersistentVolume
	provision []bool
}

func (w *planWorld) options(t *testing.T, node *corev1.Node) planOptions {
	var o planOptions
	for _, claim := range w.view.Claims {
		var free, aside []*corev1.PersistentVolume
		elsewhere := false
		for _, volume := range w.view.Volumes {
			found, err := match.Find(match.Request{Claim: claim, Volumes: []*corev1.PersistentVolume{volume},
				Terms: match.Terms{Class: w.view.Class(*claim.Spec.StorageClassName), Node: node}})
			require.NoError(t, err)
			mine := volumehelpers.IsVolumeBoundToClaim(volume, claim)
			switch {
			case found.Volume != nil && mine:
				aside = append(aside, volume)
			case found.Volume != nil:
				free = append(free, volume)
			case mine && len(found.Rejected[0].Mismatches) == 1 && found.Rejected[0].Mismatches[0].Reason == match.NodeAffinity:
				elsewhere = true
			}
		}
		if len(aside) > 0 {
			slices.SortFunc(aside, Upstream{Request: match.Request{Claim: claim, Terms: match.Terms{Node: node}}, Helpers: helpers}.CompareSetAside)
			free = aside[:1]
		} else if elsewhere {
			free = nil
		}
		o.volumes = append(o.volumes, free)
		o.provision = append(o.provision, w.provisionable(t, claim, node))
	}
	return o
}

// provisionable is S5.
func (w *planWorld) provisionable(t *testing.T, claim *corev1.PersistentVolumeClaim, node *corev1.Node) bool {
	class := w.view.Class(*claim.Spec.StorageClassName)
	if class.Provisioner != "csi.example.com" || len(class.AllowedTopologies) > 0 && node.Labels["zone"] != "a" {
		return false
	}
	request, asks := claim.Spec.Resources.Requests[corev1.ResourceStorage]
	if !asks || len(w.view.CSIDrivers) == 0 {
		return true
	}
	for _, capacity := range w.view.Capacities {
		limit := capacity.Capacity
		if capacity.MaximumVolumeSize != nil {
			limit = capacity.MaximumVolumeSize
		}
		selector, err := metav1.LabelSelectorAsSelector(capacity.NodeTopology) // nil selects nothing
		require.NoError(t, err)
		if capacity.StorageClassName == class.Name && limit != nil && limit.Cmp(request) >= 0 && selector.Matches(labels.Set(node.Labels)) {
			return true
		}
	}
	return false
}

// best tries every assignment; nil if there is none.
func (o planOptions) best() assignment {
	var best assignment
	var try func(assigned assignment)
	try = func(assigned assignment) {
		i := len(assigned)
		if i == len(o.volumes) {
			if best == nil || assigned.better(best) {
				best = slices.Clone(assigned)
			}
			return
		}
		for _, volume := range o.volumes[i] {
			if !slices.Contains(assigned, volume) {
				try(append(assigned, volume))
			}
		}
		if o.provision[i] {
			try(append(assigned, nil))
		}
	}
	try(make(assignment, 0, len(o.volumes)))
	return best
}

// upstreams is the assignment that kube-scheduler makes of volumes alone, claim by claim in the order of their
// sizes; nil if some claim gets none.
func (w *planWorld) upstreams(t *testing.T, node *corev1.Node) assignment {
	assigned := w.upstreamsMatches(t, node)
	if slices.Contains(assigned, nil) {
		return nil
	}
	return assigned
}

// upstreamsMatches is that assignment, with nil for each claim that gets none.
func (w *planWorld) upstreamsMatches(t *testing.T, node *corev1.Node) assignment {
	assigned := make(assignment, len(w.view.Claims))
	chosen := map[string]*corev1.PersistentVolume{}
	for _, i := range w.bySize() {
		claim := w.view.Claims[i]
		ofClass := Without(w.view.Volumes, func(v *corev1.PersistentVolume) bool { return v.Spec.StorageClassName != *claim.Spec.StorageClassName })
		found, err := volumehelpers.FindMatchingVolume(claim, ofClass, node, chosen, true, true)
		require.NoError(t, err)
		if found != nil {
			assigned[i], chosen[found.Name] = found, found
		}
	}
	return assigned
}

// upstreamsReasons is what kube-scheduler says of the node; nil if the pod can run there.
func (w *planWorld) upstreamsReasons(t *testing.T, node *corev1.Node) []scheduling.NodeReason {
	assigned := w.upstreamsMatches(t, node)
	for _, i := range w.bySize() {
		claim := w.view.Claims[i]
		if assigned[i] != nil || w.provisionable(t, claim, node) {
			continue
		}
		unlimited := claim.DeepCopy() // is it for lack of storage?
		unlimited.Spec.Resources.Requests = nil
		if w.provisionable(t, unlimited, node) {
			return []scheduling.NodeReason{scheduling.NodeNoStorage}
		}
		return []scheduling.NodeReason{scheduling.NodeNoVolume}
	}
	return nil
}

// S9: kube-scheduler's reasons, where no rule makes a difference: volumes are Available, of sizes of their own, and not
// pre-bound to the pod's claims.
func TestPlanPodReasonsAreUpstreams(t *testing.T) {
	t.Parallel()
	source := rand.NewPCG(SeedOf(t), 9)
	seen := map[string]int{}
	for n := range Worlds(60_000) {
		w := newPlanWorld(source)
		for i, volume := range w.view.Volumes {
			size := volume.Spec.Capacity[corev1.ResourceStorage]
			size.Add(resource.MustParse(strconv.Itoa(i)))
			volume.Spec.Capacity, volume.Status.Phase = corev1.ResourceList{corev1.ResourceStorage: size}, corev1.VolumeAvailable
		}
		w.view.Volumes = Without(w.view.Volumes, func(v *corev1.PersistentVolume) bool { return v.Spec.ClaimRef != nil })
		node := w.nodes[n%len(w.nodes)]
		plan, err := scheduling.PlanPod(w.request(), node)
		require.NoError(t, err)
		reasons := w.upstreamsReasons(t, node)
		if plan.Fits() {
			require.Empty(t, plan.NodeReasons(), "world %d", n)
			seen["fits, upstream "+fmt.Sprint(len(reasons))]++
			continue
		}
		require.Equal(t, reasons, plan.NodeReasons(), "world %d", n)
		causes := map[scheduling.NodeReason]bool{}
		for _, reason := range plan.Reasons {
			causes[reason.Cause.NodeReason()] = true
		}
		seen[fmt.Sprintf("of %d reasons %s", len(causes), reasons[0])]++
	}
	t.Log(seen)
	for _, what := range []scheduling.NodeReason{scheduling.NodeNoStorage, scheduling.NodeNoVolume} {
		assert.Positive(t, seen["of 2 reasons "+string(what)])
	}
}

// allowed reports whether the rules allow the assignment too: M4 and M12 for what is pre-bound, M13 for which.
func (o planOptions) allowed(assigned assignment) bool {
	for i, volume := range assigned {
		if !slices.Contains(o.volumes[i], volume) {
			return false
		}
	}
	return assigned != nil
}

// sizes are the capacities that the claims get, in order.
func sizes(assigned assignment) (sizes []int64) {
	for _, volume := range assigned {
		sizes = append(sizes, CapacityOf(volume))
	}
	slices.Sort(sizes)
	return sizes
}

func (w *planWorld) assigned(plan scheduling.Plan) assignment {
	assigned := make(assignment, len(w.view.Claims))
	for i, claim := range w.view.Claims {
		for _, b := range plan.Bindings {
			if b.Claim == claim {
				assigned[i] = b.Volume
			}
		}
	}
	return assigned
}

// S6: a plan is as good as the best there is. Where kube-scheduler's way finds volumes for all claims, so does the
// plan, with no more capacity; and there are pods that only the plan can place.
func TestPlanPodIsOptimal(t *testing.T) {
	t.Parallel()
	source := rand.NewPCG(SeedOf(t), 6)
	seen := map[string]int{}
	for n := range Worlds(100_000) {
		w := newPlanWorld(source)
		node := Pick(w.World, w.nodes[0], w.nodes[0], w.nodes[1], w.nodes[2])
		plan, err := scheduling.PlanPod(w.request(), node)
		require.NoError(t, err)
		o := w.options(t, node)
		w.requireBest(t, plan, o, seen, "world "+strconv.Itoa(n))
		w.requireNoWorse(t, plan, o, w.upstreams(t, node), seen, "world "+strconv.Itoa(n))
	}
	t.Log(seen)
	for _, what := range []string{"none", "full", "partly provisioned", "upstream full", "upstream fails, plan full", "upstream takes more", "upstream's"} {
		assert.Positive(t, seen[what], what)
	}
}

func (w *planWorld) requireBest(t *testing.T, plan scheduling.Plan, o planOptions, seen map[string]int, where string) {
	best := o.best()
	require.Equal(t, best != nil, plan.Fits(), where)
	if best == nil {
		seen["none"]++
		require.Empty(t, plan.Bindings, where)
		require.Empty(t, plan.Provisions, where)
		return
	}
	got := w.assigned(plan)
	for i, volume := range got {
		if volume == nil {
			require.True(t, o.provision[i], where)
			continue
		}
		require.Contains(t, o.volumes[i], volume, where)
		require.NotContains(t, got[:i], volume, where)
	}
	count, capacity := got.volumes()
	wantCount, wantCapacity := best.volumes()
	require.Equal(t, wantCount, count, where)
	require.Equal(t, wantCapacity, capacity, where)
	require.Len(t, plan.Provisions, len(got)-count, where)
	require.Equal(t, w.namesInOrder(w.fairest(got, o)), w.namesInOrder(got), where)
	if count == len(got) {
		seen["full"]++
	} else if count > 0 {
		seen["partly provisioned"]++
	}
}

// bySize are the places of the claims, from the one that requests least on, then by name.
func (w *planWorld) bySize() []int {
	order := make([]int, len(w.view.Claims))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int {
		inA, inB := w.view.Claims[a].Spec.Resources.Requests.Storage(), w.view.Claims[b].Spec.Resources.Requests.Storage()
		return inA.Cmp(*inB)
	})
	return order
}

// namesInOrder are the names of the volumes in the order in which claims choose.
func (w *planWorld) namesInOrder(assigned assignment) []string {
	var names []string
	for _, i := range w.bySize() {
		if assigned[i] != nil {
			names = append(names, assigned[i].Name)
		}
	}
	return names
}

// fairest tries every way to give the same claims the same volumes. It returns the one that gives the claims that request
// least the best volumes.
func (w *planWorld) fairest(assigned assignment, o planOptions) assignment {
	var left []*corev1.PersistentVolume
	var served []int
	for _, i := range w.bySize() {
		if assigned[i] != nil {
			served, left = append(served, i), append(left, assigned[i])
		}
	}
	slices.SortFunc(left, func(a, b *corev1.PersistentVolume) int { // M13
		return cmp.Or(cmp.Compare(CapacityOf(a), CapacityOf(b)), accessmode.Compare(KnownModes(a), KnownModes(b)), cmp.Compare(a.Name, b.Name))
	})
	fairest := slices.Clone(assigned)
	var try func(at int, left []*corev1.PersistentVolume) bool
	try = func(at int, left []*corev1.PersistentVolume) bool {
		if at == len(served) {
			return true
		}
		for i, volume := range left {
			fairest[served[at]] = volume
			if slices.Contains(o.volumes[served[at]], volume) && try(at+1, slices.Delete(slices.Clone(left), i, i+1)) {
				return true
			}
		}
		return false
	}
	try(0, left)
	return fairest
}

func (w *planWorld) requireNoWorse(t *testing.T, plan scheduling.Plan, o planOptions, upstreams assignment, seen map[string]int, where string) {
	got := w.assigned(plan)
	count, capacity := got.volumes()
	full := plan.Fits() && count == len(got)
	switch {
	case o.allowed(upstreams):
		seen["upstream full"]++
		require.True(t, full, where)
		_, theirs := upstreams.volumes()
		require.LessOrEqual(t, capacity, theirs, where)
		if capacity < theirs {
			seen["upstream takes more"]++
			break
		}
		distinct := len(slices.Compact(sizes(got))) == len(got)
		if others := Without(got, func(v *corev1.PersistentVolume) bool { return slices.Contains(upstreams, v) }); distinct && len(others) == 0 {
			require.Equal(t, upstreams, got, where) // among volumes of one size, upstream's order would be another
			seen["upstream's"]++
		}
	case upstreams == nil && full:
		seen["upstream fails, plan full"]++
	}
}

// helpers are upstream's.
var helpers = Helpers{
	FindMatchingVolume:   volumehelpers.FindMatchingVolume,
	IsVolumeBoundToClaim: volumehelpers.IsVolumeBoundToClaim,
	CheckAccessModes:     volumehelpers.CheckAccessModes,
}
