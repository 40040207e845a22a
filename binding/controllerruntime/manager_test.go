package controllerruntime_test

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/pvbind/pvbind/binding/bindingtest"
	"github.com/pvbind/pvbind/binding/clientgo/apitest"
	"github.com/pvbind/pvbind/binding/controllerruntime"
	"github.com/pvbind/pvbind/binding/decision"
	"github.com/pvbind/pvbind/binding/hooks"
	"github.com/pvbind/pvbind/binding/obj"
)

const patience = 30 * time.Second

// mapper knows the kinds that apitest serves, which has no discovery.
func mapper(*rest.Config, *http.Client) (meta.RESTMapper, error) { return kinds(), nil }

// kinds are those of which clients are told here, and not by the server. Discovery maps lists too.
func kinds() meta.RESTMapper {
	m := meta.NewDefaultRESTMapper(nil)
	for _, suffix := range []string{"", "List"} {
		m.Add(corev1.SchemeGroupVersion.WithKind("PersistentVolume"+suffix), meta.RESTScopeRoot)
		for _, kind := range []string{"PersistentVolumeClaim", "Pod"} {
			m.Add(corev1.SchemeGroupVersion.WithKind(kind+suffix), meta.RESTScopeNamespace)
		}
		for _, kind := range []string{"StorageClass", "VolumeAttachment", "CSIDriver", "CSINode"} {
			m.Add(storagev1.SchemeGroupVersion.WithKind(kind+suffix), meta.RESTScopeRoot)
		}
		m.Add(storagev1.SchemeGroupVersion.WithKind("CSIStorageCapacity"+suffix), meta.RESTScopeNamespace)
	}
	return m
}

// manage runs a Reconciler in a manager on the server until the test ends.
func manage(t *testing.T, server *apitest.Server, reconciler *controllerruntime.Reconciler, changes ...func(*ctrl.Options)) {
	t.Helper()
	options := ctrl.Options{
		Scheme:         scheme.Scheme,
		MapperProvider: mapper,
		Metrics:        metricsserver.Options{BindAddress: "0"},
		Logger:         logr.Discard(),
	}
	for _, change := range changes {
		change(&options)
	}
	mgr, err := ctrl.NewManager(server.Start(t), options)
	require.NoError(t, err)
	another := true // the tests of one process are several managers
	reconciler.Options.SkipNameValidation = &another
	require.NoError(t, reconciler.SetupWithManager(mgr))
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- mgr.Start(ctx) }()
	t.Cleanup(func() {
		cancel()
		assert.NoError(t, <-ended)
	})
}

func newServer(t *testing.T, objects ...obj.Object) *apitest.Server {
	t.Helper()
	server := apitest.New(bindingtest.NewServer())
	for _, object := range objects {
		_, err := server.Create(t.Context(), object)
		require.NoError(t, err)
	}
	return server
}

func eventually(t *testing.T, so func() bool, what string) {
	t.Helper()
	require.Eventually(t, so, patience, 5*time.Millisecond, what)
}

func isBound(server *apitest.Server, name string) bool {
	claim := server.Claim("default", name)
	return claim != nil && claim.Status.Phase == corev1.ClaimBound
}

func TestManagerBindsManyClaims(t *testing.T) {
	const pairs = 30
	server := newServer(t)
	for i := range pairs {
		for _, object := range []obj.Object{bindingtest.Volume(fmt.Sprint("disk-", i), "10Gi"), bindingtest.Claim("default", fmt.Sprint("data-", i), "5Gi")} {
			_, err := server.Create(t.Context(), object)
			require.NoError(t, err)
		}
	}
	manage(t, server, &controllerruntime.Reconciler{})
	volumes := map[string]bool{}
	for i := range pairs {
		name := fmt.Sprint("data-", i)
		eventually(t, func() bool { return isBound(server, name) }, name+" is bound")
		volumes[server.Claim("default", name).Spec.VolumeName] = true
	}
	assert.Len(t, volumes, pairs, "X1 one to one")
	calls := map[bindingtest.Verb]int{}
	for _, call := range server.Calls() {
		if call.Actor == "http" {
			calls[call.Verb]++
			require.NoError(t, call.Err)
		}
	}
	assert.Equal(t, 4*pairs, calls[bindingtest.VerbUpdate], "B6 four writes a claim")
	assert.Zero(t, calls[bindingtest.VerbGet], "B6 no read")
}

