package program

import (
	"net/http"
	"sync"
	"time"

	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/klog/v2"
)

// refusals logs that connections to the API server are refused, which client-go's informers keep to themselves: a program
// that is told a wrong address would wait for ever and not say why.
type refusals struct {
	mutex sync.Mutex
	next  time.Time
}

// refusalsEvery is how often it is said, while it goes on.
const refusalsEvery = 10 * time.Second

// watched tells the refusals of what comes of each request.
func (r *refusals) watched(transport http.RoundTripper) http.RoundTripper {
	return roundTripper(func(request *http.Request) (*http.Response, error) {
		response, err := transport.RoundTrip(request)
		if utilnet.IsConnectionRefused(err) && r.due() {
			klog.Background().Error(err, "The API server cannot be reached", "address", request.URL.Host)
		}
		return response, err
	})
}

func (r *refusals) due() bool {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	now := time.Now()
	if now.Before(r.next) {
		return false
	}
	r.next = now.Add(refusalsEvery)
	return true
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(request *http.Request) (*http.Response, error) { return f(request) }
