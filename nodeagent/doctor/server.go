package doctor

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"strings"
	"time"
)

// Server is a server that the node has joined, and how far the way to it goes.
type Server struct {
	Address string // host:port
	Err     error  // nil: it is reached, and is the cluster's
}

const serverLimit = 5 * time.Second // for each

func (p Place) lookServers(ctx context.Context) (all []Server) {
	for _, address := range p.Servers {
		all = append(all, Server{address, p.reach(ctx, address)})
	}
	return all
}

// reach finds a server's name, connects, and has it show who it is.
func (p Place) reach(ctx context.Context, address string) error {
	ctx, cancel := context.WithTimeout(ctx, serverLimit)
	defer cancel()
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return err
	}
	if _, err := net.DefaultResolver.LookupHost(ctx, host); err != nil {
		return fmt.Errorf("its name is not found: %w", err)
	}
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", address)
	if err != nil {
		return fmt.Errorf("it cannot be connected to: %w", err)
	}
	defer func() { _ = conn.Close() }()
	if p.TLS == nil {
		return nil
	}
	if err := tls.Client(conn, p.TLS).HandshakeContext(ctx); err != nil {
		return fmt.Errorf("it does not prove to be the cluster's: %w", err)
	}
	return nil
}

func checkServers(f Facts) []Finding {
	const check = "ServerUnreachable"
	var bad, good []string
	for _, s := range f.Servers {
		if s.Err != nil {
			bad = append(bad, fmt.Sprintf("%s: %v", s.Address, s.Err))
		} else {
			good = append(good, s.Address)
		}
	}
	switch {
	case good == nil && bad == nil:
		return nil
	case good == nil:
		return []Finding{warning(check, "no server is reached, and pods run on by the node's record: %s", strings.Join(bad, "; "))}
	case bad != nil:
		return []Finding{note(check, "not all servers are reached: %s", strings.Join(bad, "; "))}
	}
	return []Finding{fine(check, "the server is reached: %s", strings.Join(good, ", "))}
}
