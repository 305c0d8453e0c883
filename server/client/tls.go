package client

import (
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"time"

	"bramble.dev/bramble/server/api"
)

// TLSConfig returns what verifies the server by the cluster's CA (PEM) and the
// fixed name api.ServerName, whatever address is dialled, and shows certificate
// if that is not empty. A clock that is wrong cannot break it: the time taken for
// now is brought into the CA's validity. now is nil for time.Now; give one that
// knows a floor of trusted time where there is one.
func TLSConfig(ca []byte, certificate tls.Certificate, now func() time.Time) (*tls.Config, error) {
	root, err := parseCertificate(ca)
	if err != nil {
		return nil, fmt.Errorf("cannot read the cluster's CA: %w", err)
	}
	config := &tls.Config{
		MinVersion: tls.VersionTLS13,
		ServerName: api.ServerName,
		RootCAs:    x509.NewCertPool(),
		Time:       clamped(root, now),
	}
	config.RootCAs.AddCert(root)
	if len(certificate.Certificate) > 0 {
		config.Certificates = []tls.Certificate{certificate}
	}
	return config, nil
}

// pinnedTLS trusts the CA, sent along by the server, whose public key has the
// SHA-256 hash given in hex, and stores it in *found.
func pinnedTLS(hash string, now func() time.Time, found **x509.Certificate) *tls.Config {
	return &tls.Config{
		MinVersion:         tls.VersionTLS13,
		ServerName:         api.ServerName,
		InsecureSkipVerify: true, // VerifyConnection does it all
		VerifyConnection: func(state tls.ConnectionState) error {
			for _, ca := range state.PeerCertificates {
				if KeyHash(ca) != hash {
					continue
				}
				if err := verifyServer(state.PeerCertificates[0], ca, clamped(ca, now)()); err != nil {
					return err
				}
				*found = ca
				return nil
			}
			return ErrOtherCA
		},
	}
}

// ErrOtherCA is that the server at the address is not of the cluster that the
// token was made for.
var ErrOtherCA = errors.New("this server belongs to another cluster than the token: its CA has another key")

func verifyServer(leaf, ca *x509.Certificate, now time.Time) error {
	roots := x509.NewCertPool()
	roots.AddCert(ca)
	_, err := leaf.Verify(x509.VerifyOptions{
		Roots: roots, DNSName: api.ServerName, CurrentTime: now,
		KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	})
	return err
}

// KeyHash is the SHA-256 of a certificate's SubjectPublicKeyInfo, in hex.
func KeyHash(c *x509.Certificate) string {
	sum := sha256.Sum256(c.RawSubjectPublicKeyInfo)
	return hex.EncodeToString(sum[:])
}

// clamped returns a clock that never leaves the validity of ca.
func clamped(ca *x509.Certificate, now func() time.Time) func() time.Time {
	if now == nil {
		now = time.Now
	}
	return func() time.Time {
		t := now()
		if t.Before(ca.NotBefore) {
			return ca.NotBefore
		}
		if t.After(ca.NotAfter) {
			return ca.NotAfter
		}
		return t
	}
}

// parseCertificate reads the first certificate of a PEM text.
func parseCertificate(text []byte) (*x509.Certificate, error) {
	block, _ := pem.Decode(text)
	if block == nil || block.Type != "CERTIFICATE" {
		return nil, errors.New("no certificate in PEM")
	}
	return x509.ParseCertificate(block.Bytes)
}
