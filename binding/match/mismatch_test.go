package match_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/pvbind/pvbind/binding/match"
)

func TestMismatchesInOneLine(t *testing.T) {
	long := strings.Repeat("x", 4000)
	mismatches := match.Mismatches{
		mismatch(match.TooSmall, "10Gi", "5Gi"),
		mismatch(match.VolumeMode, "a\nb", long),
	}
	assert.Equal(t, "TooSmall: requested 10Gi, actual 5Gi; VolumeMode: requested a b, actual "+long[:97]+"…", mismatches.String())
	assert.Equal(t, "TooSmall: requested 10Gi, actual 5Gi", mismatches[0].String())
	assert.Empty(t, match.Mismatches(nil).String())

	every := []match.Reason{match.Deleting, match.BoundToAnotherClaim, match.Malformed, match.TooSmall,
		match.AccessModes, match.VolumeMode, match.StorageClass, match.AttributesClass,
		match.Selector, match.NotAvailable, match.NodeAffinity, match.WaitForFirstConsumer}
	mismatches = nil
	for _, reason := range every {
		mismatches = append(mismatches, mismatch(reason, long, long))
	}
	line := mismatches.String()
	assert.LessOrEqual(t, len(line), 850, "N: bounded")
	for _, reason := range every {
		assert.Contains(t, line, string(reason)+": requested xxx")
	}
}
