package controllerruntime

import (
	"context"
	"fmt"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/pvbind/pvbind/binding"
	"github.com/pvbind/pvbind/binding/clientgo"
	"github.com/pvbind/pvbind/binding/obj"
)

var _ reconcile.TypedReconciler[obj.Key] = (*Reconciler)(nil)

// Reconciler runs a binding.Controller in a manager: see SetupWithManager. The zero value is useful; none of its fields
// may change once it is set up.
type Reconciler struct {
	// Client writes, and reads if it has no cache; nil: the manager's, which reads from the server where it must.
	Client client.Client
	// Rules and Hooks are those of the Controller.
	Rules binding.Rules
	Hooks binding.Hooks
	// Pods are watched unless it says otherwise.
	Pods clientgo.PodWatch
	// Recorder publishes events; nil: clientgo.StartRecorder on the manager's connection.
	Recorder binding.Recorder
	// Options are those of the controller. MaxConcurrentReconciles is 64 if zero. The rate limiter is always the
	// Reconciler's own, which waits for as long as the Controller says.
	Options controller.TypedOptions[obj.Key]

	controller *binding.Controller
	queue      workqueue.TypedRateLimitingInterface[obj.Key]
	delays     delays
}

const defaultConcurrency = 64

// SetupWithManager adds the Reconciler to a manager, which starts it.
func (r *Reconciler) SetupWithManager(mgr manager.Manager) error {
	if err := r.Pods.Check(r.Rules, r.Hooks); err != nil {
		return fmt.Errorf("controllerruntime.Reconciler: %w", err)
	}
	recorder := r.Recorder
	if recorder == nil {
		var err error
		if recorder, err = startRecorder(mgr); err != nil {
			return err
		}
	}
	r.controller = r.newController(Client{mgr.GetClient(), mgr.GetAPIReader()}, recorder)
	return r.watch(mgr)
}

// newController is the controller, on the Reconciler's own client or on another.
func (r *Reconciler) newController(other Client, recorder binding.Recorder) *binding.Controller {
	if r.Client != nil {
		other = Client{Client: r.Client}
	}
	return &binding.Controller{Client: other, Recorder: recorder, Rules: r.Rules, Hooks: r.Hooks}
}

// startRecorder publishes events until the manager stops.
func startRecorder(mgr manager.Manager) (binding.Recorder, error) {
	clientset, err := kubernetes.NewForConfigAndClient(mgr.GetConfig(), mgr.GetHTTPClient())
	if err != nil {
		return nil, err
	}
	recording, stop := context.WithCancel(context.Background())
	return clientgo.StartRecorder(recording, clientset), mgr.Add(manager.RunnableFunc(func(ctx context.Context) error {
		<-ctx.Done()
		stop()
		return nil
	}))
}

// Reconcile syncs one claim or volume. It is called by the manager.
func (r *Reconciler) Reconcile(ctx context.Context, key obj.Key) (reconcile.Result, error) {
	result, err := r.controller.Sync(ctx, key)
	add(r.queue, result.Next)
	switch {
	case err == nil:
		return reconcile.Result{RequeueAfter: result.After}, nil
	case result.After == 0:
		return reconcile.Result{}, reconcile.TerminalError(err)
	}
	r.delays.set(key, result.After)
	return reconcile.Result{}, err
}

func add(queue workqueue.TypedRateLimitingInterface[obj.Key], keys []obj.Key) {
	for _, key := range keys {
		queue.Add(key)
	}
}
