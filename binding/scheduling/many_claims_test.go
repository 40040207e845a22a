package scheduling_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"

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
