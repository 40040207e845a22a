package bindingtest

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pvbind/pvbind/binding/obj"
)

func TestWatchdogStopsSyncsWithoutEnd(t *testing.T) {
	dog := newWatchdog(NewServer())
	key := obj.VolumeKey("a")
	var err error
	for n := 0; err == nil; n++ {
		require.Less(t, n, 10_000)
		err = dog.check(key)
	}
	assert.ErrorContains(t, err, "pv/a was synced")
}
