package binding_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pvbind/pvbind/binding/bindingtest"
	"github.com/pvbind/pvbind/binding/internal/testkit"
	"github.com/pvbind/pvbind/binding/obj"
)

// leavingClaims are n protected claims that are being deleted, which a controller knows; each list of pods takes a second.
func leavingClaims(t *testing.T, n int) (cluster *testkit.Driven, keys []obj.Key, lists *atomic.Int32) {
	cluster = testkit.NewDriven(bindingtest.Pod("default", "p", "node", "another"))
	for i := range n {
		claim := bindingtest.Claim("default", fmt.Sprint("data-", i), "1Gi")
		_, err := cluster.Create(t.Context(), claim)
		require.NoError(t, err)
		keys = append(keys, obj.KeyOf(claim))
	}
	require.NoError(t, cluster.Settle(t.Context()))
	for _, key := range keys {
		require.NoError(t, cluster.Server.Delete(t.Context(), key, metav1.DeleteOptions{}))
		cluster.Controller.Observe(cluster.Claim(key.Namespace, key.Name))
	}
	lists = new(atomic.Int32)
	cluster.Client.Use(func(call *bindingtest.Call, do func() error) error {
		err := do()
		if call.Verb == bindingtest.VerbList {
			lists.Add(1)
			time.Sleep(time.Second)
		}
		return err
	})
	return cluster, keys, lists
}

func TestF2ManyClaimsShareAListOfPods(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cluster, keys, lists := leavingClaims(t, 50)
		for _, key := range keys {
			go func() {
				_, err := cluster.Controller.Sync(t.Context(), key)
				assert.NoError(t, err)
			}()
		}
		time.Sleep(time.Minute)
		assert.EqualValues(t, 2, lists.Load(), "the first one's, and that of all the others")
		for _, key := range keys {
			assert.Nil(t, cluster.Claim(key.Namespace, key.Name))
		}
	})
}

// A list that has begun proves nothing about a pod that came after.
func TestF2AListThatHasBegunIsNotShared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cluster, keys, lists := leavingClaims(t, 2)
		sync := func(key obj.Key) { _, _ = cluster.Controller.Sync(t.Context(), key) }
		go sync(keys[0])
		time.Sleep(time.Second / 2) // the list is made, and on its way
		_, err := cluster.Create(t.Context(), bindingtest.Pod("default", "late", "node", keys[1].Name))
		require.NoError(t, err)
		go sync(keys[1])
		time.Sleep(time.Minute)
		assert.EqualValues(t, 2, lists.Load())
		assert.Nil(t, cluster.Claim("default", keys[0].Name))
		assert.NotNil(t, cluster.Claim("default", keys[1].Name), "a pod uses it")
	})
}

// Whoever waits for the list of another is not harmed by its end.
func TestF2AListThatFailsIsNotShared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cluster, keys, _ := leavingClaims(t, 3)
		ended, end := context.WithCancel(t.Context())
		for i, ctx := range []context.Context{t.Context(), ended, t.Context()} {
			go func() { _, _ = cluster.Controller.Sync(ctx, keys[i]) }()
			time.Sleep(time.Second / 10)
		}
		end()
		time.Sleep(time.Minute)
		assert.Nil(t, cluster.Claim("default", keys[0].Name))
		assert.NotNil(t, cluster.Claim("default", keys[1].Name))
		assert.Nil(t, cluster.Claim("default", keys[2].Name))
	})
}

// A client that panics in a list leaves nobody waiting for it.
func TestF2AListThatPanicsIsNotShared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cluster, keys, _ := leavingClaims(t, 3)
		var lists atomic.Int32
		cluster.Client.Use(func(call *bindingtest.Call, do func() error) error {
			if call.Verb == bindingtest.VerbList && lists.Add(1) == 2 {
				panic("a defect")
			}
			return do()
		})
		for i, key := range keys {
			go func() {
				_, err := cluster.Controller.Sync(t.Context(), key)
				assert.Equal(t, i == 1, err != nil)
			}()
			time.Sleep(time.Second / 10)
		}
		time.Sleep(time.Minute)
		assert.Nil(t, cluster.Claim("default", keys[2].Name))
		assert.EqualValues(t, 3, lists.Load())
	})
}
