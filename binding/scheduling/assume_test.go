package scheduling_test

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	. "github.com/pvbind/pvbind/binding/internal/testkit"
	"github.com/pvbind/pvbind/binding/match"
	"github.com/pvbind/pvbind/binding/obj"
	"github.com/pvbind/pvbind/binding/scheduling"
)

// assuming is a planning whose pods are planned one after the other.
type assuming struct {
	*testing.T
	request scheduling.Request
}

func (p planning) assuming(t *testing.T) *assuming {
	request := p.request()
	request.Assumptions = &scheduling.Assumptions{}
	return &assuming{t, request}
}

// plan is the plan for a pod with these claims.
func (a *assuming) plan(node *corev1.Node, claims ...string) scheduling.Plan {
	a.Helper()
	request := a.request
	request.Pod = podWith(claims...)
	plan, err := scheduling.PlanPod(request, node)
	require.NoError(a, err)
	return plan
}

func (a *assuming) assume(plan scheduling.Plan) *scheduling.Assumption {
	a.Helper()
	assumption, ok := a.request.Assumptions.Assume(a.request.Index, plan)
	require.True(a, ok)
	return assumption
}

func (a *assuming) refused(plan scheduling.Plan) {
	a.Helper()
	assumption, ok := a.request.Assumptions.Assume(a.request.Index, plan)
	require.False(a, ok)
	require.Nil(a, assumption)
}

