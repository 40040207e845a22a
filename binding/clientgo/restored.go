package clientgo

import (
	"cmp"
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/wait"
	apiwatch "k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/watchlist"
)

// NewInformer returns an informer that lists anew when the server has gone back in time, as after a restore of etcd from a
// backup. Those of client-go do not notice: they go on from the version that they had, the server accepts the watch, and sends
// nothing until it has reached that version once more. It costs one small list whenever a watch begins anew.
//
// It is what a manager of controller-runtime needs for all of its controllers: cache.Options{NewInformer: clientgo.NewInformer}.
func NewInformer(lw cache.ListerWatcher, object runtime.Object, resync time.Duration, indexers cache.Indexers) cache.SharedIndexInformer {
	return newInformer(lw, object, resync, indexers)
}

func newInformer(lw cache.ListerWatcher, object runtime.Object, resync time.Duration, indexers cache.Indexers) *informer {
	noticing := &noticing{ListerWatcher: lw}
	return &informer{cache.NewSharedIndexInformerWithOptions(noticing, object, cache.SharedIndexInformerOptions{ResyncPeriod: resync, Indexers: indexers}), noticing}
}

// informer is one that notices when the server has gone back in time, and whoever knows of it may ask to be told.
type informer struct {
	cache.SharedIndexInformer
	noticing *noticing
}

// OnWentBack has the function called when a list shows that the server has gone back in time. It must not block.
func (i *informer) OnWentBack(tell func(error)) {
	i.noticing.mu.Lock()
	defer i.noticing.mu.Unlock()
	i.noticing.tell = append(i.noticing.tell, tell)
}

// noticing is a ListerWatcher that notices when the server has gone back in time.
type noticing struct {
	cache.ListerWatcher
	seen  Position
	ahead atomic.Pointer[string] // the version from which a watch could not go on; nil if none

	mu   sync.Mutex
	tell []func(error)
}

// IsWatchListSemanticsUnSupported is how a ListerWatcher says that it cannot stream a list.
func (n *noticing) IsWatchListSemanticsUnSupported() bool {
	return watchlist.DoesClientNotSupportWatchListSemantics(n.ListerWatcher)
}

// List and Watch are the calls without a context, which an informer does not make.
func (n *noticing) List(options metav1.ListOptions) (runtime.Object, error) {
	return n.ListWithContext(context.Background(), options)
}

func (n *noticing) Watch(options metav1.ListOptions) (apiwatch.Interface, error) {
	return n.WatchWithContext(context.Background(), options)
}

// ListWithContext lists. A list of what the server has now, and not of a cache of its own, tells how far the server is.
func (n *noticing) ListWithContext(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
	options = n.atMost(options)
	list, err := n.list(ctx, options)
	if err == nil && options.ResourceVersion != "0" && options.Continue == "" {
		_ = n.reached(list) // it is what the informer has from now on
	}
	return list, err
}

// WatchWithContext begins a watch. If that is to go on from a version that the server has not reached, it fails as where the
// version is too old, and the informer lists again. How far the server is, is read after the watch has begun, so that a server
// that goes back later ends the watch.
func (n *noticing) WatchWithContext(ctx context.Context, options metav1.ListOptions) (apiwatch.Interface, error) {
	if options.SendInitialEvents != nil {
		options = n.atMost(options)
	}
	seen := options.ResourceVersion != "" && options.ResourceVersion != "0"
	if seen { // also where the server is not there now: that may be the restore
		n.seen.Reached(options.ResourceVersion)
	}
	begun, err := cache.ToWatcherWithContext(n.ListerWatcher).WatchWithContext(ctx, options)
	goesOn := options.SendInitialEvents == nil && seen
	if err != nil || !goesOn && n.seen.Newest() == "" {
		return begun, err
	}
	asking, cancel := context.WithTimeout(ctx, defaultTimeout) // nobody reads the watch until then
	defer cancel()
	newest, err := n.list(asking, metav1.ListOptions{Limit: 1}) // without a version: as new as the server has
	if err == nil {
		err = n.reached(newest)
	}
	if err != nil && goesOn && apierrors.IsResourceExpired(err) {
		n.ahead.Store(&options.ResourceVersion)
	}
	if err != nil && (goesOn || !apierrors.IsResourceExpired(err)) {
		begun.Stop()
		return nil, err
	}
	return begun, nil
}

