package state

import (
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// Facts is what a node knows of its cluster from joining it.
type Facts struct {
	NodeName    string   `json:"nodeName"`
	Servers     []string `json:"servers"` // host:port, tried in turn
	Epoch       string   `json:"epoch"`   // of the server's database: the one known
	PodCIDR     string   `json:"podCIDR"`
	ClusterCIDR string   `json:"clusterCIDR"`
	ServiceCIDR string   `json:"serviceCIDR"`
	// TrustedTime is the latest time that the server has vouched for, RFC 3339.
	TrustedTime string `json:"trustedTime,omitempty"`
	// CertificateIssued is the server's time at the certificate's issue, RFC
	// 3339. The certificate itself is valid from 1970.
	CertificateIssued string `json:"certificateIssued,omitempty"`
}

// ErrNotJoined means that the directory has no node's facts.
var ErrNotJoined = errors.New("this node has not joined a cluster")

// Identity is the node's key pair and its cluster's authority, in PEM.
type Identity struct{ Key, Certificate, CA []byte }

// Join keeps what joining brought. It replaces an earlier join.
func Join(dir string, facts Facts, identity Identity) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("cannot make the state directory: %w", err)
	}
	for name, data := range map[string][]byte{"key.pem": identity.Key, "cert.pem": identity.Certificate, "ca.pem": identity.CA} {
		if err := writeFile(filepath.Join(dir, name), data); err != nil {
			return err
		}
	}
	return writeFacts(dir, facts) // last: its presence means joined
}

// KeepKey keeps the node's key before it joins: should the answer be lost, the
// server knows the node again by it.
func KeepKey(dir string, key []byte) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("cannot make the state directory: %w", err)
	}
	return writeFile(filepath.Join(dir, "key.pem"), key)
}

// ReadKey returns the key of an earlier join, finished or not; ErrNotJoined when
// there is none.
func ReadKey(dir string) ([]byte, error) {
	key, err := os.ReadFile(filepath.Join(dir, "key.pem"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, ErrNotJoined
	}
	return key, err
}

// ReadIdentity returns the node's identity; ErrNotJoined when there is none.
func ReadIdentity(dir string) (Identity, error) {
	var identity Identity
	for name, into := range map[string]*[]byte{"key.pem": &identity.Key, "cert.pem": &identity.Certificate, "ca.pem": &identity.CA} {
		data, err := os.ReadFile(filepath.Join(dir, name))
		if errors.Is(err, fs.ErrNotExist) {
			return Identity{}, ErrNotJoined
		}
		if err != nil {
			return Identity{}, fmt.Errorf("cannot read the node's identity: %w", err)
		}
		*into = data
	}
	return identity, nil
}

// ReadFacts returns the node's facts and changes nothing; ErrNotJoined when there are
// none.
func ReadFacts(dir string) (Facts, error) {
	var facts Facts
	err := readJSON(filepath.Join(dir, factsFile), &facts)
	if errors.Is(err, fs.ErrNotExist) {
		return Facts{}, ErrNotJoined
	}
	if err != nil && readJSON(filepath.Join(dir, factsCopy), &facts) == nil {
		err = nil
	}
	return facts, err
}

// WriteCertificate replaces the node's certificate by a renewed one, which is
// of the same key: a power cut between two files cannot part them.
func WriteCertificate(dir string, certificate []byte) error {
	return writeFile(filepath.Join(dir, "cert.pem"), certificate)
}

// Expires returns the end of the node's certificate.
func (i Identity) Expires() (time.Time, error) {
	block, _ := pem.Decode(i.Certificate)
	if block == nil {
		return time.Time{}, errors.New("the node's certificate is no PEM")
	}
	cert, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return time.Time{}, fmt.Errorf("cannot read the node's certificate: %w", err)
	}
	return cert.NotAfter, nil
}
