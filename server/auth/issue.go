package auth

import (
	"crypto"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"net"
	"time"

	"bramble.dev/bramble/server/api"
)

// nodeLife is how long a node's certificate is valid. A node renews it long
// before, but may do so after as well.
const nodeLife = 365 * 24 * time.Hour

// adminLife is how long an administrator's certificate is valid.
const adminLife = 10 * 365 * 24 * time.Hour

// ServerCertificate returns a new certificate for the API port: for
// api.ServerName, which is what our clients verify, for localhost, and for
// names (host names and addresses). It lives as long as the authority, because
// a client's clock may be anywhere, and its key lives in memory only: each
// start makes another.
func (a *Authority) ServerCertificate(names []string) (tls.Certificate, error) {
	key, err := newKey()
	if err != nil {
		return tls.Certificate{}, err
	}
	template := &x509.Certificate{
		Subject:     pkix.Name{CommonName: api.ServerName},
		NotAfter:    a.cert.NotAfter,
		DNSNames:    []string{api.ServerName, "localhost"},
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1), net.IPv6loopback},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	for _, name := range names {
		if ip := net.ParseIP(name); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
		} else if name != "" {
			template.DNSNames = append(template.DNSNames, name)
		}
	}
	leaf, err := a.sign(template, key.Public())
	if err != nil {
		return tls.Certificate{}, err
	}
	// The authority goes along: one who joins knows it only by its hash.
	return tls.Certificate{Certificate: [][]byte{leaf.Raw, a.cert.Raw}, PrivateKey: key, Leaf: leaf}, nil
}

// ClientCertificate signs a certificate by which its owner is user until then.
func (a *Authority) ClientCertificate(user api.User, public crypto.PublicKey, until time.Time) (*x509.Certificate, error) {
	return a.sign(&x509.Certificate{
		Subject:     pkix.Name{CommonName: user.Name, Organization: user.Groups},
		NotAfter:    until,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}, public)
}

// sign completes and signs a leaf. Like the authority it is valid from 1970: a
// clock that is behind must not refuse what exists.
func (a *Authority) sign(template *x509.Certificate, public crypto.PublicKey) (*x509.Certificate, error) {
	template.SerialNumber = newSerial()
	template.NotBefore = a.cert.NotBefore
	if template.NotAfter.After(a.cert.NotAfter) {
		template.NotAfter = a.cert.NotAfter
	}
	template.BasicConstraintsValid = true
	template.KeyUsage = x509.KeyUsageDigitalSignature
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, public, a.key)
	if err != nil {
		return nil, fmt.Errorf("cannot sign the certificate of %s: %w", template.Subject.CommonName, err)
	}
	return x509.ParseCertificate(der)
}