func TestManagerReadsLive(t *testing.T) {
	server := newServer(t, bindingtest.Volume("disk", "10Gi"), bindingtest.Claim("default", "data", "5Gi"))
	server.Client.Use(bindingtest.Conflict(1, bindingtest.AnyWrite))
	manage(t, server, &controllerruntime.Reconciler{})
	eventually(t, func() bool { return isBound(server, "data") }, "the claim is bound")
	gets := 0
	for _, call := range server.Calls() {
		if call.Actor == "http" && call.Verb == bindingtest.VerbGet {
			gets++
		}
	}
	assert.Equal(t, 1, gets, "B6 a conflict costs one read, of the server itself")
}

func TestManagerPublishesEvents(t *testing.T) {
	server := newServer(t, bindingtest.Claim("default", "data", "5Gi"))
	manage(t, server, &controllerruntime.Reconciler{})
	eventually(t, func() bool { return len(server.Published()) == 1 }, "C5 nothing fits")
	event := server.Published()[0]
	assert.Equal(t, "FailedBinding", event.Reason)
	assert.Equal(t, "persistentvolume-controller", event.Source.Component, "N")
}

func TestManagerTriesAgain(t *testing.T) {
	class := bindingtest.Class("ours")
	class.Provisioner = "example.com/ours"
	claim := bindingtest.Claim("default", "data", "5Gi")
	claim.Spec.StorageClassName = &class.Name
	server := newServer(t, class, claim)
	server.Client.Use(bindingtest.Fail(1, bindingtest.AnyWrite, context.DeadlineExceeded))
	ours := &provisioner{failures: 2}
	manage(t, server, &controllerruntime.Reconciler{Hooks: hooks.Set{Provisioners: map[string]hooks.Provisioner{class.Provisioner: ours}}})
	eventually(t, func() bool { return isBound(server, "data") }, "W6 it was provisioned after failures")
}

// newReclaimed is a claim whose volume's storage is to be deleted with it, and a node that the volume is attached to.
func newReclaimed(t *testing.T) (*apitest.Server, *bindingtest.Storage) {
	t.Helper()
	storage := bindingtest.NewStorage()
	disk := bindingtest.Volume("disk", "10Gi", func(volume *corev1.PersistentVolume) {
		volume.Spec.PersistentVolumeReclaimPolicy = corev1.PersistentVolumeReclaimDelete
	})
	server := newServer(t, disk, bindingtest.Claim("default", "data", "5Gi"), bindingtest.Attachment("disk", "n1"))
	storage.Add(disk)
	storage.Attach(server.Server)
	return server, storage
}

func TestManagerReclaimsWhatIsDetached(t *testing.T) {
	server, storage := newReclaimed(t)
	manage(t, server, &controllerruntime.Reconciler{
		BindingOptions: decision.Options{Protection: decision.ProtectionOn}, Hooks: storage.Hooks("example.com/ours", "hostPath"), Recorder: server.Server,
	})
	eventually(t, func() bool { return isBound(server, "data") }, "the claim is bound")
	require.NoError(t, server.Delete(t.Context(), obj.ClaimKey("default", "data"), metav1.DeleteOptions{}))
	waits := func(event decision.Event) bool { return event.Reason == decision.EventVolumeDelete }
	eventually(t, func() bool { return slices.ContainsFunc(server.Events(), waits) }, "R3 it is attached")
	assert.Len(t, storage.Kept(), 1)
	require.NoError(t, server.Delete(t.Context(), bindingtest.AttachmentKey("disk-n1"), metav1.DeleteOptions{}))
	eventually(t, func() bool { return server.Volume("disk") == nil }, "R3 its storage is deleted, and then the volume")
	assert.Empty(t, storage.Kept())
	assert.Empty(t, storage.Problems(), "X2")
}
