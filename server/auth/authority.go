package auth

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"math/big"
	"os"
	"path/filepath"
	"time"
)

// Names of the authority's files in its directory.
const (
	caCertFile = "ca.crt"
	caKeyFile  = "ca.key"
)

// caYears is how long past the build date the authority lives.
const caYears = 100

// Authority is the cluster's certificate authority.
type Authority struct {
	cert *x509.Certificate
	key  crypto.Signer
}

// OpenAuthority reads the authority in dir, or makes one there, with a mode that
// only this user can read. A new one is valid from 1970 until 100 years after
// buildDate, so that no clock on either side can be outside of that; the wall
// clock plays no part.
func OpenAuthority(dir string, buildDate time.Time) (*Authority, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("cannot make the directory of the CA: %w", err)
	}
	certPath, keyPath := filepath.Join(dir, caCertFile), filepath.Join(dir, caKeyFile)
	certText, certErr := os.ReadFile(certPath)
	keyText, keyErr := os.ReadFile(keyPath)
	switch {
	case errors.Is(certErr, fs.ErrNotExist) && errors.Is(keyErr, fs.ErrNotExist):
		return newAuthority(certPath, keyPath, buildDate)
	case certErr != nil || keyErr != nil:
		return nil, fmt.Errorf("cannot read the CA (restore both %s and %s from a backup; without both, "+
			"a new cluster identity is made and all nodes must join again): %w", certPath, keyPath, errors.Join(certErr, keyErr))
	}
	a, err := parseAuthority(certText, keyText)
	if err != nil {
		return nil, fmt.Errorf("cannot use the CA in %s (restore both files from a backup): %w", dir, err)
	}
	return a, nil
}

func newAuthority(certPath, keyPath string, buildDate time.Time) (*Authority, error) {
	key, err := newKey()
	if err != nil {
		return nil, err
	}
	template := &x509.Certificate{
		SerialNumber:          newSerial(),
		Subject:               pkix.Name{CommonName: "bramble-ca"},
		NotBefore:             time.Unix(0, 0).UTC(),
		NotAfter:              buildDate.UTC().AddDate(caYears, 0, 0),
		IsCA:                  true,
		BasicConstraintsValid: true,
		MaxPathLenZero:        true,
		KeyUsage:              x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature | x509.KeyUsageCRLSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, fmt.Errorf("cannot sign the CA: %w", err)
	}
	keyText, err := encodeKey(key)
	if err != nil {
		return nil, err
	}
	// The key first: a certificate without its key would be a dead end.
	if err := writePrivate(keyPath, keyText); err != nil {
		return nil, err
	}
	certText := encodeCertificate(der)
	if err := writePrivate(certPath, certText); err != nil {
		return nil, errors.Join(err, os.Remove(keyPath))
	}
	return parseAuthority(certText, keyText)
}

func parseAuthority(certText, keyText []byte) (*Authority, error) {
	cert, err := parseCertificate(certText)
	if err != nil {
		return nil, err
	}
	block, _ := pem.Decode(keyText)
	if block == nil {
		return nil, errors.New("its key is not in PEM")
	}
	parsed, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		return nil, fmt.Errorf("its key: %w", err)
	}
	key, ok := parsed.(crypto.Signer)
	if !ok {
		return nil, errors.New("its key cannot sign")
	}
	if public, ok := cert.PublicKey.(*ecdsa.PublicKey); !ok || !public.Equal(key.Public()) {
		return nil, errors.New("certificate and key do not belong together")
	}
	if !cert.IsCA {
		return nil, errors.New("the certificate is not that of a CA")
	}
	return &Authority{cert: cert, key: key}, nil
}

// PEM is the authority's certificate.
func (a *Authority) PEM() []byte { return encodeCertificate(a.cert.Raw) }

// Hash is the SHA-256 of the authority's SubjectPublicKeyInfo in hex: what a
// join token carries.
func (a *Authority) Hash() string { return hashKey(a.cert.RawSubjectPublicKeyInfo) }

func hashKey(spki []byte) string {
	sum := sha256.Sum256(spki)
	return hex.EncodeToString(sum[:])
}

func newKey() (*ecdsa.PrivateKey, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("cannot make a key: %w", err)
	}
	return key, nil
}

// newSerial is a random positive number of at most 127 bits (RFC 5280, 4.1.2.2).
func newSerial() *big.Int {
	var raw [16]byte
	_, _ = rand.Read(raw[:]) // never fails (crypto/rand)
	raw[0] &= 0x7f
	return new(big.Int).SetBytes(raw[:])
}

func encodeCertificate(der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}

func encodeKey(key *ecdsa.PrivateKey) ([]byte, error) {
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, fmt.Errorf("cannot encode a key: %w", err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), nil
}

func parseCertificate(text []byte) (*x509.Certificate, error) {
	block, _ := pem.Decode(text)
	if block == nil || block.Type != "CERTIFICATE" {
		return nil, errors.New("no certificate in PEM")
	}
	return x509.ParseCertificate(block.Bytes)
}

// writePrivate replaces path atomically by a file with mode 0600, and has it on
// disk when it returns.
func writePrivate(path string, content []byte) (err error) {
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+"-*") // mode 0600
	if err != nil {
		return fmt.Errorf("cannot write %s: %w", path, err)
	}
	defer func() {
		if err != nil {
			err = fmt.Errorf("cannot write %s: %w", path, errors.Join(err, os.Remove(f.Name())))
		}
	}()
	_, err = f.Write(content)
	err = errors.Join(err, f.Sync(), f.Close())
	if err != nil {
		return err
	}
	if err := os.Rename(f.Name(), path); err != nil {
		return err
	}
	return syncDir(filepath.Dir(path))
}

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
