package engine_test

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/pvbind/pvbind/binding/bindingtest"
	"github.com/pvbind/pvbind/binding/decision"
	"github.com/pvbind/pvbind/binding/hooks"
	"github.com/pvbind/pvbind/binding/internal/engine"
	. "github.com/pvbind/pvbind/binding/internal/testkit"
	"github.com/pvbind/pvbind/binding/obj"
)

// X9, C10: a volume cannot have a name of more than 253 bytes. A claim that names one is Lost without a read, and nothing that is sent has
// the name but what the tenant has written.
func TestX9WhatCannotExistIsNotRead(t *testing.T) {
	cluster := NewDriven(bindingtest.Claim("default", "data", "1Gi", Naming(strings.Repeat("n", 100_000)), ClaimNote(Completed, "yes")))
	require.NoError(t, cluster.Settle(t.Context()))
	assert.Equal(t, corev1.ClaimLost, cluster.Claim("default", "data").Status.Phase)
	for _, call := range cluster.Calls() {
		assert.NotEqual(t, obj.KindVolume, call.Key.Kind, call)
		assert.LessOrEqual(t, len(call.String()), 1024)
	}
}

func TestV3WhoseNotFoundCounts(t *testing.T) {
	claims, volumes := schema.GroupResource{Resource: "persistentvolumeclaims"}, schema.GroupResource{Resource: "persistentvolumes"}
	byProxy := func(resource schema.GroupResource) error {
		return apierrors.NewGenericServerResponse(http.StatusNotFound, "get", resource, "data", "404 page not found", 0, true)
	}
	for _, test := range []struct {
		name string
		err  error
		key  obj.Key
		want bool
	}{
		{"the server's own, of a claim", apierrors.NewNotFound(claims, "data"), DataKey, true},
		{"the server's own, of a volume", apierrors.NewNotFound(volumes, "data"), obj.VolumeKey("data"), true},
		{"wrapped", fmt.Errorf("get: %w", apierrors.NewNotFound(claims, "data")), DataKey, true},
		{"by kind, as some fakes say it", apierrors.NewNotFound(schema.GroupResource{Resource: "PersistentVolumeClaim"}, "data"), DataKey, true},
		{"a proxy's, of a claim", byProxy(claims), DataKey, false},
		{"a proxy's, of a volume", byProxy(volumes), obj.VolumeKey("data"), false},
		{"another object", apierrors.NewNotFound(claims, "other"), DataKey, false},
		{"another kind", apierrors.NewNotFound(volumes, "data"), DataKey, false},
		{"another group", apierrors.NewNotFound(schema.GroupResource{Group: "example.com", Resource: "persistentvolumeclaims"}, "data"), DataKey, false},
		{"no object: the resource is not served", &apierrors.StatusError{ErrStatus: apierrors.NewNotFound(claims, "").ErrStatus}, DataKey, false},
		{"the namespace", apierrors.NewNotFound(schema.GroupResource{Resource: "namespaces"}, "default"), DataKey, false},
		{"another reason", apierrors.NewForbidden(claims, "data", errors.New("no")), DataKey, false},
		{"no status", errors.New("not found"), DataKey, false},
		{"no error", nil, DataKey, false},
	} {
		assert.Equal(t, test.want, obj.IsAbsent(test.err, test.key), test.name)
	}
}

