package controlplane

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"net"
	"os"

	"k8s.io/client-go/util/cert"
)

// The files that the API server proves with who it is, and tells by who others are.
const (
	certificateFile = "server.crt"
	keyFile         = "server.key"
	signingKeyFile  = "service-accounts.key"
	tokenFile       = "tokens.csv"
)

// adminToken is that of somebody who may do anything.
const adminToken = "admin"

// writeTokens says who bears which token: token, user, user ID, groups.
func (p *Plane) writeTokens() error {
	return p.write(tokenFile, []byte(adminToken+",admin,admin,system:masters\n"))
}

// writeCertificate makes the certificate that the API server serves with, and the authority for it.
func (p *Plane) writeCertificate() error {
	certificate, key, err := cert.GenerateSelfSignedCertKey(loopback, []net.IP{net.ParseIP(loopback)}, nil)
	if err != nil {
		return err
	}
	return errors.Join(p.write(certificateFile, certificate), p.write(keyFile, key))
}

// writeSigningKey makes the key that the tokens of service accounts are signed with.
func (p *Plane) writeSigningKey() error {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		return err
	}
	block := &pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)}
	return p.write(signingKeyFile, pem.EncodeToMemory(block))
}

func (p *Plane) write(name string, content []byte) error {
	return os.WriteFile(p.path(name), content, 0o600)
}
