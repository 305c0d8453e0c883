package tunnel

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"bramble.dev/bramble/server/api"
)

// Dialer is the node's end. Run keeps control up: it dials, and dials again with
// back-off when it is lost. Bulk it dials when the server asks for it, until it has
// it or has tried for a while. On both it serves Handler to the server's requests.
// Fields are read only once Run has started; NewDialer sets defaults.
type Dialer struct {
	Addresses func() []string             // "host:port", tried in turn; asked before each round
	TLS       func() (*tls.Config, error) // asked before each dial; see ClientTLS
	Handler   http.Handler                // may be nil: then all is 404
	Log       *slog.Logger
	// OnConnect, when set, is called from Run after a session is up, also the
	// first time. It must not block.
	OnConnect func(Channel)
	// OnError, when set, is called from Run with why a round over all addresses
	// got no session (RefusedError, TLS errors, ...). It must not block.
	OnError func(Channel, error)

	Dial      func(ctx context.Context, network, address string) (net.Conn, error)
	Keepalive func(Channel) Keepalive
	Backoff   Backoff
	Wait      time.Duration // how long DialContext waits for a session

	links   [2]*link     // control, bulk
	reached atomic.Value // string: the address by which control was reached last
}

// Backoff is the pause between rounds of dialling: it doubles from Min to Max,
// each a random half to all of its length.
type Backoff struct{ Min, Max time.Duration }

// NewDialer returns a Dialer with defaults for all but the four given.
func NewDialer(addresses func() []string, config func() (*tls.Config, error), handler http.Handler, log *slog.Logger) *Dialer {
	if handler == nil {
		handler = http.NotFoundHandler()
	}
	d := &Dialer{
		Addresses: addresses, TLS: config, Handler: handler, Log: log,
		Dial:      (&net.Dialer{Timeout: handshakeTimeout, KeepAlive: -1}).DialContext, // we have our own
		Keepalive: DefaultKeepalive,
		Backoff:   Backoff{Min: 500 * time.Millisecond, Max: 15 * time.Second},
		Wait:      5 * time.Second,
	}
	d.links = [2]*link{newLink(d, Control), newLink(d, Bulk)}
	return d
}

// ClientTLS sets what every tunnel connection has: TLS 1.3, our ALPN, and the
// fixed server name.
func ClientTLS(config *tls.Config) *tls.Config {
	config = config.Clone()
	config.MinVersion = tls.VersionTLS13
	config.NextProtos = []string{api.ALPN}
	config.ServerName = api.ServerName
	return config
}

// Run serves until ctx ends and returns ctx's error.
func (d *Dialer) Run(ctx context.Context) error {
	var group sync.WaitGroup
	for _, l := range d.links {
		group.Go(func() { l.run(ctx) })
	}
	group.Wait()
	return ctx.Err()
}

// DialContext opens a stream to the server's API on the control connection;
// network and address are ignored. Without a session it waits for one, at most
// d.Wait, and then returns ErrNotConnected.
func (d *Dialer) DialContext(ctx context.Context, _, _ string) (net.Conn, error) {
	return d.links[0].open(ctx, d.Wait)
}

// Connected reports whether the control connection is up.
func (d *Dialer) Connected() bool { return d.links[0].current() != nil }

// Redial opens new sessions in place of those that are up, for a new certificate,
// and drains the old ones once the new ones are up. It does not wait.
func (d *Dialer) Redial() {
	for _, l := range d.links {
		select {
		case l.redial <- struct{}{}:
		default: // one is asked for already
		}
	}
}

// connect tries each address once.
func (d *Dialer) connect(ctx context.Context, c Channel) (net.Conn, error) {
	var errs []error
	for _, address := range d.addresses(c) {
		conn, err := d.connectTo(ctx, c, address)
		if err == nil {
			if c == Control {
				d.reached.Store(address)
			}
			return conn, nil
		}
		errs = append(errs, fmt.Errorf("cannot connect to %s: %w", address, err))
		if ctx.Err() != nil {
			break
		}
	}
	if len(errs) == 0 {
		return nil, errors.New("no server address is known")
	}
	return nil, errors.Join(errs...)
}

// addresses are for bulk first the one that serves control: somebody waits, and
// another may take all of that time to fail.
func (d *Dialer) addresses(c Channel) []string {
	all := d.Addresses()
	reached, _ := d.reached.Load().(string)
	if i := slices.Index(all, reached); c == Bulk && i > 0 {
		return append([]string{reached}, slices.Delete(slices.Clone(all), i, i+1)...)
	}
	return all
}

func (d *Dialer) connectTo(ctx context.Context, c Channel, address string) (net.Conn, error) {
	config, err := d.TLS()
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, handshakeTimeout)
	defer cancel()
	raw, err := d.Dial(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	conn := tls.Client(raw, ClientTLS(config))
	stop := context.AfterFunc(ctx, func() { raw.Close() })
	if err = conn.HandshakeContext(ctx); err == nil {
		err = greetServer(conn, c)
	}
	if !stop() && err == nil {
		err = ctx.Err()
	}
	if err != nil {
		raw.Close()
		return nil, err
	}
	return conn, nil
}

func greetServer(conn *tls.Conn, c Channel) error {
	if got := conn.ConnectionState().NegotiatedProtocol; got != api.ALPN {
		return fmt.Errorf("it does not speak %s: not a bramble-server, or another version", api.ALPN)
	}
	if _, err := io.WriteString(conn, string(c)+"\n"); err != nil {
		return err
	}
	return readReply(conn)
}

// pause is the n-th pause in a row, from 0.
func (b Backoff) pause(n int) time.Duration {
	d := b.Max
	if n < 16 && b.Min<<n < b.Max {
		d = b.Min << n
	}
	return d/2 + rand.N(d/2+1)
}
