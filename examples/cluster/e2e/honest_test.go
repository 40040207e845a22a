package e2e

import (
	"context"
	"fmt"
	"testing"

	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	corev1 "k8s.io/api/core/v1"

	"github.com/pvbind/pvbind/binding"
	"github.com/pvbind/pvbind/binding/bindingtest"
	"github.com/pvbind/pvbind/binding/bindingtest/conformance"
)

// The server in memory passes the same tests (A1 to A6), in its own package.
func TestTheRealServerIsAsTheOneInMemory(t *testing.T) {
	conformance.Run(t, func(t *testing.T) conformance.API {
		a := admitted{newAPI(t)}
		if err := a.awaitAdmission(t.Context()); err != nil {
			t.Fatal(err)
		}
		return a
	})
}

// admitted is an API server whose admission plugins know of each class that was created. They read classes from a
// cache, which lags.
type admitted struct{ api }

func (a admitted) Create(ctx context.Context, object binding.Object) (binding.Object, error) {
	created, err := a.api.Create(ctx, object)
	if _, class := object.(*storagev1.StorageClass); class && err == nil {
		err = a.awaitAdmission(ctx)
	}
	return created, err
}

// awaitAdmission waits until admission has seen a class come that is newer than all others, and go.
func (a admitted) awaitAdmission(ctx context.Context) error {
	const newest = "0-newest"
	class := bindingtest.Class(newest, func(c *storagev1.StorageClass) {
		c.Annotations = map[string]string{storageDefault: "true"}
	})
	if _, err := a.api.Create(ctx, class); err != nil {
		return err
	}
	if err := a.awaitDefault(ctx, func(name string) bool { return name == newest }); err != nil {
		return err
	}
	if err := a.Delete(ctx, binding.Key{Kind: bindingtest.KindClass, Name: newest}, metav1.DeleteOptions{}); err != nil {
		return err
	}
	return a.awaitDefault(ctx, func(name string) bool { return name != newest })
}

const storageDefault = "storageclass.kubernetes.io/is-default-class"

// awaitDefault waits until a claim would be given such a class.
func (a admitted) awaitDefault(ctx context.Context, wanted func(string) bool) error {
	probe := bindingtest.Claim("default", "probe", "1Gi")
	for range 1000 {
		answer, err := a.CreateWith(ctx, probe, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		if err != nil {
			return err
		}
		name := answer.(*corev1.PersistentVolumeClaim).Spec.StorageClassName
		if name == nil && wanted("") || name != nil && wanted(*name) {
			return nil
		}
	}
	return fmt.Errorf("admission does not see which class is the default")
}
