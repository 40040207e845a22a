package binding_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/pvbind/pvbind/binding"
)

func TestMismatchesInOneLine(t *testing.T) {
	long := strings.Repeat("x", 4000)
	mismatches := binding.Mismatches{
		mismatch(binding.TooSmall, "10Gi", "5Gi"),
		mismatch(binding.VolumeMode, "a\nb", long),
	}
	assert.Equal(t, "TooSmall: asks 10Gi, has 5Gi; VolumeMode: asks a b, has "+long[:97]+"…", mismatches.String())
	assert.Equal(t, "TooSmall: asks 10Gi, has 5Gi", mismatches[0].String())
	assert.Empty(t, binding.Mismatches(nil).String())

	every := []binding.Reason{binding.Deleting, binding.Claimed, binding.Malformed, binding.TooSmall,
		binding.AccessModes, binding.VolumeMode, binding.StorageClass, binding.AttributesClass,
		binding.Selector, binding.NotAvailable, binding.NodeAffinity, binding.Delayed}
	mismatches = nil
	for _, reason := range every {
		mismatches = append(mismatches, mismatch(reason, long, long))
	}
	line := mismatches.String()
	assert.LessOrEqual(t, len(line), 850, "N: bounded")
	for _, reason := range every {
		assert.Contains(t, line, string(reason)+": asks xxx")
	}
}
