package main

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pvbind/pvbind/binding/bindingtest"
	"github.com/pvbind/pvbind/binding/clientgo/apitest"
	"github.com/pvbind/pvbind/binding/obj"
	"github.com/pvbind/pvbind/examples/internal/programtest"
)

// patience is how long a test waits for what must come, before it fails.
const patience = 30 * time.Second

// running is a pvextender at work.
type running struct {
	*testing.T
	*apitest.Server
	log   *programtest.Log
	end   context.CancelFunc
	ended chan error
}

func start(t *testing.T, args ...string) *running {
	t.Helper()
	r := &running{T: t, Server: apitest.New(bindingtest.NewServer()), log: &programtest.Log{}, ended: make(chan error, 1)}
	o := parse(t, append([]string{"--master", r.Start(t).Host, "--listen=127.0.0.1:0"}, args...)...)
	ctx, end := context.WithCancel(context.Background())
	r.end = end
	go func() { r.ended <- o.Serve(ctx, slog.New(slog.NewJSONHandler(r.log, nil))) }()
	t.Cleanup(end)
	return r
}

func (r *running) address() string {
	r.Helper()
	require.Eventually(r, func() bool { return r.log.Find("serving", "address") != "" }, patience, time.Millisecond, r.log)
	return r.log.Find("serving", "address")
}

// stop ends it as SIGTERM does.
func (r *running) stop() error {
	r.Helper()
	r.end()
	select {
	case err := <-r.ended:
		return err
	case <-time.After(patience):
		require.Fail(r, "it does not end", r.log)
		return nil
	}
}

func (r *running) create(objects ...obj.Object) {
	r.Helper()
	for _, object := range objects {
		_, err := r.Create(r.Context(), object)
		require.NoError(r, err)
	}
}

func get(t *testing.T, client *http.Client, url string) string {
	t.Helper()
	response, err := client.Get(url)
	require.NoError(t, err)
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	return string(text)
}

func TestServesAndEnds(t *testing.T) {
	r := start(t)
	address := r.address()
	assert.Equal(t, "ok\n", get(t, http.DefaultClient, "http://"+address+"/healthz"))
	require.NoError(t, r.stop())
	_, err := net.Dial("tcp", address)
	assert.Error(t, err, "nobody listens any more")
}

func TestServesHTTPS(t *testing.T) {
	cert, key, pool := certificate(t)
	r := start(t, "--tls-cert-file="+cert, "--tls-private-key-file="+key)
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool, ServerName: "example.com"}}}
	assert.Equal(t, "ok\n", get(t, client, "https://"+r.address()+"/healthz"))
	assert.Contains(t, get(t, http.DefaultClient, "http://"+r.address()+"/healthz"), "HTTP request to an HTTPS server")
	require.NoError(t, r.stop())
}

// certificate writes the one that net/http's own tests use.
func certificate(t *testing.T) (certFile, keyFile string, pool *x509.CertPool) {
	t.Helper()
	server := httptest.NewTLSServer(nil)
	defer server.Close()
	key, err := x509.MarshalPKCS8PrivateKey(server.TLS.Certificates[0].PrivateKey)
	require.NoError(t, err)
	dir := t.TempDir()
	certFile, keyFile = filepath.Join(dir, "cert"), filepath.Join(dir, "key")
	for file, block := range map[string]*pem.Block{
		certFile: {Type: "CERTIFICATE", Bytes: server.Certificate().Raw}, keyFile: {Type: "PRIVATE KEY", Bytes: key},
	} {
		require.NoError(t, os.WriteFile(file, pem.EncodeToMemory(block), 0o600))
	}
	pool = x509.NewCertPool()
	pool.AddCert(server.Certificate())
	return certFile, keyFile, pool
}

