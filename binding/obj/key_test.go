package obj_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/pvbind/pvbind/binding/bindingtest"
	"github.com/pvbind/pvbind/binding/obj"
)

// X9: a key has no more of a name than tells that it is no object's.
func TestX9NamesThatNoObjectHas(t *testing.T) {
	longest := strings.Repeat("n", 253)
	claim := bindingtest.Claim("shop", "orders", "5Gi")
	for name, is := range map[string]string{"": "", "data": "data", longest: longest, longest + "n": longest + "…", longest + longest: longest + "…", longest + "…": longest + "…"} {
		assert.Equal(t, is, obj.Name(name))
		claim.Spec.VolumeName = name
		nobodys := is != name || strings.HasSuffix(name, "…")
		for _, key := range []obj.Key{obj.VolumeKey(name), obj.ClaimKey("shop", name), obj.ClaimKey(name, "orders"), obj.NamedVolume(claim)} {
			assert.Equal(t, nobodys, key.IsNobodys(), name)
			assert.LessOrEqual(t, len(key.Namespace)+len(key.Name), 262)
		}
	}
}
