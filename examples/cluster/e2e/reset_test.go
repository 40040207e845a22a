package e2e

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/pvbind/pvbind/binding/bindingtest"
	"github.com/pvbind/pvbind/binding/obj"
)

// newAPI returns the API server of the plane, with no object in it and none in its caches.
func newAPI(t testing.TB) api {
	t.Helper()
	a := connect(t, plane.Config())
	require.NoError(t, a.clear(t.Context()))
	require.NoError(t, a.awaitAdmission(t.Context()))
	return a
}

func connect(t testing.TB, config *rest.Config) api {
	t.Helper()
	config.ContentType = "application/vnd.kubernetes.protobuf"
	client, err := kubernetes.NewForConfig(config)
	require.NoError(t, err)
	return api{client}
}

// clear deletes all objects, whatever holds them.
func (a api) clear(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	kinds := bindingtest.Kinds()
	for i := range kinds {
		if err := a.clearKind(ctx, kinds[len(kinds)-1-i]); err != nil {
			return err
		}
	}
	return a.CoreV1().Events(metav1.NamespaceDefault).DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{})
}

func (a api) clearKind(ctx context.Context, kind obj.Kind) error {
	for {
		keys, err := a.keys(ctx, kind)
		if err != nil || len(keys) == 0 {
			return err
		}
		group, ctx := errgroup.WithContext(ctx)
		group.SetLimit(32)
		for _, key := range keys {
			group.Go(func() error { return a.destroy(ctx, key) })
		}
		if err := group.Wait(); err != nil {
			return err
		}
	}
}

func (a api) keys(ctx context.Context, kind obj.Kind) ([]obj.Key, error) {
	e := a.at(kind)
	list, err := e.client.Get().Resource(e.resource).Do(ctx).Get()
	if err != nil {
		return nil, err
	}
	items, err := meta.ExtractList(list)
	if err != nil {
		return nil, err
	}
	keys := make([]obj.Key, len(items))
	for i, item := range items {
		if keys[i], err = bindingtest.KeyOf(item.(obj.Object)); err != nil {
			return nil, err
		}
	}
	return keys, nil
}

// destroy deletes an object and takes off what holds it.
func (a api) destroy(ctx context.Context, key obj.Key) error {
	if err := a.Delete(ctx, key, metav1.DeleteOptions{GracePeriodSeconds: new(int64)}); err != nil {
		return ignoreNotFound(err)
	}
	e := a.at(key.Kind)
	patch := e.request(e.client.Patch(types.MergePatchType), key).Body([]byte(`{"metadata":{"finalizers":null}}`))
	return ignoreNotFound(patch.Do(ctx).Error())
}

func ignoreNotFound(err error) error {
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}
