package bindingtest

import (
	"context"
	"fmt"

	"github.com/pvbind/pvbind/binding/decision"
	"github.com/pvbind/pvbind/binding/obj"
)

// Cluster is a server and a controller on it: what a unit test needs for its claims to bind. Everything
// that a Server and a Driver can do, a Cluster can.
type Cluster struct {
	*Server
	*Driver
}

// NewCluster starts a cluster with these objects in it and a controller that does all that
// kube-controller-manager does, in-use protection included, without which a deleted claim would never go.
// See NewClusterWith.
func NewCluster(objects ...obj.Object) *Cluster {
	return NewClusterWith(Options{BindingOptions: decision.Options{Protection: decision.ProtectionOn}}, objects...)
}

// NewClusterWith starts a cluster with these objects in it. Objects with a uid are loaded as they stand
// (see Server.Load); after them the others are created in their order. It panics if the server refuses
// one. Nothing is synced before Settle.
func NewClusterWith(options Options, objects ...obj.Object) *Cluster {
	server := NewServer()
	if err := server.fill(objects); err != nil {
		panic(fmt.Sprintf("bindingtest.NewCluster: %v", err))
	}
	return &Cluster{Server: server, Driver: NewDriver(server, options)}
}

func (s *Server) fill(objects []obj.Object) error {
	var running, fresh []obj.Object
	for _, object := range objects {
		if object.GetUID() != "" {
			running = append(running, object)
		} else {
			fresh = append(fresh, object)
		}
	}
	if err := s.Load(running...); err != nil {
		return err
	}
	for _, object := range fresh {
		if _, err := s.Create(context.Background(), object); err != nil {
			return err
		}
	}
	return nil
}
