package clientgo

import (
	"context"
	"fmt"
	"net/http"
	"testing"

	"github.com/stretchr/testify/assert"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/pvbind/pvbind/binding"
	"github.com/pvbind/pvbind/binding/bindingtest"
	"github.com/pvbind/pvbind/binding/obj"
)

// answers is a client that gives one answer to every read of a claim.
type answers struct {
	binding.Client
	err error
}

func (a answers) GetClaim(context.Context, string, string) (*corev1.PersistentVolumeClaim, error) {
	return nil, a.err
}

func TestW9TheControllerSharesOutTheWorkers(t *testing.T) {
	for _, runner := range []*Runner{{}, {Workers: 3}} {
		workers := newWorkers(runner)
		defer workers.queue.ShutDown()
		assert.Equal(t, workers.count, workers.controller.Workers, "W9")
		assert.Positive(t, workers.count)
	}
}

// What informers show, or have shown the end of, is not read at a resync, and takes no memory.
func TestUnconfirmedUntilAnInformerShowsIt(t *testing.T) {
	workers := newWorkers(&Runner{})
	defer workers.queue.ShutDown()
	claim := func(uid types.UID) *corev1.PersistentVolumeClaim {
		claim := bindingtest.Claim("default", "data", "5Gi")
		claim.UID, claim.ResourceVersion = uid, "1"
		return claim
	}
	workers.unconfirmed.add(claim("a"))
	workers.observe(claim("another"))
	assert.Len(t, workers.unconfirmed.objects, 1, "another of its name was shown")
	workers.observe(claim("a"))
	assert.Empty(t, workers.unconfirmed.objects, "it was shown")

	workers.unconfirmed.add(claim("a"))
	workers.observeDeleted(claim("a"))
	assert.Empty(t, workers.unconfirmed.objects, "its end was shown")
	workers.unconfirmed.add(claim("a"))
	assert.Empty(t, workers.unconfirmed.objects, "a reply comes after its end")

	for i := range 3 * endedAtMost {
		workers.observeDeleted(claim(types.UID(fmt.Sprint(i))))
	}
	assert.LessOrEqual(t, len(workers.unconfirmed.ended)+len(workers.unconfirmed.endedBefore), 2*endedAtMost)
}

func TestUnconfirmedIsGoneOnlyIfTheServerSaysSo(t *testing.T) {
	claims := schema.GroupResource{Resource: "persistentvolumeclaims"}
	for name, test := range map[string]struct {
		err  error
		gone bool
	}{
		"the server's own NotFound": {apierrors.NewNotFound(claims, "data"), true},
		"a proxy's 404":             {apierrors.NewGenericServerResponse(http.StatusNotFound, "get", claims, "data", "404 page not found", 0, true), false},
		"no answer":                 {apierrors.NewServiceUnavailable("away"), false},
	} {
		t.Run(name, func(t *testing.T) {
			workers := newWorkers(&Runner{})
			defer workers.queue.ShutDown()
			workers.controller = &binding.Controller{Client: answers{err: test.err}}
			claim := bindingtest.Claim("default", "data", "5Gi")
			claim.UID, claim.ResourceVersion = "uid", "1"
			workers.controller.Observe(claim)
			workers.unconfirmed.add(claim)
			workers.readUnconfirmed(t.Context(), func(obj.Object) bool { return false })
			assert.Equal(t, test.gone, workers.queue.Len() > 0, "what waits for its end is synced")
			assert.Equal(t, test.gone, len(workers.unconfirmed.drain()) == 0, "it is read again")
		})
	}
}
