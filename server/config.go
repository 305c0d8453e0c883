package server

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"path/filepath"
	"time"
)

// Config is all that a server can be told. DefaultConfig has a value that works
// for each of them.
type Config struct {
	// DataDir holds the database, the authority and the administrator's
	// kubeconfig; it is made with mode 0700.
	DataDir string
	// Listen is the "host:port" of the API; port 0 takes any. Sockets from the
	// service manager take its place.
	Listen string
	// Advertise is the "host" or "host:port" by which others reach the API; ""
	// is the loopback address. It goes into the kubeconfig and the certificate.
	Advertise string
	// Kubeconfig is where the administrator's kubeconfig is written; "" is
	// admin.kubeconfig in DataDir.
	Kubeconfig string

	ClusterCIDR string // all pods' addresses
	ServiceCIDR string // all services' addresses
	NodeBits    int    // prefix length of a node's part of ClusterCIDR

	// NodeLeaseTimeout is how long a node may be silent before it is Unknown.
	NodeLeaseTimeout time.Duration
	// NodeCertificateLife is how long a node's client certificate is valid. Nodes
	// renew theirs when two thirds of it are over.
	NodeCertificateLife time.Duration
	// ShutdownTimeout is how long requests may take to end.
	ShutdownTimeout time.Duration
	// BuildDate is the earliest time that can be now.
	BuildDate time.Time
}

// DefaultConfig is the configuration of a server that was told nothing.
func DefaultConfig() Config {
	return Config{
		DataDir:          "/var/lib/bramble/server",
		Listen:           ":6443",
		ClusterCIDR:      "10.100.0.0/14",
		ServiceCIDR:      "10.104.0.0/16",
		NodeBits:         24,
		NodeLeaseTimeout: 40 * time.Second,
		ShutdownTimeout:  5 * time.Second,

		NodeCertificateLife: 365 * 24 * time.Hour,
	}
}

// Validate returns all that is wrong with c, each error beginning with the
// setting's name as it stands in server.yaml.
func (c Config) Validate() error {
	var errs []error
	wrong := func(setting, format string, args ...any) {
		errs = append(errs, fmt.Errorf(setting+": "+format, args...))
	}
	if !filepath.IsAbs(c.DataDir) {
		wrong("data-dir", "must be an absolute path, not %q", c.DataDir)
	}
	if _, _, err := net.SplitHostPort(c.Listen); err != nil {
		wrong("listen", "must be HOST:PORT or :PORT, not %q", c.Listen)
	}
	cluster, err := netip.ParsePrefix(c.ClusterCIDR)
	if err != nil {
		wrong("cluster-cidr", "must be a range such as 10.100.0.0/14, not %q", c.ClusterCIDR)
	}
	service, err := netip.ParsePrefix(c.ServiceCIDR)
	if err != nil {
		wrong("service-cidr", "must be a range such as 10.104.0.0/16, not %q", c.ServiceCIDR)
	}
	if cluster.IsValid() && service.IsValid() && cluster.Overlaps(service) {
		wrong("service-cidr", "%s overlaps cluster-cidr %s", service, cluster)
	}
	if cluster.IsValid() && (c.NodeBits < cluster.Bits() || c.NodeBits > cluster.Addr().BitLen()-2) {
		wrong("node-bits", "must be from %d (that of cluster-cidr) to %d, not %d", cluster.Bits(), cluster.Addr().BitLen()-2, c.NodeBits)
	}
	if c.NodeLeaseTimeout < 5*time.Second {
		wrong("node-lease-timeout", "must be 5s or more, not %v", c.NodeLeaseTimeout)
	}
	if c.NodeCertificateLife < time.Second {
		wrong("node-certificate-life", "must be 1s or more (a year is usual), not %v", c.NodeCertificateLife)
	}
	if c.ShutdownTimeout <= 0 {
		wrong("shutdown-timeout", "must be more than 0, not %v", c.ShutdownTimeout)
	}
	return errors.Join(errs...)
}

func (c Config) kubeconfig() string {
	if c.Kubeconfig != "" {
		return c.Kubeconfig
	}
	return filepath.Join(c.DataDir, "admin.kubeconfig")
}

// advertised is the host and port of the API's URL; port is what is listened
// on, where Advertise names none.
func (c Config) advertised(port string) (host, hostPort string) {
	switch h, p, err := net.SplitHostPort(c.Advertise); {
	case c.Advertise == "":
		host = "127.0.0.1"
	case err == nil:
		host, port = h, p
	default:
		host = c.Advertise
	}
	return host, net.JoinHostPort(host, port)
}
