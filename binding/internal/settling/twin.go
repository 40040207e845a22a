package settling

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/pvbind/pvbind/binding/bindingtest"
	"github.com/pvbind/pvbind/binding/obj"
)

// Listing is a Cluster that lists the objects of a kind.
type Listing interface {
	Cluster
	List(ctx context.Context, kind obj.Kind) ([]obj.Object, error)
}

// twin is a surface beside which the same is done on a server in memory. Whenever both have settled, every object of the one must
// be as that of the other, but for UIDs, versions and times. Of pods it is the node alone, for a server fills in the rest.
type twin struct {
	Listing
	memory inMemory
	uids   map[string]string
	t      *testing.T
}

func newTwin(t *testing.T, of Listing) twin {
	return twin{of, inMemory{bindingtest.NewServer()}, map[string]string{}, t}
}

func (w twin) Create(ctx context.Context, object obj.Object) error {
	if err := w.memory.Create(ctx, w.same(object)); err != nil {
		return err
	}
	err := w.Listing.Create(ctx, object)
	w.learn(ctx)
	return err
}

func (w twin) Update(ctx context.Context, object obj.Object) error {
	same := w.same(object)
	stored, err := w.memory.Get(ctx, same)
	if err != nil {
		return err
	}
	same.SetResourceVersion(stored.GetResourceVersion())
	if err := w.memory.Update(ctx, same); err != nil {
		return err
	}
	return w.Listing.Update(ctx, object)
}

func (w twin) Delete(ctx context.Context, object obj.Object) error {
	if err := w.memory.Delete(ctx, w.same(object)); err != nil {
		return err
	}
	return w.Listing.Delete(ctx, object)
}

// same returns the object as it is in memory.
func (w twin) same(object obj.Object) obj.Object {
	w.t.Helper()
	text, err := json.Marshal(object)
	require.NoError(w.t, err)
	same := reflect.New(reflect.TypeOf(object).Elem()).Interface().(obj.Object)
	require.NoError(w.t, json.Unmarshal([]byte(w.translated(string(text))), same))
	return same
}

func (w twin) Settle(ctx context.Context, options bindingtest.SettleOptions) (bindingtest.Outcome, error) {
	own := options
	own.Storage = nil
	theirs, theirErr := w.memory.Settle(ctx, own)
	outcome, err := w.Listing.Settle(ctx, options)
	w.learn(ctx)
	assert.Equal(w.t, theirErr, err)
	assert.Equal(w.t, theirs.String(), w.translated(outcome.String()))
	w.compare(ctx)
	return outcome, err
}

func (w twin) compare(ctx context.Context) {
	w.t.Helper()
	for _, kind := range bindingtest.Kinds() {
		ours, theirs := w.dump(ctx, w.Listing, kind), w.dump(ctx, w.memory, kind)
		assert.ElementsMatch(w.t, slices.Collect(maps.Keys(theirs)), slices.Collect(maps.Keys(ours)), "every %s", kind)
		for name, object := range theirs {
			assert.JSONEq(w.t, object, ours[name], name)
		}
	}
}

// dump returns all objects of a kind by their keys, as they are in memory.
func (w twin) dump(ctx context.Context, of Listing, kind obj.Kind) map[string]string {
	w.t.Helper()
	objects, err := of.List(ctx, kind)
	require.NoError(w.t, err)
	dump := map[string]string{}
	for _, object := range objects {
		key, err := bindingtest.KeyOf(object)
		require.NoError(w.t, err)
		dump[w.translated(key.String())] = w.translated(textOf(w.t, object))
	}
	return dump
}

// textOf returns what is compared of an object.
func textOf(t *testing.T, object obj.Object) string {
	t.Helper()
	switch object := object.(type) {
	case *corev1.Pod:
		return fmt.Sprintf(`{"nodeName":%q}`, object.Spec.NodeName)
	case *corev1.Node:
		return "{}"
	}
	text, err := json.Marshal(object)
	require.NoError(t, err)
	var fields map[string]any
	require.NoError(t, json.Unmarshal(text, &fields))
	delete(fields, "kind")
	delete(fields, "apiVersion")
	withoutVersions(fields)
	delete(fields["metadata"].(map[string]any), "uid")
	text, err = json.Marshal(fields)
	require.NoError(t, err)
	return string(text)
}

// withoutVersions removes UIDs, versions and times at any depth.
func withoutVersions(fields map[string]any) {
	for name, value := range fields {
		switch value := value.(type) {
		case map[string]any:
			withoutVersions(value)
			continue
		}
		switch name {
		case "resourceVersion", "creationTimestamp", "managedFields", "lastPhaseTransitionTime", "generation", "deletionTimestamp", "deletionGracePeriodSeconds":
			delete(fields, name)
		}
	}
}

// learn notes which UID of the other is which in memory. Those of what is deleted later stand in claimRefs still.
func (w twin) learn(ctx context.Context) {
	w.t.Helper()
	for _, kind := range []obj.Kind{obj.KindPod, obj.KindClaim, obj.KindVolume, obj.KindClass, obj.KindNode, obj.KindCSINode, obj.KindAttachment} {
		theirs := map[obj.Key]types.UID{}
		objects, err := w.memory.List(ctx, kind)
		require.NoError(w.t, err)
		for _, object := range objects {
			key, _ := bindingtest.KeyOf(object)
			theirs[key] = object.GetUID()
		}
		objects, err = w.Listing.List(ctx, kind)
		require.NoError(w.t, err)
		for _, object := range objects {
			key, _ := bindingtest.KeyOf(object)
			key.Name = w.translated(key.Name)
			if uid := object.GetUID(); uid != "" && theirs[key] != "" {
				w.uids[string(uid)] = string(theirs[key])
			}
		}
	}
}

// translated replaces the UIDs of the other by those in memory. Names of volumes are made of them.
func (w twin) translated(text string) string {
	for theirs, memory := range w.uids {
		text = strings.ReplaceAll(text, theirs, memory)
	}
	return text
}
