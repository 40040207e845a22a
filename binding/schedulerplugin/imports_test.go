package schedulerplugin_test

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// k8s.io/kubernetes is no library: whoever requires it needs a replace line for each of its parts.
func TestImportsNoKubernetes(t *testing.T) {
	out, err := exec.Command("go", "list", "-deps", ".").Output()
	require.NoError(t, err)
	deps := strings.Fields(string(out))
	assert.Contains(t, deps, "k8s.io/kube-scheduler/framework")
	for _, dep := range deps {
		assert.False(t, strings.HasPrefix(dep, "k8s.io/kubernetes/"), dep)
	}
}
