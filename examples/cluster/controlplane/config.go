package controlplane

import (
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// URL is where the API server listens.
func (p *Plane) URL() string { return "https://" + loopback + ":" + p.port }

// Config is that of a client that may do anything, as fast as it can.
func (p *Plane) Config() *rest.Config { return p.ConfigFor(adminToken) }

// ConfigFor is that of a client with the token, such as one that was asked for a service account.
func (p *Plane) ConfigFor(token string) *rest.Config {
	return &rest.Config{
		Host:            p.URL(),
		BearerToken:     token,
		TLSClientConfig: rest.TLSClientConfig{CAFile: p.path(certificateFile)},
		QPS:             -1,
		WarningHandler:  rest.NoWarnings{},
	}
}

// Kubeconfig writes a kubeconfig with the token under that name, and returns its path.
func (p *Plane) Kubeconfig(name, token string) (string, error) {
	path := p.path(name + ".kubeconfig")
	config := clientcmdapi.NewConfig()
	config.Clusters["test"] = &clientcmdapi.Cluster{Server: p.URL(), CertificateAuthority: p.path(certificateFile)}
	config.AuthInfos["test"] = &clientcmdapi.AuthInfo{Token: token}
	config.Contexts["test"] = &clientcmdapi.Context{Cluster: "test", AuthInfo: "test"}
	config.CurrentContext = "test"
	return path, clientcmd.WriteToFile(*config, path)
}
