package e2e

import (
	"context"
	"errors"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pvbind/pvbind/binding/bindingtest"
	"github.com/pvbind/pvbind/binding/obj"
)

const isDefault = "storageclass.kubernetes.io/is-default-class"

// awaitAdmission waits until admission knows of all classes. It reads them from a cache: here it has to see one come
// that is newer than all others, and go.
func (a api) awaitAdmission(ctx context.Context) error {
	const newest = "0-newest"
	class := bindingtest.Class(newest, func(c *storagev1.StorageClass) {
		c.Annotations = map[string]string{isDefault: "true"}
	})
	if _, err := a.Create(ctx, class); err != nil {
		return err
	}
	if err := a.awaitDefault(ctx, func(name string) bool { return name == newest }); err != nil {
		return err
	}
	if err := a.Delete(ctx, obj.Key{Kind: obj.KindClass, Name: newest}, metav1.DeleteOptions{}); err != nil {
		return err
	}
	return a.awaitDefault(ctx, func(name string) bool { return name != newest })
}

// awaitDefault waits until a claim would be given such a class.
func (a api) awaitDefault(ctx context.Context, wanted func(string) bool) error {
	probe := bindingtest.Claim(metav1.NamespaceDefault, "probe", "1Gi")
	for range 10000 {
		answer, err := a.CreateWith(ctx, probe, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		if err != nil {
			return err
		}
		name := answer.(*corev1.PersistentVolumeClaim).Spec.StorageClassName
		if name == nil && wanted("") || name != nil && wanted(*name) {
			return nil
		}
	}
	return errors.New("admission does not see which class is the default")
}
