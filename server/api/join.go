package api

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// JoinPath and RenewPath are where an agent gets its certificate. They take a
// POST of JSON; errors come as a metav1.Status.
const (
	JoinPath  = "/apis/edge.bramble.dev/v1alpha1/join"
	RenewPath = "/apis/edge.bramble.dev/v1alpha1/renew"
	// HeartbeatsPath is upgraded by a node to HeartbeatsProtocol: a byte renews its
	// Lease, and a byte answers that it is renewed.
	HeartbeatsPath     = "/apis/edge.bramble.dev/v1alpha1/heartbeats"
	HeartbeatsProtocol = "bramble-heartbeats"
	// TokensPath takes a POST of TokenRequest from an administrator.
	TokensPath = "/apis/edge.bramble.dev/v1alpha1/jointokens"
	// UsersPath takes a POST of UserCertificateRequest, RevokePath one of
	// RevokeRequest.
	UsersPath  = "/apis/edge.bramble.dev/v1alpha1/usercertificates"
	RevokePath = "/apis/edge.bramble.dev/v1alpha1/noderevocations"
)

// CauseKeyRevoked is the cause in the Status that refuses a join by a key that was
// revoked: with another key, the same token is good.
const CauseKeyRevoked metav1.CauseType = "NodeKeyRevoked"

// JoinRequest asks for a node's client certificate. Authorization carries the
// token ("Bearer ID.SECRET"), so it needs no client certificate.
type JoinRequest struct {
	NodeName string `json:"nodeName"`
	CSR      string `json:"csr"` // PEM, PKCS #10, signed by the node's key
}

// JoinResponse is what a node keeps from joining. A RenewResponse is the same.
type JoinResponse struct {
	NodeName    string `json:"nodeName"`
	Certificate string `json:"certificate"` // PEM, the client certificate
	CA          string `json:"ca"`          // PEM, the cluster's authority
	Epoch       string `json:"epoch"`       // the database's UUID
	PodCIDR     string `json:"podCIDR"`     // this node's pod addresses, e.g. 10.100.3.0/24
	ClusterCIDR string `json:"clusterCIDR"` // all pods' addresses, e.g. 10.100.0.0/14
	ServiceCIDR string `json:"serviceCIDR"` // e.g. 10.104.0.0/16
	ServerTime  string `json:"serverTime"`  // RFC 3339, raises the node's floor of trusted time
}

// RenewRequest asks for a new client certificate by the present one, which may
// have expired but not been revoked.
type RenewRequest struct {
	CSR string `json:"csr"`
}

// TokenRequest asks for a join token.
type TokenRequest struct {
	TTLSeconds int64 `json:"ttlSeconds,omitempty"` // default 1 h, at most 30 days
	Uses       int   `json:"uses,omitempty"`       // default 1
}

// TokenResponse is a new token: "bramble1.<hex SHA-256 of the CA's
// SubjectPublicKeyInfo>.<id>.<secret>". It is shown once; the server keeps a hash.
type TokenResponse struct {
	Token   string `json:"token"`
	Expires string `json:"expires"` // RFC 3339
}

// UserCertificateRequest asks for a client certificate of a user. The request's
// common name is the user's, its organisations are the groups.
type UserCertificateRequest struct {
	CSR        string `json:"csr"`                  // PEM, PKCS #10, signed by the user's key
	TTLSeconds int64  `json:"ttlSeconds,omitempty"` // default 30 days, at most a year
}

// UserCertificateResponse is what a kubeconfig needs beside the key.
type UserCertificateResponse struct {
	Certificate string `json:"certificate"` // PEM
	CA          string `json:"ca"`          // PEM, the cluster's authority
	Expires     string `json:"expires"`     // RFC 3339
}

// RevokeRequest ends a node's certificates at once.
type RevokeRequest struct {
	NodeName string `json:"nodeName"`
}

// RevokeResponse says since when the node is revoked.
type RevokeResponse struct {
	NodeName string `json:"nodeName"`
	Revoked  string `json:"revoked"` // RFC 3339, the server's time
}
