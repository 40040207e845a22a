package dump

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// X9: a quantity that would take minutes to read is a problem that names its field. In any other text it is text.
func TestX9LongExponents(t *testing.T) {
	const claim = "apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: data, namespace: shop, annotations: {size: \"1e-90000000\"}}\n" +
		"spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: SIZE}}}\n"
	for size, problem := range map[string]string{
		`"1e-100000000"`: "the exponent of the quantity is too long",
		`"5E-10000000"`:  "the exponent of the quantity is too long",
		`"1e1000000000"`: "", `"5e-3"`: "", "5Gi": "",
	} {
		claim := strings.ReplaceAll(claim, "SIZE", size)
		escaped := strings.Replace(inList(t, claim), "e-1", `\u0065-1`, 1)
		for _, text := range []string{claim, inList(t, claim), escaped} {
			began := time.Now()
			_, problems := reading(text)
			assert.Less(t, time.Since(began), 5*time.Second, text)
			if problem == "" {
				assert.Empty(t, problems, text)
				continue
			}
			require.Len(t, problems, 1, text)
			assert.Contains(t, problems[0], "pvc/shop/data: spec.resources.requests.storage: "+problem)
		}
	}
}
