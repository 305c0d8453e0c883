package api

// JoinPath and RenewPath are where an agent gets its certificate. They take a
// POST of JSON; errors come as a metav1.Status.
const (
	JoinPath  = "/apis/edge.bramble.dev/v1alpha1/join"
	RenewPath = "/apis/edge.bramble.dev/v1alpha1/renew"
	// TokensPath takes a POST of TokenRequest from an administrator.
	TokensPath = "/apis/edge.bramble.dev/v1alpha1/jointokens"
)

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
