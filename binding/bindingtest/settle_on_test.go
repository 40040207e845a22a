package bindingtest_test

import (
	"testing"

	"github.com/pvbind/pvbind/binding/internal/settling"
)

func TestClaimsJustBind(t *testing.T) {
	settling.Run(t, func(*testing.T) settling.Cluster { return settling.InMemory() })
}
