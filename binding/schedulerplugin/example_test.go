package schedulerplugin_test

import (
	"context"
	"fmt"
	"log"
	"log/slog"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/kube-scheduler/framework"

	"github.com/pvbind/pvbind/binding/bindingtest"
	"github.com/pvbind/pvbind/binding/clientgo"
	"github.com/pvbind/pvbind/binding/clientgo/apitest"
	"github.com/pvbind/pvbind/binding/schedulerplugin"
)

// What kube-scheduler does with the plugin for one pod. The framework's own part, between the calls, is left out, and so are
// errors of the test's client.
func ExampleNew() {
	class := "local"
	volume := bindingtest.Volume("disk", "10Gi", func(v *corev1.PersistentVolume) { v.Spec.StorageClassName = class })
	claim := bindingtest.Claim("default", "data", "5Gi", func(c *corev1.PersistentVolumeClaim) { c.Spec.StorageClassName = &class })
	clientset := fake.NewClientset(volume, claim, bindingtest.Pod("default", "web", "", "data"), waiting(class, "kubernetes.io/no-provisioner"))
	apitest.Back(clientset)
	ctx, cancel := context.WithCancel(context.Background())
	factory := informers.NewSharedInformerFactory(clientset, 0)
	arguments := &runtime.Unknown{Raw: []byte(`{"bindTimeoutSeconds": 60}`)} // as in the profile
	made, err := schedulerplugin.New(ctx, arguments, handle{set: clientset, informers: factory})
	if err != nil {
		log.Fatal(err)
	}
	plugin := made.(*schedulerplugin.Plugin)
	factory.StartWithContext(ctx)
	var binder sync.WaitGroup // whoever binds claims in the cluster
	binder.Go(func() {
		_ = (&clientgo.Runner{Clientset: clientset, Logger: slog.New(slog.DiscardHandler)}).Run(ctx)
	})

	pod, _ := clientset.CoreV1().Pods("default").Get(ctx, "web", metav1.GetOptions{})
	node := nodeInfo{node: bindingtest.Node("node", "zone")}
	state := newCycle()
	_, status := plugin.PreFilter(ctx, state, pod, []framework.NodeInfo{node})
	for _, next := range []func() *framework.Status{
		func() *framework.Status { return plugin.Filter(ctx, state, pod, node) },
		func() *framework.Status { return plugin.Reserve(ctx, state, pod, "node") },
		func() *framework.Status { return plugin.PreBind(ctx, state, pod, "node") },
	} {
		if status.IsSuccess() {
			status = next()
		}
	}
	if !status.IsSuccess() {
		plugin.Unreserve(ctx, state, pod, "node")
	}
	bound, _ := clientset.CoreV1().PersistentVolumeClaims("default").Get(ctx, "data", metav1.GetOptions{})
	fmt.Println(status.Code(), bound.Name, "has", bound.Spec.VolumeName) // its status follows
	cancel()
	binder.Wait()
	factory.Shutdown()
	// Output:
	// Success data has disk
}
