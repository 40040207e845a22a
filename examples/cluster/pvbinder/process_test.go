package main

import (
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"

	"github.com/pvbind/pvbind/binding/bindingtest"
	"github.com/pvbind/pvbind/binding/clientgo/apitest"
	"github.com/pvbind/pvbind/binding/obj"
	"github.com/pvbind/pvbind/examples/internal/programtest"
)

// patience is how long a test waits for what must come, before it fails.
const patience = 30 * time.Second

// TestMain is pvbinder itself where a test has started it.
func TestMain(m *testing.M) {
	if os.Getenv("PVBINDER") != "" {
		main()
	}
	os.Exit(m.Run())
}

// process is a pvbinder that runs.
type process struct {
	t       *testing.T
	command *exec.Cmd
	log     *programtest.Log
	ended   chan struct{}
}

// kubeconfig is a file that says how to reach the server.
func kubeconfig(t *testing.T, server *apitest.Server) string {
	t.Helper()
	config := api.NewConfig()
	config.Clusters["test"] = &api.Cluster{Server: server.Start(t).Host}
	config.Contexts["test"] = &api.Context{Cluster: "test"}
	config.CurrentContext = "test"
	file := filepath.Join(t.TempDir(), "kubeconfig")
	require.NoError(t, clientcmd.WriteToFile(*config, file))
	return file
}

// launch starts pvbinder as a process of its own, which is killed when the test ends.
func launch(t *testing.T, server *apitest.Server, args ...string) *process {
	t.Helper()
	args = append([]string{"--kubeconfig", kubeconfig(t, server), "--bind-address=127.0.0.1:0", "--logging-format=json"}, args...)
	p := &process{t: t, command: exec.Command(os.Args[0], args...), log: &programtest.Log{}, ended: make(chan struct{})}
	p.command.Env = append(os.Environ(), "PVBINDER=1", "KUBE_FEATURE_WatchListClient=false")
	p.command.Stderr = p.log
	require.NoError(t, p.command.Start())
	go func() {
		defer close(p.ended)
		_ = p.command.Wait()
	}()
	t.Cleanup(func() {
		_ = p.command.Process.Kill()
		<-p.ended
		if t.Failed() {
			t.Log(p.log)
		}
	})
	return p
}

// exit waits for the end, and returns the exit code.
func (p *process) exit() int {
	p.t.Helper()
	select {
	case <-p.ended:
		return p.command.ProcessState.ExitCode()
	case <-time.After(patience):
		require.Fail(p.t, "pvbinder does not end", p.log)
		return 0
	}
}

func (p *process) signal(signal syscall.Signal) {
	p.t.Helper()
	require.NoError(p.t, p.command.Process.Signal(signal))
}

// get asks what pvbinder serves.
func (p *process) get(path string) (code int, body string) {
	address := p.log.Find("serving health and metrics", "address")
	if address == "" {
		return 0, ""
	}
	response, err := http.Get("http://" + address + path)
	if err != nil {
		return 0, ""
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	require.NoError(p.t, err)
	return response.StatusCode, string(text)
}

func (p *process) says(status status) func() bool {
	return func() bool {
		_, body := p.get("/readyz")
		return body == string(status)+"\n"
	}
}

func eventually(t *testing.T, so func() bool, what string) {
	t.Helper()
	require.Eventually(t, so, patience, 5*time.Millisecond, what)
}

func newServer(t *testing.T, objects ...obj.Object) *apitest.Server {
	t.Helper()
	server := apitest.New(bindingtest.NewServer())
	create(t, server, objects...)
	return server
}

func create(t *testing.T, server *apitest.Server, objects ...obj.Object) {
	t.Helper()
	for _, object := range objects {
		_, err := server.Create(t.Context(), object)
		require.NoError(t, err)
	}
}

// pair is a volume and a claim of a size that only they have.
func pair(name, size string) []obj.Object {
	return []obj.Object{bindingtest.Volume("disk-"+name, size), bindingtest.Claim("default", name, size)}
}

func bound(server *apitest.Server, claim string) func() bool {
	return func() bool {
		claim := server.Claim("default", claim)
		return claim != nil && claim.Status.Phase == corev1.ClaimBound
	}
}
