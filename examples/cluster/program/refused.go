package program

import (
	"net/http"
	"sync"
	"time"

	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/klog/v2"
)

// refusedLog logs that connections to the API server are refused, which client-go's informers do not log: a program with a
// wrong address would wait for ever and not say why.
type refusedLog struct {
	mutex sync.Mutex
	next  time.Time
}

// refusedEvery is how often it is logged, while it goes on.
const refusedEvery = 10 * time.Second

// wrap returns a transport that logs each refused connection.
func (r *refusedLog) wrap(transport http.RoundTripper) http.RoundTripper {
	return roundTripper(func(request *http.Request) (*http.Response, error) {
		response, err := transport.RoundTrip(request)
		if utilnet.IsConnectionRefused(err) && r.due() {
			klog.Background().Error(err, "The API server cannot be reached", "address", request.URL.Host)
		}
		return response, err
	})
}

func (r *refusedLog) due() bool {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	now := time.Now()
	if now.Before(r.next) {
		return false
	}
	r.next = now.Add(refusedEvery)
	return true
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(request *http.Request) (*http.Response, error) { return f(request) }
