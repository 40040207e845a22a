package controlplane

import (
	"fmt"
	"os"
	"time"
)

const etcdData = "etcd"

// Snapshot copies the data of etcd into a directory of the plane's, which it returns. Etcd is killed for it,
// which loses nothing, and started again; the API server waits for it.
func (p *Plane) Snapshot() (dir string, err error) {
	if dir, err = os.MkdirTemp(p.dir, "snapshot-"); err != nil {
		return "", err
	}
	p.etcd.Kill()
	if err := os.CopyFS(dir, os.DirFS(p.path(etcdData))); err != nil {
		return "", fmt.Errorf("copying the data of etcd: %w", err)
	}
	return dir, p.StartEtcd()
}

// Restore puts the data of a snapshot in the place of what etcd has, and returns when that was: what is served after
// it is the past. All of it is older, resourceVersions too, as after "etcdutl snapshot restore" without
// --bump-revision. The API server is killed before and started after, for its caches are of the future.
func (p *Plane) Restore(dir string) (at time.Time, err error) {
	p.server.Kill()
	p.etcd.Kill()
	if err := os.RemoveAll(p.path(etcdData)); err != nil {
		return at, err
	}
	if err := os.CopyFS(p.path(etcdData), os.DirFS(dir)); err != nil {
		return at, fmt.Errorf("copying the snapshot: %w", err)
	}
	if err := os.Chmod(p.path(etcdData), 0o700); err != nil { // etcd warns of any other
		return at, err
	}
	at = time.Now()
	if err := p.StartEtcd(); err != nil {
		return at, err
	}
	return at, p.StartServer()
}