func TestAssume(t *testing.T) {
	node, other := NodeIn("a"), NodeIn("b")
	objects := []obj.Object{manualClass(), claimNamed("a"), claimNamed("b"), claimNamed("c"), storedVolume("p1"), storedVolume("p2", Sized("20Gi"))}
	t.Run("S8 what was assumed is invisible to other pods", func(t *testing.T) {
		a := planning{objects: objects}.assuming(t)
		first := a.assume(a.plan(node, "a"))
		assert.Equal(t, "b p2", planText(a.plan(node, "b")))
		found, err := a.request.Index.Find(claimNamed("b"), match.Terms{Node: node})
		require.NoError(t, err)
		assert.Equal(t, "p2", found.Volume.Name, "Find does not see it either")
		first.Revert()
		assert.Equal(t, "b p1", planText(a.plan(node, "b")))
		first.Revert()
		second := a.assume(a.plan(node, "b"))
		first.Revert()
		assert.Equal(t, "a p2", planText(a.plan(node, "a")), "reverting twice takes nothing from others")
		second.Revert()
	})
	t.Run("S8 all or nothing", func(t *testing.T) {
		a := planning{objects: objects}.assuming(t)
		both := a.plan(node, "b", "c")
		a.assume(a.plan(node, "a"))
		a.refused(both)
		assert.Equal(t, "b p2", planText(a.plan(node, "b")), "p2 was not kept")
	})
	t.Run("S8 a newer version", func(t *testing.T) {
		a := planning{objects: objects}.assuming(t)
		plan := a.plan(node, "a")
		a.request.Index.Set(storedVolume("p1", func(v *corev1.PersistentVolume) { v.ResourceVersion = "9" }))
		a.refused(plan)
		a.request.Index.Delete("p1")
		a.refused(plan)
	})
	t.Run("S8 another volume of the name", func(t *testing.T) {
		a := planning{objects: objects}.assuming(t)
		plan := a.plan(node, "a")
		a.request.Index.Set(storedVolume("p1", func(v *corev1.PersistentVolume) { v.UID = "uid-2" }))
		a.refused(plan)
	})
	t.Run("S8 taken by a claimRef", func(t *testing.T) {
		a := planning{objects: objects}.assuming(t)
		plan := a.plan(node, "a")
		a.request.Index.Set(storedVolume("p1", RefersTo("default", "b", "")))
		a.refused(plan)
	})
	t.Run("S8 a plan that does not fit", func(t *testing.T) {
		a := planning{objects: objects[:2]}.assuming(t)
		a.refused(a.plan(node, "a"))
	})
	t.Run("S8 pre-bound by a person needs no reservation", func(t *testing.T) {
		a := planning{objects: []obj.Object{manualClass(), claimNamed("a"), storedVolume("p1", RefersTo("default", "a", ""))}}.assuming(t)
		a.assume(a.plan(node, "a")).Revert()
		assert.Equal(t, "a p1", planText(a.plan(node, "a")))
		assert.Empty(t, a.request.Index.Owners("p1"))
	})
	t.Run("S8 what another reserved is not reverted", func(t *testing.T) {
		a := planning{objects: objects}.assuming(t)
		require.True(t, a.request.Index.Reserve("p1", "8", obj.ClaimKey("default", "a")))
		a.assume(a.plan(node, "a")).Revert()
		assert.Equal(t, []obj.Key{obj.ClaimKey("default", "a")}, a.request.Index.Owners("p1"))
	})
	t.Run("S8 two pods of one claim", func(t *testing.T) {
		a := planning{objects: objects}.assuming(t)
		first := a.assume(a.plan(node, "a"))
		second := a.assume(a.plan(node, "a", "b"))
		first.Revert()
		assert.Equal(t, "c NoVolume", planText(a.plan(node, "c")), "the second pod still has p1")
		second.Revert()
		assert.Equal(t, "c p1", planText(a.plan(node, "c")))
	})
	t.Run("M13 what is assumed for a claim is the only one that serves it", func(t *testing.T) {
		local := []obj.Object{manualClass(), claimNamed("a"), storedVolume("p1", OnlyIn("a")), storedVolume("p2", OnlyIn("b"))}
		a := planning{objects: local}.assuming(t)
		onB := a.plan(other, "a")
		a.assume(a.plan(node, "a"))
		assert.Equal(t, "a p1", planText(a.plan(node, "a")))
		assert.Equal(t, "a PreBoundElsewhere p1", planText(a.plan(other, "a")))
		a.refused(onB)
	})
	t.Run("M13 nor is another made for it", func(t *testing.T) {
		a := planning{objects: []obj.Object{csiClass(), claimNamed("a"), storedVolume("p1", OnlyIn("a"))}}.assuming(t)
		onB := a.plan(other, "a")
		require.Equal(t, "a provision", planText(onB))
		first := a.assume(a.plan(node, "a"))
		a.refused(onB)
		assert.Equal(t, "a PreBoundElsewhere p1", planText(a.plan(other, "a")))
		a.request.Index.Delete("p1")
		assert.Equal(t, "a PreBoundElsewhere p1", planText(a.plan(node, "a")), "though it is gone")
		first.Revert()
		assert.Equal(t, "a provision", planText(a.plan(other, "a")))
	})
	t.Run("S4 an assumed provision is for its node", func(t *testing.T) {
		a := planning{objects: []obj.Object{csiClass(), claimNamed("a"), claimNamed("b")}}.assuming(t)
		onB := a.plan(other, "a")
		first := a.assume(a.plan(node, "a"))
		assert.Equal(t, "a ProvisionedElsewhere", planText(a.plan(other, "a")))
		assert.Equal(t, "a provision, b provision", planText(a.plan(node, "a", "b")))
		a.refused(onB)
		second := a.assume(a.plan(node, "a"))
		first.Revert()
		a.refused(onB)
		second.Revert()
		a.assume(onB).Revert()
	})
	t.Run("S4 of an earlier claim of the name nothing is assumed", func(t *testing.T) {
		a := planning{objects: []obj.Object{csiClass(), claimNamed("a")}}.assuming(t)
		a.assume(a.plan(node, "a"))
		again := planning{objects: []obj.Object{csiClass(), claimNamed("a", func(c *corev1.PersistentVolumeClaim) { c.UID = "uid-2" })}}.assuming(t)
		again.request.Assumptions = a.request.Assumptions
		plan := again.plan(other, "a")
		assert.Equal(t, "a provision", planText(plan))
		again.refused(plan)
	})
}

