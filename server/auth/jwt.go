package auth

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"math/big"
	"os"
	"path/filepath"
	"strings"
)

const (
	tokenKeyFile   = "sa.key"
	maxTokenBytes  = 8 << 10
	signatureBytes = 32 // of each half (P-256)
)

// errNotOurs is that a bearer token was not signed by this cluster's key.
var errNotOurs = errors.New("the token was not issued by this cluster")

// TokenKey signs and verifies JSON Web Tokens (RFC 7519) by ES256 (RFC 7518,
// 3.4). It knows one key and one algorithm: what a token's header says never
// decides how it is verified. It is safe for concurrent use.
type TokenKey struct {
	key *ecdsa.PrivateKey
	id  string // RFC 7638 has longer ones: this names our one key
}

// OpenTokenKey reads the key in dir, or makes one there that only this user can
// read.
func OpenTokenKey(dir string) (*TokenKey, error) {
	path := filepath.Join(dir, tokenKeyFile)
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		key, err := newKey()
		if err != nil {
			return nil, err
		}
		if text, err = encodeKey(key); err != nil {
			return nil, err
		}
		if err := writePrivate(path, text); err != nil {
			return nil, err
		}
		return newTokenKey(key)
	}
	if err != nil {
		return nil, fmt.Errorf("cannot read the key of service accounts' tokens: %w", err)
	}
	const wayOut = "restore %s from a backup, or remove it: then a new one is made, and all tokens of service accounts end"
	block, _ := pem.Decode(text)
	if block == nil {
		return nil, fmt.Errorf("cannot use the key of service accounts' tokens ("+wayOut+"): no PEM", path)
	}
	parsed, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	key, ok := parsed.(*ecdsa.PrivateKey)
	if err != nil || !ok || key.Curve.Params().BitSize != 8*signatureBytes {
		return nil, fmt.Errorf("cannot use the key of service accounts' tokens ("+wayOut+"): no P-256 key: %v", path, err)
	}
	return newTokenKey(key)
}

func newTokenKey(key *ecdsa.PrivateKey) (*TokenKey, error) {
	spki, err := x509.MarshalPKIXPublicKey(key.Public())
	if err != nil {
		return nil, fmt.Errorf("cannot encode a public key: %w", err)
	}
	return &TokenKey{key: key, id: hashKey(spki)[:16]}, nil
}

type tokenHeader struct {
	Algorithm string `json:"alg"`
	KeyID     string `json:"kid"`
	Type      string `json:"typ,omitempty"`
}

// sign returns claims as a token.
func (k *TokenKey) sign(claims any) (string, error) {
	header, err := json.Marshal(tokenHeader{"ES256", k.id, "JWT"})
	if err != nil {
		return "", fmt.Errorf("cannot encode a token: %w", err)
	}
	body, err := json.Marshal(claims)
	if err != nil {
		return "", fmt.Errorf("cannot encode a token: %w", err)
	}
	signed := encode64(header) + "." + encode64(body)
	digest := sha256.Sum256([]byte(signed))
	r, s, err := ecdsa.Sign(rand.Reader, k.key, digest[:])
	if err != nil {
		return "", fmt.Errorf("cannot sign a token: %w", err)
	}
	var signature [2 * signatureBytes]byte
	r.FillBytes(signature[:signatureBytes])
	s.FillBytes(signature[signatureBytes:])
	return signed + "." + encode64(signature[:]), nil
}

// verify decodes the claims of a token that this key signed, and fails with
// errNotOurs for any other text.
func (k *TokenKey) verify(token string, claims any) error {
	if len(token) > maxTokenBytes {
		return errNotOurs
	}
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return errNotOurs
	}
	var raw [3][]byte
	for i, part := range parts {
		var err error
		if raw[i], err = base64.RawURLEncoding.Strict().DecodeString(part); err != nil {
			return errNotOurs
		}
	}
	var header tokenHeader
	if json.Unmarshal(raw[0], &header) != nil || header.Algorithm != "ES256" || header.KeyID != k.id || len(raw[2]) != 2*signatureBytes {
		return errNotOurs
	}
	digest := sha256.Sum256([]byte(parts[0] + "." + parts[1]))
	r, s := new(big.Int).SetBytes(raw[2][:signatureBytes]), new(big.Int).SetBytes(raw[2][signatureBytes:])
	if !ecdsa.Verify(&k.key.PublicKey, digest[:], r, s) {
		return errNotOurs
	}
	d := json.NewDecoder(bytes.NewReader(raw[1]))
	if err := d.Decode(claims); err != nil {
		return errNotOurs
	}
	return nil
}

func encode64(b []byte) string { return base64.RawURLEncoding.EncodeToString(b) }
