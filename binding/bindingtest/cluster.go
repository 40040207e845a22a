package bindingtest

import (
	"context"

	"github.com/pvbind/pvbind/binding/obj"
)

// Cluster is a server in memory and what happens on it: what a unit test needs for its claims to bind. Everything that a Server can
// do, a Cluster can. For single steps, or a controller that crashes or lags, use a Driver.
type Cluster struct {
	*Server
	// Client is the one that Settle uses; faults go here.
	Client *Client
	// Storage is that of the drivers that Settle plays, from one call to the next.
	Storage *Storage

	options SettleOptions
}

// NewCluster starts a cluster with these objects in it, in which all happens that a cluster does by itself: see SettleOptions.
// Objects are loaded and created as by NewServer. Nothing happens before Settle.
func NewCluster(objects ...obj.Object) *Cluster { return NewClusterWith(SettleOptions{}, objects...) }

// NewClusterWith starts a cluster as NewCluster does, with options for Settle.
func NewClusterWith(options SettleOptions, objects ...obj.Object) *Cluster {
	server := NewServer(objects...)
	if options.Storage == nil {
		options.Storage = NewStorage()
	}
	options.Storage.Attach(server)
	return &Cluster{Server: server, Client: server.NewClient("controller"), Storage: options.Storage, options: options}
}

// Settle lets happen what happens by itself, until there is nothing left to do, and returns what is not bound or not placed. See
// SettleOn.
func (c *Cluster) Settle(ctx context.Context) (Outcome, error) {
	return SettleOn(ctx, c.Client, c.options)
}

// MustBind settles, and fails the test unless every claim is Bound and every pod placed. See MustBindOn.
func (c *Cluster) MustBind(t TB) {
	t.Helper()
	MustBindOn(t, c.Client, c.options)
}
