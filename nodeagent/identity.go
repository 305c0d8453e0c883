package nodeagent

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"bramble.dev/bramble/nodeagent/state"
	"bramble.dev/bramble/server/client"
)

// checkRenewal is how often the certificate's age is looked at.
const checkRenewal = time.Hour

// identity is the node's key pair, read from the record at each use, and its
// renewal.
type identity struct {
	dir    string
	record *state.Record
	redial func() // opens new sessions with the new certificate
	log    *slog.Logger
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
		return files, pair, fmt.Errorf("cannot use the node's certificate: %w", err)
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

// run renews the certificate at two thirds of its life, until ctx ends.
func (i *identity) run(ctx context.Context) error {
	timer := time.NewTimer(time.Minute)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-timer.C:
		}
		if err := i.renewIfDue(ctx); err != nil {
			i.log.Warn("cannot renew the node's certificate", "err", err)
		}
		timer.Reset(checkRenewal)
	}
}

func (i *identity) renewIfDue(ctx context.Context) error {
	files, pair, err := i.read()
	if err != nil {
		return err
	}
	expires, err := files.Expires()
	if err != nil || !renewalDue(i.record.Facts().CertificateIssued, expires, i.now()) {
		return err
	}
	var errs []error
	for _, server := range i.record.Facts().Servers {
		answer, err := client.Renew(ctx, server, files.CA, pair, i.now)
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

// renewalDue reports whether two thirds of a certificate's life are over. One of
// which the issue is not known is renewed.
func renewalDue(issued string, expires, now time.Time) bool {
	from, err := time.Parse(time.RFC3339, issued)
	return err != nil || !now.Before(from.Add(expires.Sub(from)*2/3))
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
