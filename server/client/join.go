package client

import (
	"bytes"
	"context"
	"crypto"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"bramble.dev/bramble/server/api"
)

const (
	defaultPort  = "6443"
	joinTimeout  = 30 * time.Second
	maxJoinReply = 256 << 10
)

// Join asks the server at address ("host", "host:port" or an https URL) for the
// client certificate of nodeName's key. It trusts only the CA whose hash is in
// the token, at whatever the clock says. The server's refusals are StatusErrors
// that say what to do.
func Join(ctx context.Context, address, token, nodeName string, key crypto.Signer) (api.JoinResponse, error) {
	caHash, bearer, err := splitToken(token)
	if err != nil {
		return api.JoinResponse{}, err
	}
	csr, err := request(nodeName, key)
	if err != nil {
		return api.JoinResponse{}, err
	}
	var ca *x509.Certificate
	config := pinnedTLS(caHash, nil, &ca)
	var out api.JoinResponse
	err = post(ctx, config, address, api.JoinPath, bearer, api.JoinRequest{NodeName: nodeName, CSR: csr}, &out)
	if err != nil {
		return api.JoinResponse{}, fmt.Errorf("cannot join %s: %w", address, err)
	}
	got, err := parseCertificate([]byte(out.CA))
	if err != nil || !got.Equal(ca) {
		return api.JoinResponse{}, fmt.Errorf("cannot join %s: the CA in its answer is not the one that it uses", address)
	}
	return out, checkReply(out, key)
}

// Renew asks for a new client certificate for the same key, by the present one,
// which may have expired. now is as for TLSConfig.
func Renew(ctx context.Context, address string, ca []byte, certificate tls.Certificate, now func() time.Time) (api.JoinResponse, error) {
	key, ok := certificate.PrivateKey.(crypto.Signer)
	if !ok || len(certificate.Certificate) == 0 {
		return api.JoinResponse{}, errors.New("cannot renew the certificate: there is no certificate with a key")
	}
	leaf, err := x509.ParseCertificate(certificate.Certificate[0])
	if err != nil {
		return api.JoinResponse{}, fmt.Errorf("cannot renew the certificate: %w", err)
	}
	csr, err := request(strings.TrimPrefix(leaf.Subject.CommonName, api.NodeUserPrefix), key)
	if err != nil {
		return api.JoinResponse{}, err
	}
	config, err := TLSConfig(ca, certificate, now)
	if err != nil {
		return api.JoinResponse{}, err
	}
	var out api.JoinResponse
	if err := post(ctx, config, address, api.RenewPath, "", api.RenewRequest{CSR: csr}, &out); err != nil {
		return api.JoinResponse{}, fmt.Errorf("cannot renew the certificate at %s: %w", address, err)
	}
	return out, checkReply(out, key)
}

// splitToken takes "bramble1.CAHASH.ID.SECRET" apart into the hash and what goes
// on the wire, "ID.SECRET".
func splitToken(token string) (caHash, bearer string, err error) {
	parts := strings.Split(strings.TrimSpace(token), ".")
	if len(parts) != 4 || parts[0] != "bramble1" || len(parts[1]) != 64 || parts[2] == "" || parts[3] == "" {
		return "", "", errors.New("this is no join token: it must look like bramble1.HASH.ID.SECRET; edgectl token create makes one")
	}
	return parts[1], parts[2] + "." + parts[3], nil
}

// request makes the certificate request of a node.
func request(nodeName string, key crypto.Signer) (string, error) {
	der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{
		Subject: pkix.Name{CommonName: api.NodeUserPrefix + nodeName, Organization: []string{api.GroupNodes}},
	}, key)
	if err != nil {
		return "", fmt.Errorf("cannot sign the certificate request of %s: %w", nodeName, err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der})), nil
}

// checkReply makes sure that the certificate is for our key.
func checkReply(out api.JoinResponse, key crypto.Signer) error {
	cert, err := parseCertificate([]byte(out.Certificate))
	if err != nil {
		return fmt.Errorf("cannot read the certificate in the server's answer: %w", err)
	}
	if public, ok := cert.PublicKey.(interface{ Equal(crypto.PublicKey) bool }); !ok || !public.Equal(key.Public()) {
		return errors.New("the certificate in the server's answer is for another key")
	}
	return nil
}

func post(ctx context.Context, config *tls.Config, address, path, bearer string, in, out any) error {
	ctx, cancel := context.WithTimeout(ctx, joinTimeout)
	defer cancel()
	body, err := json.Marshal(in)
	if err != nil {
		return fmt.Errorf("cannot encode the request: %w", err)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "https://"+HostPort(address)+path, bytes.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	if bearer != "" {
		req.Header.Set("Authorization", "Bearer "+bearer)
	}
	transport := &http.Transport{TLSClientConfig: config, DisableKeepAlives: true}
	defer transport.CloseIdleConnections()
	resp, err := (&http.Client{Transport: transport}).Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(io.LimitReader(resp.Body, maxJoinReply))
	if err != nil {
		return fmt.Errorf("cannot read the answer: %w", err)
	}
	if resp.StatusCode/100 != 2 {
		return statusError(resp, text)
	}
	if err := json.Unmarshal(text, out); err != nil {
		return fmt.Errorf("cannot decode the answer: %w", err)
	}
	return nil
}

// statusError is the server's Status, or its status line where it sent none.
func statusError(resp *http.Response, text []byte) error {
	var status metav1.Status
	if json.Unmarshal(text, &status) != nil || status.Kind != "Status" {
		return fmt.Errorf("the server answered %s", resp.Status)
	}
	return &apierrors.StatusError{ErrStatus: status}
}

// HostPort is the "host:port" of an address as people give it: with or without
// a port (then 6443) and with or without https:// before it.
func HostPort(address string) string {
	address = strings.TrimSuffix(strings.TrimPrefix(strings.TrimSpace(address), "https://"), "/")
	if _, _, err := net.SplitHostPort(address); err == nil {
		return address
	}
	return net.JoinHostPort(strings.Trim(address, "[]"), defaultPort)
}