// list lists. An empty list without a resourceVersion is an error: a proxy that has answered with {} would end all that there is.
func (n *noticing) list(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
	list, err := cache.ToListerWithContext(n.ListerWatcher).ListWithContext(ctx, options)
	if err != nil {
		return nil, err
	}
	if accessor, err := meta.ListAccessor(list); err == nil && accessor.GetResourceVersion() == "" && meta.LenList(list) == 0 {
		return nil, fmt.Errorf("the reply is no list: %T has neither items nor a resourceVersion; something else than the API server may have answered", list)
	}
	return list, nil
}

// atMost returns options of a list that is not to be newer than the server is. For the version from which the informer could not
// go on the server would wait some seconds, and then fail.
func (n *noticing) atMost(options metav1.ListOptions) metav1.ListOptions {
	if from := n.ahead.Load(); from == nil || options.ResourceVersion != *from {
		return options
	}
	options.ResourceVersion = ""
	if options.SendInitialEvents == nil {
		options.ResourceVersionMatch = ""
	}
	return options
}

// reached notes how far the server is, by a list. It returns an error, and tells of it, if the server was further before.
func (n *noticing) reached(list runtime.Object) error {
	accessor, err := meta.ListAccessor(list)
	if err != nil {
		return err
	}
	err = n.seen.Check(accessor.GetResourceVersion())
	if err != nil {
		n.mu.Lock()
		defer n.mu.Unlock()
		for _, tell := range n.tell {
			tell(err)
		}
	}
	return err
}

// Position is how far the server was, by the resourceVersions of one kind. The zero value has seen nothing. It is safe for
// concurrent use.
type Position struct {
	mu     sync.Mutex
	newest string
}

// Newest returns the newest resourceVersion that was seen; "" if none was.
func (p *Position) Newest() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.newest
}

// Reached notes a resourceVersion that the server had at some time. Versions that cannot be compared are ignored.
func (p *Position) Reached(version string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.newest == "" || older(p.newest, version) {
		p.newest = version
	}
}

// Check notes the resourceVersion of a list of what the server has now. If a later one was seen before it was requested, the server
// has gone back in time:
// the error says so, like that of a watch from a version that is too old, and the list's is the one to go on from.
func (p *Position) Check(version string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	was := p.newest
	if was == "" || !older(version, was) {
		p.newest = cmp.Or(version, was)
		return nil
	}
	p.newest = version
	return apierrors.NewResourceExpired(fmt.Sprintf("the server has reached resourceVersion %s only, not %s: it may have been restored from a backup", version, was))
}

// relistWithin is how soon an informer that notices that the server went back lists anew.
const relistWithin = 3 * time.Second

// Blind reports whether one of these informers sees nothing because it goes on from a resourceVersion that the server has not
// reached, as those of client-go do after a restore. Before has the versions of those that are ahead of the server. An informer
// that notices it lists anew within seconds, for which Blind waits.
func Blind(ctx context.Context, before map[cache.SharedIndexInformer]string) bool {
	ctx, cancel := context.WithTimeout(ctx, relistWithin)
	defer cancel()
	for informer, version := range before {
		err := wait.PollUntilContextCancel(ctx, relistWithin/100, true, func(context.Context) (bool, error) {
			return older(informer.LastSyncResourceVersion(), version), nil
		})
		if err != nil {
			return true
		}
	}
	return false
}

// older reports whether one version comes before another. Versions that cannot be compared prove nothing.
func older(version, than string) bool {
	order, err := resourceversion.CompareResourceVersion(version, than)
	return err == nil && order < 0
}

// sameRestore is for how long the kinds may take to show one restore: their watches end with the server, and they list anew.
const sameRestore = time.Minute

// Occurrence tells the notices of one restore from that of the next, so that each is told once. The lists of all kinds show the same
// restore, shortly after one another, and each does so once. That two notices are of one restore is likely and no more: the first
// may have been an old reply of a proxy. So each of them ends what runs and has all read anew; at what was read between the
// two that costs one more read. The zero value has seen none. It is safe for concurrent use.
type Occurrence struct {
	mu    sync.Mutex
	began time.Time
	kinds sets.Set[string] // that have shown it
}

// Begins reports whether a notice is the first of a restore, and to be told. By is the kind whose list has shown it; "" is a live
// read of an object. A kind that shows one after a minute has not shown the last one, but another.
func (o *Occurrence) Begins(by string) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if by != "" && time.Since(o.began) < sameRestore && !o.kinds.Has(by) {
		o.kinds.Insert(by)
		return false
	}
	o.began, o.kinds = time.Now(), sets.New(by)
	return true
}
