package e2e

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"regexp"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/pvbind/pvbind/reclaim"
)

// tap stands between a Runner and the server. It counts, and now and then it keeps a request or an answer back for a while, as
// if the Runner were paused.
type tap struct {
	identity string

	mu        sync.Mutex
	writes    int
	conflicts int
	pauses    int
	announced sets.Set[int64] // tokens that it has announced
	outrun    int             // announcements that lost a conflict
	others    sets.Set[int64] // tokens of others that it has been shown
}

// tapped returns a connection of the Runner of that identity.
func tapped(t testing.TB, identity string) (api, *tap) {
	t.Helper()
	p := &tap{identity: identity, announced: sets.New[int64](), others: sets.New[int64]()}
	config := plane.Config()
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(request *http.Request) (*http.Response, error) { return p.roundTrip(next, request) })
	})
	return connect(t, config), p
}

type roundTripper func(*http.Request) (*http.Response, error)

func (r roundTripper) RoundTrip(request *http.Request) (*http.Response, error) { return r(request) }

var oneVolume = regexp.MustCompile(`/persistentvolumes/[^/]+$`)

func (p *tap) roundTrip(next http.RoundTripper, request *http.Request) (*http.Response, error) {
	watches := request.URL.Query().Get("watch") != ""
	if !watches {
		p.pause()
		defer p.pause()
	}
	announces := false
	if request.Method == http.MethodPut && oneVolume.MatchString(request.URL.Path) && request.GetBody != nil {
		if body, err := request.GetBody(); err == nil {
			sent, _ := io.ReadAll(body)
			announces = p.isOurs(sent)
		}
	}
	answer, err := next.RoundTrip(request)
	if err != nil || watches {
		return answer, err
	}
	p.countAnswer(request, answer, announces)
	if !oneVolume.MatchString(request.URL.Path) || answer.StatusCode != http.StatusOK {
		return answer, nil
	}
	body, err := io.ReadAll(answer.Body)
	_ = answer.Body.Close()
	answer.Body = io.NopCloser(bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	if volume := decoded(body); volume != nil {
		p.see(volume)
	}
	return answer, nil
}

func (p *tap) countAnswer(request *http.Request, answer *http.Response, announces bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if request.Method != http.MethodGet {
		p.writes++
	}
	if answer.StatusCode == http.StatusConflict {
		p.conflicts++
		if announces {
			p.outrun++
		}
	}
}

// isOurs reports whether what is sent is a volume with an announcement that is ours and new.
func (p *tap) isOurs(sent []byte) bool {
	volume := decoded(sent)
	if volume == nil {
		return false
	}
	announcement, announced := reclaim.AnnouncementOf(volume)
	p.mu.Lock()
	defer p.mu.Unlock()
	return announced && announcement.By == p.identity && !p.announced.Has(announcement.Token)
}

func decoded(body []byte) *corev1.PersistentVolume {
	object, _, err := scheme.Codecs.UniversalDeserializer().Decode(body, nil, nil)
	if err != nil {
		return nil
	}
	volume, _ := object.(*corev1.PersistentVolume)
	return volume
}

// see notes whose announcement the Runner was shown.
func (p *tap) see(volume *corev1.PersistentVolume) {
	announcement, announced := reclaim.AnnouncementOf(volume)
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case !announced:
	case announcement.By == p.identity:
		p.announced.Insert(announcement.Token)
	default:
		p.others.Insert(announcement.Token)
	}
}

func (p *tap) pause() {
	if rand.IntN(30) != 0 {
		return
	}
	p.mu.Lock()
	p.pauses++
	p.mu.Unlock()
	after(rand.N(300 * time.Millisecond))
}

func (p *tap) String() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return fmt.Sprintf("%s: %d writes, %d conflicts, %d pauses; %d announcements of its own, %d more that came second; %d of the other seen",
		p.identity, p.writes, p.conflicts, p.pauses, len(p.announced), p.outrun, len(p.others))
}
