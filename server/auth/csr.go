package auth

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/rsa"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/util/validation"

	"bramble.dev/bramble/server/api"
)

// maxNodeName is what a label's value holds (kubernetes.io/hostname) and a
// certificate's common name with "system:node:" before it.
const maxNodeName = 52

// nodeRequest is a checked certificate request of a node.
type nodeRequest struct {
	name   string
	public crypto.PublicKey
	key    string // hash of public
}

// parseNodeRequest checks a certificate request (PEM, PKCS #10): signed by its
// own key, a key that is strong enough, and the subject of a node.
func parseNodeRequest(text string) (nodeRequest, error) {
	csr, err := parseRequest(text)
	if err != nil {
		return nodeRequest{}, err
	}
	user := api.User{Name: csr.Subject.CommonName, Groups: csr.Subject.Organization}
	name, ok := user.Node()
	if !ok || len(user.Groups) != 1 {
		return nodeRequest{}, fmt.Errorf("csr: the subject must be CN=%sNAME, O=%s", api.NodeUserPrefix, api.GroupNodes)
	}
	return nodeRequest{name: name, public: csr.PublicKey, key: hashKey(csr.RawSubjectPublicKeyInfo)}, nil
}

func checkKey(public crypto.PublicKey) error {
	switch k := public.(type) {
	case *ecdsa.PublicKey:
		if k.Curve.Params().BitSize < 256 {
			return errors.New("the key's curve must have 256 bits or more")
		}
	case ed25519.PublicKey:
	case *rsa.PublicKey:
		if bits := k.N.BitLen(); bits < 2048 || bits > 8192 {
			return fmt.Errorf("the RSA key must have 2048 to 8192 bits, not %d", bits)
		}
	default:
		return errors.New("the key must be ECDSA, Ed25519 or RSA")
	}
	return nil
}

// checkNodeName says what is wrong with a node's name (RFC 1123 subdomain).
func checkNodeName(name string) error {
	if len(name) > maxNodeName {
		return fmt.Errorf("nodeName: %q is longer than %d characters", name, maxNodeName)
	}
	if problems := validation.IsDNS1123Subdomain(name); len(problems) > 0 {
		return fmt.Errorf("nodeName: %q: %s", name, problems[0])
	}
	return nil
}