// A bind that is under way when it is told to end gives up after a time, and whoever asked for it is told.
func TestEndsInTheMiddleOfABind(t *testing.T) {
	r := start(t, "--shutdown-timeout=20ms")
	class := "made"
	r.create(bindingtest.Class(class, func(c *storagev1.StorageClass) {
		c.Provisioner, c.VolumeBindingMode = "disks.example.com", new(storagev1.VolumeBindingWaitForFirstConsumer)
	}), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1"}}, bindingtest.Claim("default", "data", "1Gi", func(c *corev1.PersistentVolumeClaim) { c.Spec.StorageClassName = &class }), bindingtest.Pod("default", "web", "", "data"))
	url := "http://" + r.address()
	stored, err := r.Server.Get(t.Context(), bindingtest.PodKey("default", "web"))
	require.NoError(t, err)
	ask := `{"PodName":"web","PodNamespace":"default","PodUID":"` + string(stored.GetUID()) + `","Node":"n1"}`
	answer := make(chan string, 1)
	go func() {
		for t.Context().Err() == nil { // a scheduler tries again too: until the extender's caches have the pod, the bind fails at once
			response, err := http.Post(url+"/bind", "application/json", strings.NewReader(ask))
			if err != nil {
				answer <- err.Error()
				return
			}
			text, _ := io.ReadAll(response.Body)
			response.Body.Close()
			if strings.Contains(string(text), "context canceled") {
				answer <- string(text)
				return
			}
		}
	}()
	require.Eventually(t, func() bool {
		return r.Claim("default", "data").Annotations["volume.kubernetes.io/selected-node"] == "n1"
	}, patience, time.Millisecond)
	require.NoError(t, r.stop())
	assert.JSONEq(t, `{"Error":"waiting for a volume for pvc/default/data: context canceled"}`, <-answer)
}

func TestFailuresAtTheStart(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer taken.Close()
	t.Setenv("KUBERNETES_SERVICE_HOST", "")
	host := apitest.New(bindingtest.NewServer()).Start(t).Host
	for want, args := range map[string][]string{
		"--kubeconfig: stat /nowhere/kubeconfig: no such file or directory": {"--kubeconfig=/nowhere/kubeconfig"},
		"neither --kubeconfig nor --master is set, and this is no pod":      nil,
		"--tls-private-key-file: open /nowhere/cert: no such file":          {"--master=" + host, "--tls-cert-file=/nowhere/cert", "--tls-private-key-file=/nowhere/key"},
		"--listen: listen tcp " + taken.Addr().String():                     {"--master=" + host, "--listen=" + taken.Addr().String()},
	} {
		assert.ErrorContains(t, parse(t, args...).Serve(t.Context(), slog.New(slog.DiscardHandler)), want)
	}
}

// Files that are there and are not what they should be.
func TestTLSFilesThatDoNotServe(t *testing.T) {
	cert, key, _ := certificate(t)
	other := filepath.Join(t.TempDir(), "other")
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	text, err := x509.MarshalPKCS8PrivateKey(private)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(other, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: text}), 0o600))
	host := apitest.New(bindingtest.NewServer()).Start(t).Host
	for want, files := range map[string][2]string{
		"no such file or directory":   {cert, "/nowhere/key"},
		"failed to find certificate":  {key, key},
		"found a certificate rather":  {cert, cert},
		"failed to find any PEM data": {"serve_test.go", key},
		"does not match public key":   {cert, other},
		"is a directory":              {".", key},
	} {
		o := parse(t, "--master="+host, "--tls-cert-file="+files[0], "--tls-private-key-file="+files[1])
		err := o.Serve(t.Context(), slog.New(slog.DiscardHandler))
		assert.ErrorContains(t, err, want)
		assert.ErrorContains(t, err, "--tls-cert-file and --tls-private-key-file: ", want)
	}
}

// A request that does not arrive in time is told so, and the next one is answered.
func TestRequestThatIsTooSlow(t *testing.T) {
	r := start(t, "--read-timeout=300ms")
	connection, err := net.Dial("tcp", r.address())
	require.NoError(t, err)
	defer connection.Close()
	require.NoError(t, connection.SetDeadline(time.Now().Add(patience)))
	_, err = connection.Write([]byte("POST /filter HTTP/1.1\r\nHost: pvextender\r\nContent-Length: 100\r\n\r\n{"))
	require.NoError(t, err)
	answer, err := io.ReadAll(connection)
	require.NoError(t, err, "the connection is closed")
	assert.Contains(t, string(answer), "HTTP/1.1 408 Request Timeout")
	assert.Contains(t, string(answer), "the request did not arrive in time\n")
	assert.Equal(t, "ok\n", get(t, http.DefaultClient, "http://"+r.address()+"/healthz"))
	require.NoError(t, r.stop())
}

// It can be told to end while the API server does not answer.
func TestEndsBeforeItHasBegun(t *testing.T) {
	o := parse(t, "--master=http://127.0.0.1:1")
	ctx, end := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer end()
	assert.NoError(t, o.Serve(ctx, slog.New(slog.DiscardHandler)))
}
