package scheduling_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pvbind/pvbind/binding/decision"
	"github.com/pvbind/pvbind/binding/index"
	. "github.com/pvbind/pvbind/binding/internal/testkit"
	"github.com/pvbind/pvbind/binding/obj"
	"github.com/pvbind/pvbind/binding/scheduling"
)

// manyClaims is a pod with so many claims that request the same of a class, each changed.
func manyClaims(count int, class *storagev1.StorageClass, edit func(int, *corev1.PersistentVolumeClaim)) planning {
	objects := []obj.Object{class}
	var names []string
	for i := range count {
		names = append(names, fmt.Sprintf("c%05d", i))
		objects = append(objects, claimNamed(names[i], func(c *corev1.PersistentVolumeClaim) { edit(i, c) }))
	}
	return planning{podWith(names...), objects}
}

// X9: a plan is made of large claims of one tenant. Each step copies one of them, not all.
func TestX9AStepCopiesOneObject(t *testing.T) {
	annotations := map[string]string{}
	for i := range 500 {
		annotations[fmt.Sprintf("example.com/%03d", i)] = ""
	}
	allocated := func(claims int) float64 {
		p := manyClaims(claims, csiClass(), func(_ int, c *corev1.PersistentVolumeClaim) { c.Annotations = annotations })
		plan, view := p.on(t, NodeIn("a")), p.view()
		require.Len(t, plan.Provisions, claims)
		return testing.AllocsPerRun(10, func() {
			step, err := scheduling.NextForPlan(plan, view)
			require.NoError(t, err)
			require.NotNil(t, step.Claim)
		})
	}
	assert.Less(t, allocated(100)-allocated(1), 150.0)
}

// X9: a pod of a tenant has thousands of claims, all alike or not. A plan takes about as long as they are many, and nobody who
// changes the Index waits for it.
func TestX9ManyClaims(t *testing.T) {
	const count, soon = 4000, 3 * time.Second // a hundred times what it takes, and a third of what the square would
	for name, c := range map[string]struct {
		volumes int
		edit    func(int, *corev1.PersistentVolumeClaim)
	}{
		"equal":         {count, func(int, *corev1.PersistentVolumeClaim) {}},
		"one too few":   {count - 1, func(int, *corev1.PersistentVolumeClaim) {}},
		"rising":        {count, func(i int, c *corev1.PersistentVolumeClaim) { Requesting(fmt.Sprintf("%dMi", 1+i))(c) }},
		"two modes":     {count, func(i int, c *corev1.PersistentVolumeClaim) { c.Spec.AccessModes = c.Spec.AccessModes[:i%2] }},
		"own selectors": {count, func(i int, c *corev1.PersistentVolumeClaim) { RequestingLabel("i", strconv.Itoa(i*7919%count))(c) }},
	} {
		t.Run(name, func(t *testing.T) {
			p := manyClaims(count, manualClass(), c.edit)
			for i := range c.volumes {
				volume := storedVolume(fmt.Sprintf("v%05d", i), Sized(fmt.Sprintf("%dMi", 11_000+i/3)))
				volume.Labels = map[string]string{"i": strconv.Itoa(i)}
				p.objects = append(p.objects, volume)
			}
			request := p.request()
			request.View = quick{p.view(), request.Index, map[string]*corev1.PersistentVolumeClaim{}}.of(p.objects)
			began := time.Now()
			plan, err := scheduling.PlanPod(request, NodeIn("a"))
			require.NoError(t, err)
			assert.Less(t, time.Since(began), soon)
			assert.Equal(t, c.volumes == count, plan.Fits(), "%v", len(plan.Reasons))
			given := map[string]bool{}
			for _, b := range plan.Bindings {
				given[b.Volume.Name] = true
			}
			assert.Len(t, given, len(plan.Bindings), "S6 no volume is given twice")

			least := 1.0 // of several, for the test may be set aside while it changes the Index, too
			for n := 0; n < 5 && least >= 0.5; n++ {
				least = min(least, longestWait(t, request))
			}
			assert.Less(t, least, 0.5)
		})
		if testing.Short() {
			break // any one
		}
	}
}

// longestWait plans a pod on many nodes while another goroutine changes the Index. It returns how long a change waited at most, as
// a part of what the plans took.
func longestWait(t *testing.T, request scheduling.Request) float64 {
	ended, longest := make(chan bool), make(chan time.Duration)
	go func() {
		var most time.Duration
		for n := 0; ; n++ {
			select {
			case <-ended:
				longest <- most
				return
			default:
			}
			set := time.Now()
			request.Index.Set(storedVolume("other", func(v *corev1.PersistentVolume) {
				v.ResourceVersion, v.Spec.StorageClassName = strconv.Itoa(9+n), "other"
			}))
			most = max(most, time.Since(set))
			time.Sleep(time.Microsecond)
		}
	}()
	began := time.Now()
	_, err := scheduling.PlanPodOnNodes(request, slices.Repeat([]*corev1.Node{NodeIn("a")}, 30))
	took := time.Since(began)
	close(ended)
	require.NoError(t, err)
	return float64(<-longest) / float64(took)
}

// quick is a view that looks claims up at once.
type quick struct {
	scheduling.Snapshot
	*index.Index
	claims map[string]*corev1.PersistentVolumeClaim
}

func (q quick) of(objects []obj.Object) quick {
	for _, object := range objects {
		if claim, ok := object.(*corev1.PersistentVolumeClaim); ok {
			q.claims[claim.Name] = claim
		}
	}
	return q
}

func (q quick) Claim(_, name string) (*corev1.PersistentVolumeClaim, decision.Source) {
	return q.claims[name], decision.FromCache
}

// S6: claims that differ only in what they request are assigned in one pass, others by a matching. Both come to the same.
func TestS6ClaimsOfAKind(t *testing.T) {
	r := rand.New(rand.NewPCG(SeedOf(t), 17))
	for n := range Worlds(3_000) {
		class, volumes := csiClass(), []obj.Object{capacityDriver(true), capacityIn("a", "4Gi")}
		if r.IntN(2) == 0 {
			class = manualClass()
		}
		for i := range r.IntN(9) {
			volumes = append(volumes, storedVolume(fmt.Sprintf("v%d", i), Sized(fmt.Sprintf("%dGi", 1+r.IntN(7)))))
		}
		claims := 2 + r.IntN(7)
		sizes := make([]string, claims)
		for i := range sizes {
			sizes[i] = fmt.Sprintf("%dGi", 1+r.IntN(7))
		}
		plan := func(edit func(int, *corev1.PersistentVolumeClaim)) scheduling.Plan {
			p := manyClaims(claims, class, func(i int, c *corev1.PersistentVolumeClaim) { Requesting(sizes[i])(c); edit(i, c) })
			p.objects = append(p.objects, volumes...)
			return p.on(t, NodeIn("a"))
		}
		one := plan(func(int, *corev1.PersistentVolumeClaim) {})
		several := plan(func(i int, c *corev1.PersistentVolumeClaim) {
			if i == 0 { // which selects all
				c.Spec.Selector = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "none", Operator: metav1.LabelSelectorOpDoesNotExist}}}
			}
		})
		require.Equal(t, planText(one), planText(several), "world %d", n)
		require.Equal(t, one.NodeReasons(), several.NodeReasons(), "world %d", n)
	}
}
