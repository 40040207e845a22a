package extender_test

import (
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/pvbind/pvbind/binding/bindingtest"
	"github.com/pvbind/pvbind/binding/obj"
	"github.com/pvbind/pvbind/storageclass"
)

// onVolume is a write of a volume, which is the first that a bind makes.
var onVolume = bindingtest.On(bindingtest.VerbUpdate, obj.KindVolume)

// later binds without waiting for the answer.
func (c *cluster) later(pod *corev1.Pod, node string) <-chan string {
	answer := make(chan string, 1)
	go func() { answer <- c.bind(pod, node) }()
	return answer
}

func (c *cluster) selected(name string) string {
	return c.Claim("default", name).Annotations[storageclass.SelectedNodeAnnotation]
}

// provide makes the volume of a claim, as a provisioner does.
func (c *cluster) provide(name, node string) {
	stored := c.Claim("default", name)
	volume := disk("made-"+name, "5Gi", node)
	volume.Spec.StorageClassName = made
	volume.Spec.ClaimRef = &corev1.ObjectReference{Kind: "PersistentVolumeClaim", Namespace: "default", Name: name, UID: stored.UID}
	c.create(volume)
}

// deselect does what a provisioner does that has failed.
func (c *cluster) deselect(name string) {
	c.Helper()
	stored := c.Claim("default", name)
	delete(stored.Annotations, storageclass.SelectedNodeAnnotation)
	_, err := c.Server.Update(c.Context(), stored)
	require.NoError(c, err)
}

// S8: the pod is bound last, when its claims are.
func TestBind(t *testing.T) {
	c := newCluster(t, disk("d1", "10Gi", "n1"), claim("data", "5Gi", local), claim("logs", "1Gi", made), pod("web", "data", "logs"))
	c.binder()
	answer := c.later(pod("web", "data", "logs"), "n1")
	c.eventually(func() bool {
		return c.Claim("default", "data").Status.Phase == corev1.ClaimBound && c.selected("logs") == "n1"
	}, "the plan is written")
	assert.Empty(t, c.Pod("default", "web").Spec.NodeName, "the other claim is not bound")
	c.provide("logs", "n1")
	assert.Empty(t, <-answer)
	assert.Equal(t, "n1", c.Pod("default", "web").Spec.NodeName)
	assert.Equal(t, "d1", c.Claim("default", "data").Spec.VolumeName)
	assert.Equal(t, "made-logs", c.Claim("default", "logs").Spec.VolumeName)
}

// S8: what is promised to one pod no other gets, although nothing of it is written yet.
func TestWhatIsAssumedIsNotGivenTwice(t *testing.T) {
	c := newCluster(t, disk("d1", "10Gi", "n1"), disk("d2", "10Gi", "n2"), claim("a", "5Gi", local), claim("b", "5Gi", local), pod("one", "a"), pod("two", "b"))
	c.fits(pod("two", "b"), "n1", "n2")
	reached, resume := make(chan struct{}), make(chan struct{})
	c.Client.Use(bindingtest.Before(1, onVolume, func() {
		close(reached)
		<-resume
	}))
	answer := c.later(pod("one", "a"), "n1")
	<-reached
	assert.Equal(t, []string{"n2"}, *c.filter(pod("two", "b"), "n1", "n2").NodeNames)
	assert.Contains(t, c.bind(pod("two", "b"), "n1"), "pvc/default/b: NoVolume")
	close(resume)
	c.binder()
	assert.Empty(t, <-answer)
}

// S8: a bind that fails takes back what it has assumed.
func TestABindThatFails(t *testing.T) {
	c := newCluster(t, disk("d1", "10Gi", "n1"), claim("a", "5Gi", local), claim("b", "5Gi", local), pod("one", "a"), pod("two", "b"))
	c.Client.Use(bindingtest.Fail(1, onVolume, apierrors.NewForbidden(schema.GroupResource{}, "d1", nil)))
	assert.Contains(t, c.bind(pod("one", "a"), "n1"), "pre-bind d1 to default/a")
	c.fits(pod("two", "b"), "n1")
	c.binder()
	assert.Empty(t, c.bind(pod("one", "a"), "n1"), "the next attempt")
}

// S8, B6: a bind goes on if the answer to a write is lost, and no other pod gets the volume meanwhile.
func TestABindWhoseAnswerIsLost(t *testing.T) {
	c := newCluster(t, disk("d1", "10Gi", "n1"), claim("a", "5Gi", local), claim("b", "5Gi", local), pod("one", "a"), pod("two", "b"))
	c.Client.Use(bindingtest.LoseAnswer(1, onVolume))
	answer := c.later(pod("one", "a"), "n1")
	c.eventually(func() bool { return c.Volume("d1").Spec.ClaimRef != nil }, "it was written")
	assert.Empty(t, *c.filter(pod("two", "b"), "n1").NodeNames, "the volume is the claim's")
	c.binder()
	assert.Empty(t, <-answer)
}

