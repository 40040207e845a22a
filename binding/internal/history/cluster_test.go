package history

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/pvbind/pvbind/binding/bindingtest"
	"github.com/pvbind/pvbind/binding/decision"
	"github.com/pvbind/pvbind/binding/hooks"
	. "github.com/pvbind/pvbind/binding/internal/testkit"
	"github.com/pvbind/pvbind/binding/obj"
)

// TestX2StorageOfACluster has 50 claims of several classes and policies, faults at random at every call, crashes,
// people who delete claims and create them again, and nodes that Bound volumes are attached to, and detached from at any
// later time. PVBIND_SEED replays one.
func TestX2StorageOfACluster(t *testing.T) {
	t.Parallel()
	for seed := range Seeds(t, Counts{Short: 1, Usual: 16, Full: 40, Long: 4000}) {
		t.Run(fmt.Sprintf("PVBIND_SEED=%d", seed), func(t *testing.T) { playCluster(t, seed) })
	}
}

func playCluster(t *testing.T, seed uint64) {
	c := newCluster(t, seed)
	for range 4 {
		c.trouble = true
		c.settle()
		c.trouble = false
		c.settle()
		require.Empty(t, c.storage.Problems())
		c.changeMinds()
	}
	for i := range clusterSize {
		c.remove(i)
	}
	c.settle()
	require.Empty(t, c.storage.Problems())
	c.judgeEnd()
	c.passAgain()
}

const clusterSize = 50

type cluster struct {
	*rand.Rand
	t       *testing.T
	cluster *Driven
	storage *bindingtest.Storage
	trouble bool // faults happen
}

func newCluster(t *testing.T, seed uint64) *cluster {
	c := &cluster{Rand: rand.New(rand.NewPCG(seed, 4)), t: t, storage: bindingtest.NewStorage()}
	options := bindingtest.DriverOptions{BindingOptions: decision.Options{Protection: decision.ProtectionOn}, Hooks: c.storage.Hooks(Ours, "hostPath")}
	retain := ClassOf("retain", Ours)
	retain.ReclaimPolicy = new(corev1.PersistentVolumeReclaimRetain)
	c.cluster = NewDrivenWith(options, ClassOf("delete", Ours), ClassOf("delayed", Ours, WaitsForFirstConsumer), retain)
	for i := range clusterSize / 5 {
		policy := []corev1.PersistentVolumeReclaimPolicy{corev1.PersistentVolumeReclaimRecycle, corev1.PersistentVolumeReclaimDelete}[i%2]
		volume := bindingtest.Volume(fmt.Sprintf("v-%d", i), "1Gi", WithPolicy(policy))
		c.storage.Add(volume)
		c.create(volume)
	}
	for i := range clusterSize {
		c.createClaim(i)
	}
	c.cluster.Client.Use(c.onServer)
	c.storage.Use(c.onHook)
	return c
}

func (c *cluster) create(object obj.Object) {
	_, err := c.cluster.Create(context.Background(), object)
	require.NoError(c.t, err)
}

func (c *cluster) createClaim(i int) {
	class := []string{"delete", "delete", "delayed", "retain", ""}[i%5]
	c.create(bindingtest.Claim("default", fmt.Sprintf("c-%d", i), "1Gi", RequestingClass(&class)))
}

func (c *cluster) remove(i int) {
	_ = c.cluster.Delete(context.Background(), obj.ClaimKey("default", fmt.Sprintf("c-%d", i)), metav1.DeleteOptions{})
}

// changeMinds deletes some claims and creates those again that are gone.
func (c *cluster) changeMinds() {
	for i := range clusterSize {
		switch {
		case c.cluster.Claim("default", fmt.Sprintf("c-%d", i)) == nil:
			c.createClaim(i)
		case c.IntN(3) == 0:
			c.remove(i)
		}
	}
}

// attach attaches the volume of a claim that is Bound to a node.
func (c *cluster) attach(i int) {
	claim := c.cluster.Claim("default", fmt.Sprintf("c-%d", i))
	if claim == nil || claim.Status.Phase != corev1.ClaimBound || c.cluster.Volume(claim.Spec.VolumeName).Status.Phase != corev1.VolumeBound {
		return
	}
	_, err := c.cluster.Create(context.Background(), bindingtest.Attachment(claim.Spec.VolumeName, fmt.Sprintf("node-%d", c.IntN(2))))
	require.True(c.t, err == nil || apierrors.IsAlreadyExists(err), err)
}

// detach ends one in n attachments.
func (c *cluster) detach(n int) {
	attachments, err := c.cluster.Server.ListAttachments(context.Background())
	require.NoError(c.t, err)
	for _, attachment := range attachments {
		if c.IntN(n) == 0 {
			require.NoError(c.t, c.cluster.Server.Delete(context.Background(), bindingtest.AttachmentKey(attachment.Name), metav1.DeleteOptions{}))
		}
	}
}