// V3, X2: the server went back in time, as nothing but its replies tells. They are believed when they are repeated, and
// end the sync: nothing is decided on what was known before together with what is there now.
func TestV3AServerThatWentBack(t *testing.T) {
	a, rules := obj.VolumeKey("a"), decision.Options{Hooks: hooks.Names{SourceDeleters: sets.New("hostPath")}}
	volume := func(version string, at corev1.PersistentVolumePhase) *corev1.PersistentVolume {
		v := KnownVolume("a", BoundToClaim, DeletedPolicy, InPhase(at), OnHostPath)
		v.ResourceVersion = version
		return v
	}
	before := At("10", KnownClaim(BoundTo("a")))
	t.Run("what was deleted is there, twice", func(t *testing.T) {
		d := newTalk(t, rules, a, volume("20", corev1.VolumeReleased), At("30", KnownClaim(BoundTo("a"))))
		d.state.ObserveDeleted(before)
		d.starts().announces().says("R3 Read volumeattachments").gets(nil, nil).says("V3 Read pvc/default/data")
		d.gets(before, nil).says("V3 Read pvc/default/data")
		ended := d.gets(before, nil).step
		require.True(t, ended.Done)
		require.ErrorContains(t, ended.Err, "pvc/default/data")
		require.ErrorContains(t, ended.Err, "metadata.resourceVersion: the server has 10")
		assert.NotZero(t, ended.After, "W6")
		assert.Equal(t, before, d.state.Known(DataKey))
		assert.False(t, d.state.Buried(before.GetUID()))
		d.starts().says("W8 Read pv/a").again().says("V2 Read pvc/default/data").again().says("V2 UpdateVolumeStatus pv/a")
	})
	t.Run("a reply that was overtaken by a deletion proves nothing", func(t *testing.T) {
		d := newTalk(t, rules, a, volume("20", corev1.VolumeReleased))
		d.starts().announces().says("R3 Read volumeattachments").gets(nil, nil).says("V3 Read pvc/default/data")
		d.state.Observe(before)
		d.state.ObserveDeleted(before)
		d.gets(before, nil).says("V3 Read pvc/default/data")
		d.gets(nil, ErrNotFound).says("R3 Read pv/a").again().says("R3 RunDeleter pv/a")
	})
	t.Run("a second reply that another claim's creation has overtaken proves nothing either", func(t *testing.T) {
		d := newTalk(t, rules, a, volume("20", corev1.VolumeReleased), At("30", KnownClaim(BoundTo("a"))))
		d.state.ObserveDeleted(before)
		later := At("31", KnownClaim(Lost, func(c *corev1.PersistentVolumeClaim) { c.UID = "uid-9" }))
		d.starts().announces().says("R3 Read volumeattachments").gets(nil, nil).says("V3 Read pvc/default/data")
		d.gets(before, nil).says("V3 Read pvc/default/data")
		d.state.Observe(later)
		d.gets(before, nil).says("V3 Read pvc/default/data")
		d.gets(later, nil).says("V3 Read pvc/default/data").gets(later, nil).says("R3 Read pv/a")
		assert.Equal(t, later, d.state.Known(DataKey))
	})
	t.Run("a claim of before that a cache shows while the one of now is read is not the one that was read", func(t *testing.T) {
		d := newTalk(t, rules, a, volume("20", corev1.VolumeBound))
		now := At("30", KnownClaim(BoundTo("a")))
		d.starts().says("V3 Read pvc/default/data")
		d.state.Observe(At("99", KnownClaim(OfUID("uid-former"))))
		d.gets(now, nil).says("V3 Read pvc/default/data").gets(now, nil).says("V3 Read pvc/default/data")
		require.ErrorIs(t, d.gets(now, nil).step.Err, engine.ErrWentBack)
		assert.Equal(t, now, d.state.Known(DataKey))
	})
	t.Run("what was deleted before the server went back is there again, in place of what was made since", func(t *testing.T) {
		old, made := volume("10", corev1.VolumeBound), volume("20", corev1.VolumeBound)
		old.Spec.ClaimRef, made.Spec.ClaimRef, made.UID = nil, nil, "uid-later"
		d := newTalk(t, rules, a, old)
		d.state.ObserveDeleted(old)
		d.state.Observe(made)
		d.state.ObserveRestore()
		d.starts().says("W8 Read pv/a").gets(old, nil).says("W8 Read pv/a").gets(old, nil).says("V1 Read pvc")
		assert.Equal(t, old, d.state.Known(a))
	})
	t.Run("an older version, twice", func(t *testing.T) {
		d := newTalk(t, rules, a, volume("20", corev1.VolumeReleased))
		d.starts().announces().says("R3 Read volumeattachments").gets(nil, nil).says("V3 Read pvc/default/data").gets(nil, ErrNotFound).says("R3 Read pv/a")
		d.gets(volume("10", corev1.VolumeBound), nil).says("R3 Read pv/a")
		ended := d.gets(volume("10", corev1.VolumeBound), nil).step
		require.ErrorContains(t, ended.Err, "pv/a")
		assert.Equal(t, "10", d.state.Known(a).GetResourceVersion())
	})
	t.Run("a confirmed NotFound counts at once, and one from before the object as an older version of it", func(t *testing.T) {
		for version, reads := range map[string]int{"30": 1, "31": 1, "29": 2} {
			d := newTalk(t, rules, a, volume("20", corev1.VolumeReleased), At("30", KnownClaim(Named("other"))))
			d.state.Observe(At("30", KnownClaim(Lost, func(c *corev1.PersistentVolumeClaim) { c.UID = "uid-9" })))
			d.starts().announces().says("R3 Read volumeattachments").gets(nil, nil)
			for range reads {
				d.says("V3 Read pvc/default/data").gets(nil, AbsentAsOf(DataKey, version))
			}
			if reads == 1 {
				d.says("R3 Read pv/a")
				continue
			}
			require.ErrorIs(t, d.step.Err, engine.ErrWentBack)
			require.ErrorContains(t, d.step.Err, "the server has 29")
		}
	})
	t.Run("a NotFound as of before a person wrote the claimRef, of a claim that came between", func(t *testing.T) {
		d := newTalk(t, rules, a, volume("20", corev1.VolumeReleased))
		d.starts().announces().says("R3 Read volumeattachments").gets(nil, nil)
		for range 2 {
			d.says("V3 Read pvc/default/data").gets(nil, AbsentAsOf(DataKey, "19"))
		}
		require.True(t, d.step.Done)
		require.ErrorIs(t, d.step.Err, engine.ErrWentBack)
		require.ErrorContains(t, d.step.Err, "the server has 19")
	})
	t.Run("one NotFound from before, after a true one", func(t *testing.T) {
		d := newTalk(t, rules, a, volume("20", corev1.VolumeBound))
		d.starts().says("V3 Read pvc/default/data").gets(nil, AbsentAsOf(DataKey, "25")).says("V3 UpdateVolumeStatus pv/a").stored()
		d.announces().says("R3 Read volumeattachments").gets(nil, nil)
		d.says("V3 Read pvc/default/data").gets(nil, AbsentAsOf(DataKey, "19"))
		d.says("V3 Read pvc/default/data").gets(nil, AbsentAsOf(DataKey, "200")).says("R3 Read pv/a")
	})
	t.Run("a NotFound from before, and one without a version, are not the same reply twice", func(t *testing.T) {
		reserved := KnownVolume("a", RefersTo("default", "data", ""), InPhase(corev1.VolumeAvailable))
		d := newTalk(t, rules, DataKey, reserved, At("30", KnownClaim()))
		d.starts().says("B1 Read pvc/default/data").gets(nil, AbsentAsOf(DataKey, "1")).says("B1 Read pvc/default/data").gets(nil, NotFoundError(DataKey))
		for range 2 {
			d.says("B1 Read pvc/default/data").gets(At("30", KnownClaim()), nil)
		}
		d.says("B1 UpdateVolume pv/a")
	})
}