// A volume that has been changed since the plan was made is planned with anew, at most a few times.
func TestBindAfterConflicts(t *testing.T) {
	for n, bound := range map[int]bool{1: true, 4: true, 5: false} {
		c := newCluster(t, disk("d1", "10Gi", "n1"), claim("a", "5Gi", local), pod("one", "a"))
		var writes atomic.Int32
		c.Client.Use(func(call *bindingtest.Call, do func() error) error {
			if onVolume(call) && int(writes.Add(1)) <= n {
				return apierrors.NewConflict(schema.GroupResource{Resource: "persistentvolumes"}, "d1", nil)
			}
			return do()
		})
		answer := c.later(pod("one", "a"), "n1")
		if !bound {
			assert.Contains(t, <-answer, "something has changed since the plan was made: pre-bind d1 to default/a: ")
			continue
		}
		c.eventually(func() bool { return c.Volume("d1").Spec.ClaimRef != nil }, "the volume is reserved")
		c.binder()
		assert.Empty(t, <-answer)
	}
}

// S8: a provision that fails takes the node off the claim, and the scheduler is told at once.
func TestBindAfterAFailedProvision(t *testing.T) {
	c := newCluster(t, claim("logs", "1Gi", made), pod("web", "logs"))
	c.binder()
	c.fits(pod("web", "logs"), "n1", "n2", "n3")
	answer := c.later(pod("web", "logs"), "n1")
	c.eventually(func() bool { return c.selected("logs") == "n1" }, "the node is selected")
	assert.Equal(t, []string{"n1"}, *c.filter(pod("web", "logs"), "n1", "n2").NodeNames, "S4 only there, while it is being provisioned for")
	c.eventually(func() bool {
		return c.Claim("default", "logs").Annotations["volume.kubernetes.io/storage-provisioner"] == disks
	}, "P3")
	c.deselect("logs")
	assert.Contains(t, <-answer, "Deselected")
	c.fits(pod("web", "logs"), "n1", "n2", "n3")
	answer = c.later(pod("web", "logs"), "n2")
	c.eventually(func() bool { return c.selected("logs") == "n2" }, "the other node is selected")
	c.provide("logs", "n2")
	assert.Empty(t, <-answer)
	assert.Equal(t, "n2", c.Pod("default", "web").Spec.NodeName)
}

func TestBindThatTakesTooLong(t *testing.T) {
	c := newCluster(t, claim("logs", "1Gi", made), pod("web", "logs"))
	c.extender.BindTimeout = 20 * time.Millisecond
	assert.Equal(t, "waiting for a volume for pvc/default/logs: context deadline exceeded", c.bind(pod("web", "logs"), "n1"))
	assert.Equal(t, "n1", c.selected("logs"), "what was written stays")
}

// A pod that is deleted while its claims are being bound is not waited for.
func TestBindOfAPodThatGoes(t *testing.T) {
	c := newCluster(t, claim("logs", "1Gi", made), pod("web", "logs"))
	answer := c.later(pod("web", "logs"), "n1")
	c.eventually(func() bool { return c.selected("logs") == "n1" }, "the node is selected")
	require.NoError(t, c.Server.Delete(t.Context(), bindingtest.PodKey("default", "web"), metav1.DeleteOptions{}))
	assert.Equal(t, "the pod does not exist any more", <-answer)
}

// X1: pods that the scheduler sends to one node at once get a volume each, as long as there are any.
func TestManyBindsAtOnce(t *testing.T) {
	const pods, disks = 20, 12
	var objects []obj.Object // there before the extender, whose informers would show the volumes one by one
	for i := range pods {
		name := "p" + strings.Repeat("i", i+1)
		objects = append(objects, claim(name, "1Gi", local), pod(name, name))
		if i < disks {
			objects = append(objects, disk("d"+name, "1Gi", "n1"))
		}
	}
	c := newCluster(t, objects...)
	c.binder()
	var wait sync.WaitGroup
	answers := make([]string, pods)
	for i := range pods {
		name := "p" + strings.Repeat("i", i+1)
		wait.Go(func() { answers[i] = c.bind(pod(name, name), "n1") })
	}
	wait.Wait()
	bound, volumes := 0, map[string]bool{}
	for i, answer := range answers {
		if answer == "" {
			bound++
			volumes[c.Claim("default", "p"+strings.Repeat("i", i+1)).Spec.VolumeName] = true
		}
	}
	assert.Equal(t, disks, bound, answers)
	assert.Len(t, volumes, disks)
}