// fault returns what happens to a call. People interfere now and then, and the controller is told of it in the middle.
func (c *cluster) fault() outcome {
	if !c.trouble {
		return survives
	}
	if c.IntN(40) == 0 {
		c.remove(c.IntN(clusterSize))
		for _, kind := range bindingtest.Kinds() {
			c.cluster.Deliver(kind, c.IntN(10))
		}
	}
	switch c.IntN(20) {
	case 0:
		c.attach(c.IntN(clusterSize))
	case 1:
		c.detach(3)
	}
	switch n := c.IntN(60); n {
	case 0, 1, 2:
		return callFails
	case 3, 4, 5:
		return answerLost
	case 6:
		return loses409
	case 7, 8:
		return hookUnready
	case 9:
		return hookPanics
	case 10:
		if c.IntN(4) == 0 {
			return crashBefore
		}
	case 11:
		if c.IntN(4) == 0 {
			return crashAfter
		}
	}
	return survives
}

func (c *cluster) onServer(call *bindingtest.Call, do func() error) error {
	if call.Verb == bindingtest.VerbRecord {
		return do()
	}
	suffers := c.fault()
	if suffers == loses409 && call.Writes() {
		return apierrors.NewConflict(schema.GroupResource{Resource: "things"}, call.Key.Name, ErrConnection)
	}
	return c.suffer(suffers, do)
}

func (c *cluster) onHook(_ context.Context, _ *bindingtest.StorageCall, do func() error) error {
	if c.cluster.Client.Crashed() {
		return bindingtest.ErrCrashed
	}
	switch suffers := c.fault(); suffers {
	case hookUnready:
		return &hooks.Error{Meaning: hooks.InProgress, After: time.Minute}
	case hookPanics:
		panic("by a test")
	default:
		return c.suffer(suffers, do)
	}
}

func (c *cluster) suffer(suffers outcome, do func() error) error {
	return suffer(suffers, c.cluster.Client, do)
}

// settle goes on until nothing is left to do or, while there is trouble, for some time.
func (c *cluster) settle() {
	if !c.trouble {
		c.detach(1)
	}
	for range 60 {
		err := c.cluster.AdvanceClock(c.t.Context())
		var unsettled *bindingtest.UnsettledError
		require.False(c.t, errors.As(err, &unsettled), "X8: %v", err)
		crashed := errors.Is(err, bindingtest.ErrCrashed)
		if crashed {
			c.cluster.Restart()
		}
		placed := c.schedule()
		if c.trouble && c.IntN(12) == 0 {
			return
		}
		if !crashed && !placed && len(c.cluster.Delayed()) == 0 {
			require.NoError(c.t, err)
			return
		}
	}
	require.True(c.t, c.trouble, "X8: it does not settle: %v", c.cluster.Delayed())
}

func (c *cluster) schedule() (placed bool) {
	for i := range clusterSize {
		claim := c.cluster.Claim("default", fmt.Sprintf("c-%d", i))
		if claim != nil && *claim.Spec.StorageClassName == "delayed" && choose(c.cluster, claim, fmt.Sprintf("node-%d", c.IntN(9))) {
			placed = true
		}
	}
	return placed
}

// judgeEnd judges what is left when all claims are gone: what was provisioned under Delete is too, what was retained is not, and
// what was recycled is free.
func (c *cluster) judgeEnd() {
	list, err := c.cluster.List(c.t.Context(), obj.KindVolume, "")
	require.NoError(c.t, err)
	var volumes []string
	for _, object := range list {
		volume := object.(*corev1.PersistentVolume)
		volumes = append(volumes, volume.Name)
		want := corev1.VolumeAvailable
		if volume.Spec.PersistentVolumeReclaimPolicy == corev1.PersistentVolumeReclaimRetain {
			want = corev1.VolumeReleased
		}
		assert.Equal(c.t, want, volume.Status.Phase, volume.Name)
	}
	var kept []string
	for _, k := range c.storage.Kept() {
		kept = append(kept, k.Volume)
	}
	assert.ElementsMatch(c.t, volumes, kept)
	claims, err := c.cluster.List(c.t.Context(), obj.KindClaim, "")
	require.NoError(c.t, err)
	assert.Empty(c.t, claims)
}

func (c *cluster) passAgain() {
	calls, hookCalls := len(c.cluster.Calls()), len(c.storage.Calls())
	c.cluster.Resync()
	c.settle()
	for _, call := range c.cluster.CallsSince(calls) {
		assert.False(c.t, call.Writes() || call.Verb == bindingtest.VerbRecord, "X8: %s", call)
	}
	assert.Equal(c.t, hookCalls, len(c.storage.Calls()), "X8: hooks are not run again")
}
