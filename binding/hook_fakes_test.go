package binding_test

import (
	"context"

	corev1 "k8s.io/api/core/v1"

	"github.com/pvbind/pvbind/binding"
)

// The hooks as functions.
type (
	provisions func(context.Context, binding.ProvisionRequest) (*corev1.PersistentVolume, error)
	deletes    func(context.Context, *corev1.PersistentVolume) error
	recycles   func(context.Context, *corev1.PersistentVolume) error
)

func (f provisions) Provision(ctx context.Context, request binding.ProvisionRequest) (*corev1.PersistentVolume, error) {
	return f(ctx, request)
}

func (f deletes) Delete(ctx context.Context, volume *corev1.PersistentVolume) error {
	return f(ctx, volume)
}

func (f recycles) Recycle(ctx context.Context, volume *corev1.PersistentVolume) error {
	return f(ctx, volume)
}

// makesPaths answers with what was asked for, on a path.
func makesPaths(_ context.Context, request binding.ProvisionRequest) (*corev1.PersistentVolume, error) {
	onHostPath(request.Volume)
	return request.Volume, nil
}
