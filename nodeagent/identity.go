package nodeagent

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"bramble.dev/bramble/nodeagent/state"
	"bramble.dev/bramble/server/api"
	"bramble.dev/bramble/server/client"
	"bramble.dev/bramble/server/tunnel"
)

// How often it is looked whether a renewal is due: at least, at most, and while
// the server's time is not known.
const (
	maxRenewalWait     = time.Hour
	minRenewalWait     = time.Second
	unknownRenewalWait = 5 * time.Second
)

// identity is the node's key pair, read from the record at each use, and its
// renewal. When that is due is judged by the server's time alone: without the
// server there is no renewal, and this machine's clock may be anywhere.
type identity struct {
	dir        string
	record     *state.Record
	redial     func() // opens new sessions with the new certificate
	serverTime func() (time.Time, bool)
	renew      func(ctx context.Context, server string, ca []byte, pair tls.Certificate, now func() time.Time) (api.JoinResponse, error)
	expired    chan struct{} // of one place: the server said that the certificate has expired
	log        *slog.Logger
}

func newIdentity(dir string, record *state.Record, log *slog.Logger) *identity {
	return &identity{dir: dir, record: record, renew: client.Renew, expired: make(chan struct{}, 1), log: log}
}

// refused takes notice of why a connection was refused.
func (i *identity) refused(err error) {
	if !errors.Is(err, tunnel.ErrExpired) {
		return
	}
	select {
	case i.expired <- struct{}{}:
	default:
	}
}

// now is the wall clock, or the latest time that the server vouched for where
// the clock is behind that: a board without a clock boots in 1970.
func (i *identity) now() time.Time {
	now := time.Now()
	if trusted, err := time.Parse(time.RFC3339, i.record.Facts().TrustedTime); err == nil && now.Before(trusted) {
		return trusted
	}
	return now
}

func (i *identity) read() (state.Identity, tls.Certificate, error) {
	files, err := state.ReadIdentity(i.dir)
	if err != nil {
		return files, tls.Certificate{}, err
	}
	pair, err := tls.X509KeyPair(files.Certificate, files.Key)
	if err != nil {
		return files, pair, fmt.Errorf("cannot use the node's certificate and key, cert.pem and key.pem of %s (join again to make them anew; pods go on meanwhile): %w", i.dir, err)
	}
	return files, pair, nil
}

// config is the tunnel's TLS configuration.
func (i *identity) config() (*tls.Config, error) {
	files, pair, err := i.read()
	if err != nil {
		return nil, err
	}
	return client.TLSConfig(files.CA, pair, i.now)
}

// run renews the certificate at two thirds of its life, and one that the server
// says has expired at once, until ctx ends.
func (i *identity) run(ctx context.Context) error {
	timer := time.NewTimer(unknownRenewalWait)
	defer timer.Stop()
	for {
		expired := false
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-i.expired:
			expired = true
		case <-timer.C:
		}
		next, err := i.renewIfDue(ctx, expired)
		if err != nil && ctx.Err() == nil {
			i.log.Warn("cannot renew the node's certificate", "err", err)
		}
		timer.Reset(next)
	}
}

// renewIfDue renews when it is time, and returns when to look again.
func (i *identity) renewIfDue(ctx context.Context, expired bool) (next time.Duration, err error) {
	files, pair, err := i.read()
	if err != nil {
		return maxRenewalWait, err
	}
	expires, err := files.Expires()
	if err != nil {
		return maxRenewalWait, err
	}
	now, known := i.serverTime()
	if !known && !expired {
		return unknownRenewalWait, nil
	}
	if due := renewalTime(i.record.Facts().CertificateIssued, expires); !expired && now.Before(due) {
		return min(max(due.Sub(now), minRenewalWait), maxRenewalWait), nil
	}
	if err := i.renewNow(ctx, files, pair); err != nil {
		return min(max(expires.Sub(now)/20, 10*time.Second), maxRenewalWait), err
	}
	if files, _, err = i.read(); err == nil {
		expires, err = files.Expires()
	}
	now, _ = i.serverTime()
	return min(max(expires.Sub(now)/3, minRenewalWait), maxRenewalWait), err
}

// renewNow asks each server in turn.
func (i *identity) renewNow(ctx context.Context, files state.Identity, pair tls.Certificate) error {
	errs := []error{errors.New("no server gave one")}
	for _, server := range i.record.Facts().Servers {
		answer, err := i.renew(ctx, server, files.CA, pair, i.now)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		if err := state.WriteCertificate(i.dir, []byte(answer.Certificate)); err != nil {
			return err
		}
		i.note(answer.ServerTime)
		i.log.Info("renewed the node's certificate")
		i.redial()
		return nil
	}
	return errors.Join(errs...)
}

// renewalTime is when two thirds of a certificate's life are over: at once for one
// of which the issue is not known.
func renewalTime(issued string, expires time.Time) time.Time {
	from, err := time.Parse(time.RFC3339, issued)
	if err != nil {
		return time.Time{}
	}
	return from.Add(expires.Sub(from) * 2 / 3)
}

// note keeps the server's time of an issue, which also raises the floor of
// trusted time.
func (i *identity) note(serverTime string) {
	facts := i.record.Facts()
	said, err := time.Parse(time.RFC3339, serverTime)
	if err != nil {
		i.log.Error("cannot understand the server's time", "err", err)
		return
	}
	facts.CertificateIssued = serverTime
	if before, _ := time.Parse(time.RFC3339, facts.TrustedTime); said.After(before) {
		facts.TrustedTime = serverTime
	}
	if err := i.record.SetFacts(facts); err != nil {
		i.log.Error("cannot record the certificate's issue", "err", err)
	}
}
