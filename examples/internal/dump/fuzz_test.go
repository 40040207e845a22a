package dump

import (
	"bytes"
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// FuzzRead reads anything: it must not panic, and what it refuses it must name in one line each.
func FuzzRead(f *testing.F) {
	dump, err := os.ReadFile("../../simulate/testdata/dump.yaml")
	require.NoError(f, err)
	for _, seed := range []string{goodVolume, goodClaim, string(dump), "---\n...\n%YAML 1.2\n--- {a: b}\n", `{"kind":"List","items":[{}]}`, "\uFEFF{}", "\xff\xfea\x00"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		in, err := Read([]string{"-"}, bytes.NewReader(data), nil)
		if err != nil {
			for _, line := range Lines(err) {
				assert.Regexp(t, `^-: document [1-9]\d*`, line)
			}
		}
		for _, e := range in.Entries {
			assert.NotEmpty(t, e.Object.GetName())
		}
	})
}
