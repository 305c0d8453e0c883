package nodeagent

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"log/slog"
	"math/big"
	"testing"
	"testing/synctest"
	"time"

	"bramble.dev/bramble/nodeagent/state"
	"bramble.dev/bramble/server/api"
	"bramble.dev/bramble/server/tunnel"
)

// issuer is a server that gives certificates of a life, by a clock of its own.
type issuer struct {
	t       *testing.T
	key     *ecdsa.PrivateKey
	life    time.Duration
	ahead   time.Duration // its clock before ours
	away    bool          // no answer
	unheard bool          // no response was had yet
	renewed int
	redials int
}

func (s *issuer) now() time.Time { return time.Now().Add(s.ahead) }

func (s *issuer) certificate() []byte {
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: time.Unix(0, 0), NotAfter: s.now().Add(s.life)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, crypto.Signer(s.key).Public(), s.key)
	if err != nil {
		s.t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}

// start joins a node and runs its renewal until the test ends.
func (s *issuer) start() (*identity, context.CancelFunc) {
	t := s.t
	var err error
	if s.key, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader); err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(s.key)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	facts := state.Facts{NodeName: "n", Servers: []string{"a"}, CertificateIssued: s.now().UTC().Format(time.RFC3339)}
	key := pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})
	if err := state.Join(dir, facts, state.Identity{Key: key, Certificate: s.certificate(), CA: s.certificate()}); err != nil {
		t.Fatal(err)
	}
	record, err := state.Open(dir, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	i := newIdentity(dir, record, slog.New(slog.DiscardHandler))
	i.redial = func() { s.redials++ }
	i.serverTime = func() (time.Time, bool) { return s.now(), !s.unheard }
	i.renew = func(context.Context, string, []byte, tls.Certificate, func() time.Time) (api.JoinResponse, error) {
		if s.away {
			return api.JoinResponse{}, errors.New("no answer")
		}
		s.renewed++
		return api.JoinResponse{Certificate: string(s.certificate()), ServerTime: s.now().UTC().Format(time.RFC3339)}, nil
	}
	ctx, cancel := context.WithCancel(t.Context())
	go func() { _ = i.run(ctx) }()
	return i, cancel
}

// after lets d pass and returns how often the certificate was renewed.
func (s *issuer) after(d time.Duration) int {
	<-time.After(d)
	synctest.Wait()
	return s.renewed
}

func TestRenewalAtTwoThirds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &issuer{t: t, life: 90 * 24 * time.Hour}
		_, stop := s.start()
		defer stop()
		for _, step := range []struct {
			days float64
			want int
		}{{59.9, 0}, {0.2, 1}, {59.8, 1}, {0.2, 2}, {300, 7}} {
			if got := s.after(time.Duration(step.days * 24 * float64(time.Hour))); got != step.want {
				t.Errorf("%d renewals, want %d", got, step.want)
			}
		}
		if s.redials != s.renewed {
			t.Errorf("%d new sessions for %d certificates", s.redials, s.renewed)
		}
	})
}

// A short life is renewed in time, and a server that is away is asked again.
func TestRenewalIsTriedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &issuer{t: t, life: 30 * time.Minute, away: true}
		_, stop := s.start()
		defer stop()
		if got := s.after(25 * time.Minute); got != 0 {
			t.Errorf("%d renewals by a server that is away", got)
		}
		s.away = false
		if got := s.after(2 * time.Minute); got != 1 {
			t.Errorf("%d renewals once it is back", got)
		}
	})
}

// The node's own clock decides nothing, be it 1970 (the bubble's is 2000, the
// server's 2026 or 2099) or far ahead: a certificate is neither renewed all the
// time nor never.
func TestRenewalGoesByTheServersTime(t *testing.T) {
	for _, ahead := range []time.Duration{-20 * 365 * 24 * time.Hour, 26 * 365 * 24 * time.Hour, 99 * 365 * 24 * time.Hour} {
		t.Run(fmt.Sprint(ahead), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &issuer{t: t, life: 90 * 24 * time.Hour, ahead: ahead}
				_, stop := s.start()
				defer stop()
				if got := s.after(59 * 24 * time.Hour); got != 0 {
					t.Errorf("%d renewals before it is time", got)
				}
				if got := s.after(2 * 24 * time.Hour); got != 1 {
					t.Errorf("%d renewals when it is time", got)
				}
				s.ahead += 24 * time.Hour // a step of the server's clock renews nothing
				s.after(2 * time.Hour)
				s.ahead -= 48 * time.Hour
				if got := s.after(24 * time.Hour); got != 1 {
					t.Errorf("%d renewals after steps of a day", got)
				}
			})
		})
	}
}

// A server that was never heard is not asked, until it says that the certificate
// has expired.
func TestAnExpiredCertificateIsRenewedAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &issuer{t: t, life: time.Hour, unheard: true}
		i, stop := s.start()
		defer stop()
		if got := s.after(3 * time.Hour); got != 0 {
			t.Errorf("%d renewals without a server", got)
		}
		i.refused(errors.New("connection refused"))
		i.refused(&tunnel.RefusedError{Reason: tunnel.ErrExpired.Error()})
		if got := s.after(time.Millisecond); got != 1 {
			t.Errorf("%d renewals of an expired certificate", got)
		}
	})
}
