package extender

import (
	"cmp"
	"log/slog"
	"net/http"
	"time"

	"k8s.io/client-go/kubernetes"
)

// Server answers a scheduler. Cluster and Clientset must be set; every other field has a useful zero value.
type Server struct {
	Cluster   *Cluster
	Clientset kubernetes.Interface
	// BindTimeout is how long a pod's claims may take to be Bound, provisioning included; 10 minutes if zero, as in
	// kube-scheduler. The extender's httpTimeout in the scheduler's configuration should be longer.
	BindTimeout time.Duration
	// MaxRequestBytes is the size of the largest request that is read; 4 MiB if zero. A scheduler that is not told
	// nodeCacheCapable sends all nodes in each.
	MaxRequestBytes int64
	// Logger logs binds; nil: slog.Default.
	Logger *slog.Logger
}

const (
	defaultBindTimeout = 10 * time.Minute
	defaultMaxRequest  = 4 << 20
)

func (s *Server) bindTimeout() time.Duration { return cmp.Or(s.BindTimeout, defaultBindTimeout) }
func (s *Server) maxRequest() int64          { return cmp.Or(s.MaxRequestBytes, int64(defaultMaxRequest)) }
func (s *Server) logger() *slog.Logger       { return cmp.Or(s.Logger, slog.Default()) }

// Handler serves POST /filter, /prioritize and /bind, and GET /healthz. A malformed request is answered with a
// 4xx code and one line of text: 400, 404, 405, 408 if it takes too long to arrive, or 413 if it is too large.
func (s *Server) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /filter", serve(s, s.filter))
	mux.HandleFunc("POST /prioritize", serve(s, s.prioritize))
	mux.HandleFunc("POST /bind", serve(s, s.bind))
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("ok\n")) })
	return mux
}
