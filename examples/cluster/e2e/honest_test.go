package e2e

import (
	"context"
	"testing"

	storagev1 "k8s.io/api/storage/v1"

	"github.com/pvbind/pvbind/binding/bindingtest/conformance"
	"github.com/pvbind/pvbind/binding/obj"
)

// The server in memory passes the same tests (A1 to A6), in its own package.
func TestTheRealServerIsAsTheOneInMemory(t *testing.T) {
	conformance.Run(t, func(t *testing.T) conformance.API { return admitted{newAPI(t)} })
}

// admitted is an API server whose admission knows of each class that was created. Do not use it beside a binder,
// which would take a class for the default that is not.
type admitted struct{ api }

func (a admitted) Create(ctx context.Context, object obj.Object) (obj.Object, error) {
	created, err := a.api.Create(ctx, object)
	if _, class := object.(*storagev1.StorageClass); class && err == nil {
		err = a.awaitAdmission(ctx)
	}
	return created, err
}
