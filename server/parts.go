package server

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"

	"bramble.dev/bramble/server/api"
	"bramble.dev/bramble/server/auth"
	"bramble.dev/bramble/server/gc"
	"bramble.dev/bramble/server/kinds"
	"bramble.dev/bramble/server/objects"
	"bramble.dev/bramble/server/openapi"
	"bramble.dev/bramble/server/rest"
	"bramble.dev/bramble/server/store"
	"bramble.dev/bramble/server/tunnel"
)

// parts is an opened server: all that serves, and the controllers to run.
type parts struct {
	store         *store.Store
	authority     *auth.Authority
	authenticator *auth.Authenticator
	certificate   tls.Certificate
	hub           *tunnel.Hub
	handler       http.Handler
	controllers   []controller
}

// controller is what runs beside the API for as long as it serves.
type controller struct {
	name string
	run  func(context.Context) error
}

// open opens the store and puts the parts together. address is what is listened
// on.
func open(ctx context.Context, cfg Config, address string, log *slog.Logger) (_ *parts, err error) {
	p := &parts{hub: tunnel.NewHub(log, nil)}
	if p.store, err = store.Open(ctx, store.Config{Dir: cfg.DataDir, Log: log}); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, p.close())
		}
	}()
	clock := auth.NewClock(cfg.BuildDate)
	if err := p.openAuthority(cfg, address, clock); err != nil {
		return nil, err
	}
	pods := auth.NewPodIndex(&podFeed{store: p.store})
	keys, err := auth.OpenNodeKeys(records{p.store}, netip.MustParsePrefix(cfg.ClusterCIDR), cfg.NodeBits)
	if err != nil {
		return nil, err
	}
	p.authenticator = auth.NewAuthenticator(p.authority, clock, keys)
	registry, err := p.openRegistry(auth.NewNodeRestriction(pods, keys), log)
	if err != nil {
		return nil, err
	}
	if err := createNamespaces(ctx, registry); err != nil {
		return nil, err
	}
	enrolment, err := p.enrolment(cfg, clock, keys, registry, log)
	if err != nil {
		return nil, err
	}
	p.controllers = append(p.controllers, controller{"namespace controller", gc.New(registry, log).Run})
	p.handler, err = rest.New(rest.Config{
		Registry:      registry,
		Authenticator: p.authenticator,
		Authorizer:    auth.NewAuthorizer(pods),
		Nodes:         p.hub,
		Epoch:         p.store.Epoch(),
		Version:       api.BuildVersion,
		Routes: []rest.Route{
			{Path: api.JoinPath, Public: true, Handler: http.HandlerFunc(enrolment.Join)},
			{Path: api.RenewPath, Public: true, Handler: http.HandlerFunc(enrolment.Renew)},
			{Path: api.TokensPath, Handler: http.HandlerFunc(enrolment.CreateToken)},
		},
		Log: log,
	})
	return p, err
}

func (p *parts) close() error { return p.store.Close() }

// openAuthority opens or makes the authority and what it certifies here.
func (p *parts) openAuthority(cfg Config, address string, clock *auth.Clock) (err error) {
	if p.authority, err = auth.OpenAuthority(filepath.Join(cfg.DataDir, "pki"), cfg.BuildDate); err != nil {
		return err
	}
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		return fmt.Errorf("cannot advertise %s: %w", address, err)
	}
	host, hostPort := cfg.advertised(port)
	names := []string{host}
	if name, err := os.Hostname(); err == nil { // a name more, not needed
		names = append(names, name)
	}
	if p.certificate, err = p.authority.ServerCertificate(names); err != nil {
		return err
	}
	return p.authority.WriteAdminKubeconfig(cfg.kubeconfig(), "https://"+hostPort, clock)
}

func (p *parts) openRegistry(restriction *auth.NodeRestriction, log *slog.Logger) (*objects.Registry, error) {
	types, err := openapi.TypeConverter()
	if err != nil {
		return nil, err
	}
	return objects.NewRegistry(p.store, kinds.All(kinds.Deps{}), objects.Config{
		Admit: []objects.Admitter{nodeRestriction{restriction}},
		Types: types,
		Log:   log,
	})
}

func (p *parts) enrolment(cfg Config, clock *auth.Clock, keys *auth.NodeKeys, registry *objects.Registry, log *slog.Logger) (*auth.Enrolment, error) {
	tokens, err := auth.OpenTokens(records{p.store}, clock, p.authority.Hash())
	if err != nil {
		return nil, err
	}
	return &auth.Enrolment{
		CA: p.authority, Clock: clock, Tokens: tokens, Keys: keys, Authenticator: p.authenticator,
		Nodes:      nodeObjects{registry},
		Cluster:    auth.Cluster{Epoch: p.store.Epoch(), ClusterCIDR: cfg.ClusterCIDR, ServiceCIDR: cfg.ServiceCIDR},
		Log:        log,
		OnReplaced: p.hub.Disconnect,
	}, nil
}
