package binding_test

import (
	"os"
	"runtime/debug"
	"testing"
)

// TestMain has garbage collected a quarter as often as usual: the tests that take long make millions of small worlds,
// which are garbage soon, and few of them live at a time.
func TestMain(m *testing.M) {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(400)
	}
	os.Exit(m.Run())
}
