package controlplane

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"path/filepath"
	"time"

	"k8s.io/client-go/rest"
)

// Plane is an API server and its etcd. Make one with Start.
type Plane struct {
	assets string
	dir    string

	etcdURL, peerURL string
	port             string
	etcd, server     *Process
}

// loopback is where all of it listens.
const loopback = "127.0.0.1"

// patience is how long a part may take to be ready, or to end when it is asked to.
const patience = 2 * time.Minute

// Start starts a control plane that keeps all it has in the directory, and waits until it is ready.
func Start(dir string) (*Plane, error) {
	assets, err := Assets()
	if err != nil {
		return nil, err
	}
	ports, err := freePorts(3)
	if err != nil {
		return nil, err
	}
	p := &Plane{
		assets:  assets,
		dir:     dir,
		etcdURL: "http://" + loopback + ":" + ports[0],
		peerURL: "http://" + loopback + ":" + ports[1],
		port:    ports[2],
	}
	if err := errors.Join(p.writeCertificate(), p.writeSigningKey(), p.writeTokens()); err != nil {
		return nil, err
	}
	if err := errors.Join(p.StartEtcd(), p.StartServer()); err != nil {
		p.Stop()
		return nil, err
	}
	return p, nil
}

// Stop ends the control plane. What the caller has started besides is the caller's to stop.
func (p *Plane) Stop() {
	for _, process := range []*Process{p.server, p.etcd} {
		if process != nil {
			process.Kill()
		}
	}
}

// Dir is the directory that it keeps all it has in.
func (p *Plane) Dir() string { return p.dir }

// Server is the process of the API server, Etcd that of etcd.
func (p *Plane) Server() *Process { return p.server }
func (p *Plane) Etcd() *Process   { return p.etcd }

// serve starts a server. It collects garbage a quarter as often as it would: on a machine with few processors, which
// it shares with what is tested, that is a good part of its work.
func (p *Plane) serve(name string, args ...string) (*Process, error) {
	return launch(p.dir, []string{"GOGC=400"}, name, p.binary(name), args...)
}

// StartEtcd starts etcd with the data it had before, and waits until it is ready.
func (p *Plane) StartEtcd() (err error) {
	p.etcd, err = p.serve("etcd",
		"--data-dir", p.path(etcdData),
		"--listen-client-urls", p.etcdURL,
		"--advertise-client-urls", p.etcdURL,
		"--listen-peer-urls", p.peerURL,
		"--initial-advertise-peer-urls", p.peerURL,
		"--initial-cluster", "default="+p.peerURL,
		"--unsafe-no-fsync",
		"--log-level", "error",
	)
	if err != nil {
		return err
	}
	return await(p.etcd, http.DefaultClient, p.etcdURL+"/health")
}

// StartServer starts the API server, at the address that it had before, and waits until it is ready.
func (p *Plane) StartServer() (err error) {
	p.server, err = p.serve("kube-apiserver",
		"--etcd-servers", p.etcdURL,
		"--bind-address", loopback,
		"--advertise-address", loopback,
		"--secure-port", p.port,
		"--tls-cert-file", p.path(certificateFile),
		"--tls-private-key-file", p.path(keyFile),
		"--token-auth-file", p.path(tokenFile),
		"--authorization-mode", "RBAC",
		"--service-account-issuer", "https://kubernetes.default.svc",
		"--service-account-key-file", p.path(signingKeyFile),
		"--service-account-signing-key-file", p.path(signingKeyFile),
		"--service-cluster-ip-range", "10.0.0.0/24",
		"--disable-admission-plugins", "ServiceAccount", // nobody here makes service accounts for pods
	)
	if err != nil {
		return err
	}
	client, err := rest.HTTPClientFor(p.Config())
	if err != nil {
		return err
	}
	defer client.CloseIdleConnections()
	if err := await(p.server, client, p.URL()+"/readyz"); err != nil {
		return err
	}
	return await(p.server, client, p.URL()+"/api/v1/namespaces/default") // what the server makes last
}

func (p *Plane) binary(name string) string { return filepath.Join(p.assets, name) }

func (p *Plane) path(name string) string { return filepath.Join(p.dir, name) }

// await waits until the address answers that all is well.
func await(process *Process, client *http.Client, url string) error {
	deadline, tick := time.After(patience), time.NewTicker(20*time.Millisecond)
	defer tick.Stop()
	last := errors.New("no answer yet")
	for {
		select {
		case <-process.Done():
			return process.ended()
		case <-deadline:
			return fmt.Errorf("%s is not ready after %s: %w; it printed:\n%s", process.name, patience, last, process.Tail(20))
		case <-tick.C:
			answer, err := client.Get(url)
			if err != nil {
				last = err
				continue
			}
			_ = answer.Body.Close()
			if answer.StatusCode == http.StatusOK {
				return nil
			}
			last = errors.New(answer.Status)
		}
	}
}

// freePorts finds ports that nobody listens on.
func freePorts(n int) ([]string, error) {
	ports := make([]string, n)
	for i := range ports {
		listener, err := net.Listen("tcp", loopback+":0")
		if err != nil {
			return nil, err
		}
		defer listener.Close() // only then is the next one another
		if _, ports[i], err = net.SplitHostPort(listener.Addr().String()); err != nil {
			return nil, err
		}
	}
	return ports, nil
}
