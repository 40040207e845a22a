package clientgo

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

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

// answersOnce gives its answer to one read of a claim, and none to the next.
type answersOnce struct{ answers }

func (a *answersOnce) GetClaim(context.Context, string, string) (*corev1.PersistentVolumeClaim, error) {
	err := a.err
	a.err = errors.New("away")
	return nil, err
}

func TestW9TheControllerSharesOutTheWorkers(t *testing.T) {
	for _, runner := range []*Runner{{}, {Workers: 3}} {
		workers := newWorkers(runner)
		defer workers.queue.ShutDown()
		assert.Equal(t, workers.count, workers.controller.Workers, "W9")
		assert.Positive(t, workers.count)
	}
}

// shown are the objects in the caches of informers.
type shown []obj.Object

func (s shown) check(context.Context) {}
func (s shown) filled() bool          { return s != nil }
func (s shown) objects() []obj.Object { return s }
func (s shown) has(object obj.Object) bool {
	return slices.ContainsFunc(s, func(o obj.Object) bool { return o.GetUID() == object.GetUID() })
}

// W7: what informers show, or have shown the end of, is not read at a resync.
func TestW7AResyncReadsWhatNoInformerShows(t *testing.T) {
	data, volume := bindingtest.Claim("default", "data", "5Gi"), bindingtest.Volume("disk", "10Gi")
	data.UID, data.ResourceVersion, volume.UID, volume.ResourceVersion = "a", "1", "b", "2"
	another := data.DeepCopy()
	another.UID = "another"
	both := []obj.Key{obj.VolumeKey("disk"), obj.ClaimKey("default", "data")}
	for name, test := range map[string]struct {
		known  caches
		gone   []obj.Object
		synced []obj.Key
	}{
		"none is shown":                  {shown{}, nil, both},
		"both are":                       {shown{data, volume}, nil, nil},
		"another of its name is":         {shown{another, volume}, nil, both[1:]},
		"the end of both was":            {shown{}, []obj.Object{data, volume}, nil},
		"the caches are still filled up": {shown(nil), nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			workers := newWorkers(&Runner{})
			defer workers.queue.ShutDown()
			workers.controller = &binding.Controller{Client: answers{err: errors.New("away")}}
			workers.controller.Observe(data)
			workers.controller.Observe(volume)
			for _, gone := range test.gone {
				workers.controller.ObserveDeleted(gone)
			}
			workers.recheckKnown(test.known)
			var synced []obj.Key
			for workers.queue.Len() > 0 {
				key, _ := workers.queue.Get()
				synced = append(synced, key)
			}
			assert.ElementsMatch(t, test.synced, synced)
		})
	}
}

// What is known and in no cache is gone only if the server says so, and not as of a version before the one that is known.
func TestV3WhatNoInformerShowsIsGoneOnlyIfTheServerSaysSo(t *testing.T) {
	claims := schema.GroupResource{Resource: "persistentvolumeclaims"}
	absent := apierrors.NewNotFound(claims, "data")
	asOf := func(version string) error {
		_, err := obj.Confirm(obj.ClaimKey("default", "data"), absent, &metav1.ListMeta{ResourceVersion: version}, []*corev1.PersistentVolumeClaim{}, nil)
		return err
	}
	for name, test := range map[string]struct {
		err  error
		gone bool
	}{
		"the server's own NotFound":        {asOf("11"), true},
		"one of before, once":              {asOf("9"), false},
		"a NotFound that nothing confirms": {absent, false},
		"a proxy's 404":                    {apierrors.NewGenericServerResponse(http.StatusNotFound, "get", claims, "data", "404 page not found", 0, true), false},
		"no answer":                        {apierrors.NewServiceUnavailable("away"), false},
	} {
		t.Run(name, func(t *testing.T) {
			workers := newWorkers(&Runner{})
			defer workers.queue.ShutDown()
			claim := bindingtest.Claim("default", "data", "5Gi")
			claim.UID, claim.ResourceVersion = "uid", "10"
			workers.controller = &binding.Controller{Client: &answersOnce{answers{err: test.err}}}
			workers.controller.Observe(claim)
			workers.recheckKnown(shown{})
			workers.sync(t.Context(), obj.KeyOf(claim))
			assert.Equal(t, test.gone, workers.controller.RecheckKnown(shown{}.has) == nil, "it is read again")
		})
	}
}
