package clientgo_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/pvbind/pvbind/binding/clientgo"
)

// All kinds show one restore within a minute. What one shows later is another restore, though it has not shown the last one.
func TestW8OneRestoreIsToldOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var told clientgo.Occurrence
		assert.True(t, told.Begins(""), "a live read of an object, which a proxy may have answered from a cache")
		assert.False(t, told.Begins("Pod"), "the same")
		time.Sleep(2 * time.Minute)
		assert.True(t, told.Begins("PersistentVolume"))
		assert.False(t, told.Begins("PersistentVolumeClaim"), "the same")
		assert.True(t, told.Begins("PersistentVolume"), "each kind shows it once")
	})
}
