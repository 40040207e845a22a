package clientgo

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"k8s.io/client-go/informers"
)

// asleep are informers that do not end in time.
type asleep struct {
	informers.SharedInformerFactory
	wake chan struct{}
}

func (a asleep) Shutdown() { <-a.wake }

func TestShutdownDoesNotWaitForInformersThatSleep(t *testing.T) {
	informers := asleep{wake: make(chan struct{})}
	defer close(informers.wake)
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		Shutdown(informers)
	}()
	select {
	case <-stopped:
	case <-time.After(30 * time.Second):
		assert.Fail(t, "it waits for them")
	}
}