// Reverting is exact: whatever was assumed and reverted in between, nothing is left of it, and no two claims are
// ever assumed to get one volume. A plan that knows what is assumed can be assumed itself, as long as nothing changes.
func TestRevertIsExact(t *testing.T) {
	r := rand.New(rand.NewPCG(SeedOf(t), 8))
	p := planning{objects: []obj.Object{csiClass(), manualClass()}}
	p.objects[1].SetName("slow")
	for i := range 6 {
		place := []VolumeEdit{Sized(fmt.Sprintf("%dGi", 10+i)), OnlyIn("a")}[:1+i%2]
		p.objects = append(p.objects, storedVolume(fmt.Sprintf("p%d", i), place...),
			claimNamed(fmt.Sprintf("c%d", i), RequestingClass(new([]string{"fast", "fast", "slow"}[i%3]))))
	}
	a := p.assuming(t)
	summary := func() string {
		text := ""
		for i := range 6 {
			text += planText(a.plan(NodeIn("a"), fmt.Sprintf("c%d", i))) + ";" + planText(a.plan(NodeIn("b"), fmt.Sprintf("c%d", i))) + ";"
		}
		return text
	}
	before, assumed := summary(), 0
	for range Worlds(500) {
		held := map[*scheduling.Assumption]scheduling.Plan{}
		for range 12 {
			node := []*corev1.Node{NodeIn("a"), NodeIn("b")}[r.IntN(2)]
			plan := a.plan(node, fmt.Sprintf("c%d", r.IntN(6)), fmt.Sprintf("c%d", r.IntN(6)))
			assumption, ok := a.request.Assumptions.Assume(a.request.Index, plan)
			require.Equal(t, plan.Fits(), ok, planText(plan))
			if ok {
				held[assumption] = plan
				assumed++
			}
			requireOneClaimEach(t, held)
			for assumption := range held {
				if r.IntN(4) == 0 {
					assumption.Revert()
					delete(held, assumption)
				}
			}
		}
		for assumption := range held {
			assumption.Revert()
		}
		require.Equal(t, before, summary())
	}
	assert.Greater(t, assumed, Worlds(500))
}

func requireOneClaimEach(t *testing.T, held map[*scheduling.Assumption]scheduling.Plan) {
	claims := map[string]string{}
	for _, plan := range held {
		for _, b := range plan.Bindings {
			if other, taken := claims[b.Volume.Name]; taken {
				require.Equal(t, other, b.Claim.Name, b.Volume.Name)
			}
			claims[b.Volume.Name] = b.Claim.Name
		}
	}
}

// Many pods at once: every volume is assumed once.
func TestAssumeConcurrently(t *testing.T) {
	p := planning{objects: []obj.Object{manualClass()}}
	const pods, volumes = 32, 16
	for i := range pods {
		p.objects = append(p.objects, claimNamed(fmt.Sprintf("c%d", i)))
	}
	for i := range volumes {
		p.objects = append(p.objects, storedVolume(fmt.Sprintf("p%d", i)))
	}
	a := p.assuming(t)
	var mutex sync.Mutex
	got := map[string]string{}
	var done sync.WaitGroup
	for i := range pods {
		done.Go(func() {
			for {
				plan := a.plan(NodeIn("a"), fmt.Sprintf("c%d", i))
				if !plan.Fits() {
					return
				}
				if _, ok := a.request.Assumptions.Assume(a.request.Index, plan); ok {
					mutex.Lock()
					defer mutex.Unlock()
					assert.Empty(t, got[plan.Bindings[0].Volume.Name])
					got[plan.Bindings[0].Volume.Name] = plan.Bindings[0].Claim.Name
					return
				}
			}
		})
	}
	done.Wait()
	assert.Len(t, got, volumes)
}
