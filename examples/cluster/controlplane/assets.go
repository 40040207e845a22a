package controlplane

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
)

// Assets is the directory that the binaries are in. If there is none yet, they are built.
func Assets() (string, error) {
	_, file, _, ok := runtime.Caller(0)
	if !ok || !filepath.IsAbs(file) {
		return "", fmt.Errorf("the script that builds the binaries is not found beside %q: set KUBEBUILDER_ASSETS", file)
	}
	build := exec.Command(filepath.Join(filepath.Dir(file), "build"))
	build.Stderr = os.Stderr
	out, err := build.Output()
	if err != nil {
		return "", fmt.Errorf("building the control plane: %w", err)
	}
	return strings.TrimSpace(string(out)), nil
}
