package auth

import (
	"context"
	"crypto/tls"
	"log/slog"
	"sync/atomic"
	"time"
)

// servingLife is after how long the server's own certificate is made anew, with
// another key, at two thirds of it. What stands in it as its end is far later
// (see ServerCertificate): a node's clock may be anywhere.
const servingLife = 365 * 24 * time.Hour

// checkCertificates is how often it is looked whether one is due.
const checkCertificates = time.Hour

// Serving keeps the certificates that the server itself needs good without a
// restart: that of its port and the administrator's kubeconfig. Times are by the
// server's Clock, which no step of the wall clock moves.
type Serving struct {
	Authority *Authority
	Clock     *Clock
	Names     []string // host names and addresses
	// Kubeconfig and URL are where the administrator's kubeconfig is, and what it
	// names; no file is written where Kubeconfig is "".
	Kubeconfig, URL string
	Life            time.Duration // 0: a year
	Log             *slog.Logger

	current atomic.Pointer[tls.Certificate]
	made    time.Time // Renew's and Run's goroutine
}

// Renew makes another certificate for the port, for connections from now on, if
// two thirds of its life are over or there is none, and sees to the kubeconfig.
func (s *Serving) Renew() error {
	now := s.Clock.Now()
	if s.current.Load() == nil || now.Sub(s.made) >= s.life()*2/3 {
		cert, err := s.Authority.ServerCertificate(s.Names)
		if err != nil {
			return err
		}
		if s.current.Swap(&cert) != nil {
			s.Log.Info("renewed the server's certificate")
		}
		s.made = now
	}
	if s.Kubeconfig == "" {
		return nil
	}
	return s.Authority.WriteAdminKubeconfig(s.Kubeconfig, s.URL, s.Clock)
}

// Run renews what is due until ctx ends. A failure is logged and tried again.
func (s *Serving) Run(ctx context.Context) error {
	ticker := time.NewTicker(min(checkCertificates, s.life()/12))
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
		if err := s.Renew(); err != nil {
			s.Log.Error("cannot renew the server's certificates", "err", err)
		}
	}
}

// Certificate is for tls.Config.GetCertificate. Renew must have been called.
func (s *Serving) Certificate(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	return s.current.Load(), nil
}

func (s *Serving) life() time.Duration {
	if s.Life > 0 {
		return s.Life
	}
	return servingLife
}
