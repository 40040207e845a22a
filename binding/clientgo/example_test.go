package clientgo_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"os/signal"
	"syscall"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/pvbind/pvbind/binding/bindingtest"
	"github.com/pvbind/pvbind/binding/clientgo"
	"github.com/pvbind/pvbind/binding/clientgo/apitest"
)

// A program in a cluster that binds its claims.
func Example_program() {
	config, err := rest.InClusterConfig()
	if err != nil {
		log.Fatal(err)
	}
	config.QPS = -1
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	runner := clientgo.Runner{Clientset: kubernetes.NewForConfigOrDie(config)}
	if err := runner.Run(ctx); err != nil {
		log.Fatal(err)
	}
}

// A Runner on an API server in memory.
func ExampleRunner() {
	server := apitest.New(bindingtest.NewServer())
	config, stop := server.Listen()
	defer stop()
	clientset := kubernetes.NewForConfigOrDie(config)

	ctx, cancel := context.WithCancel(context.Background())
	runner := clientgo.Runner{Clientset: clientset}
	ended := make(chan error)
	go func() { ended <- runner.Run(ctx) }()

	claims := clientset.CoreV1().PersistentVolumeClaims("default")
	changes, err := claims.Watch(ctx, metav1.ListOptions{})
	if err != nil {
		log.Fatal(err)
	}
	_, _ = clientset.CoreV1().PersistentVolumes().Create(ctx, bindingtest.Volume("disk", "10Gi"), metav1.CreateOptions{})
	_, _ = claims.Create(ctx, bindingtest.Claim("default", "data", "5Gi"), metav1.CreateOptions{})
	for change := range changes.ResultChan() {
		if claim := change.Object.(*corev1.PersistentVolumeClaim); claim.Status.Phase == corev1.ClaimBound {
			fmt.Println(claim.Name, "is bound to", claim.Spec.VolumeName)
			break
		}
	}
	cancel()
	fmt.Println(<-ended)
	// Output:
	// data is bound to disk
	// <nil>
}
