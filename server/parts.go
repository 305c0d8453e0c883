package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"time"

	"bramble.dev/bramble/server/api"
	"bramble.dev/bramble/server/auth"
	"bramble.dev/bramble/server/kinds"
	"bramble.dev/bramble/server/objects"
	"bramble.dev/bramble/server/openapi"
	"bramble.dev/bramble/server/rest"
	"bramble.dev/bramble/server/scheduler"
	"bramble.dev/bramble/server/store"
	"bramble.dev/bramble/server/tunnel"
)

// parts is an opened server: all that serves, and the controllers to run.
type parts struct {
	cfg Config
	log *slog.Logger

	store         *store.Store
	clock         *auth.Clock
	authority     *auth.Authority
	serving       *auth.Serving
	nodeConns     *nodeConns
	keys          *auth.NodeKeys
	pods          *auth.PodIndex
	rules         *auth.RBAC
	authorizer    *auth.Authorizer
	tokens        *auth.AccountTokens
	accounts      *accounts
	authenticator *auth.Authenticator
	hub           *tunnel.Hub
	boards        boardHistory
	registry      *objects.Registry
	scheduler     *scheduler.Scheduler
	controllers   []controller
	handler       http.Handler
}

// controller is what runs beside the API for as long as it serves.
type controller struct {
	name string
	run  func(context.Context) error
}

// open opens the store and puts the parts together, each step on those before
// it. address is what is listened on.
func open(ctx context.Context, cfg Config, address string, log *slog.Logger) (_ *parts, err error) {
	p := &parts{cfg: cfg, log: log, hub: tunnel.NewHub(log, nil), clock: auth.NewClock(cfg.BuildDate), nodeConns: newNodeConns()}
	if err := refuseEmptied(cfg.DataDir); err != nil {
		return nil, err
	}
	if err := refuseHalfRestored(cfg.DataDir); err != nil {
		return nil, err
	}
	if p.store, err = store.Open(ctx, store.Config{Dir: cfg.DataDir, Log: log, Unwatched: auth.RecordKinds()}); err != nil {
		return nil, err
	}
	warnUnconfirmed(p.store, log)
	steps := []func() error{
		func() error { return removeDirs(cfg.DataDir, backupDirs) },
		func() error { return removeDirs(cfg.DataDir, restoreDirs) },
		func() error { return p.openAuthority(address) },
		p.openIdentities,
		p.openRegistry,
		func() error { return createNamespaces(ctx, p.registry) },
		func() error { return createPriorityClasses(ctx, p.registry) },
		func() error { return p.ensurePolicy(ctx) },
		func() error { return p.addControllers(ctx) },
		p.openAPI,
	}
	for _, step := range steps {
		if err := step(); err != nil {
			return nil, errors.Join(err, p.close())
		}
	}
	return p, nil
}

// refuseEmptied returns an error when the database is an empty file though the
// cluster has an authority, which is made after it: a card that lost what was
// in the file must not bring up an empty cluster, whose nodes stop their pods.
func refuseEmptied(dir string) error {
	path := filepath.Join(dir, store.FileName)
	info, err := os.Stat(path)
	if err != nil || info.Size() > 0 {
		return nil // missing is a new beginning, and the rest is the store's to say
	}
	if _, err := os.Stat(filepath.Join(dir, pkiDir, "ca.crt")); err != nil {
		return nil // the first start did not come far
	}
	return fmt.Errorf("cannot use the database %s: the file is empty though this cluster was in use: put a backup in its place and start again; "+
		"to begin with an empty cluster instead, move the file out of that directory", path)
}

// refuseStranger returns an error when the authority is missing though the
// database was in use: a new one would be a stranger to all its nodes and users.
func (p *parts) refuseStranger() error {
	pki := filepath.Join(p.cfg.DataDir, pkiDir)
	for _, name := range []string{"ca.crt", "ca.key"} {
		if _, err := os.Stat(filepath.Join(pki, name)); !errors.Is(err, os.ErrNotExist) {
			return nil
		}
	}
	namespaces, _, err := p.store.List("namespaces", "", 0) // made after the authority, at the first start
	if err != nil || len(namespaces) == 0 {
		return err
	}
	return fmt.Errorf("cannot use the database in %s: the cluster's authority, %s, is gone: put it back from a backup (bramble-server restore) and start again; "+
		"to begin with an empty cluster instead, which all nodes have to join again, move %s out of that directory", p.cfg.DataDir, pki, store.FileName)
}

func (p *parts) close() error { return p.store.Close() }

// openAuthority opens or makes the authority and what it certifies here.
func (p *parts) openAuthority(address string) (err error) {
	if err := p.refuseStranger(); err != nil {
		return err
	}
	if p.authority, err = auth.OpenAuthority(filepath.Join(p.cfg.DataDir, pkiDir), p.cfg.BuildDate); err != nil {
		return err
	}
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		return fmt.Errorf("cannot advertise %s: %w", address, err)
	}
	host, hostPort := p.cfg.advertised(port)
	names := []string{host}
	if name, err := os.Hostname(); err == nil { // a name more, not needed
		names = append(names, name)
	}
	p.serving = &auth.Serving{
		Authority: p.authority, Clock: p.clock, Names: names, Kubeconfig: p.cfg.kubeconfig(), URL: "https://" + hostPort, Log: p.log,
	}
	return p.serving.Renew()
}

// openIdentities prepares what says who somebody is and which pods are whose.
func (p *parts) openIdentities() (err error) {
	p.pods = auth.NewPodIndex(newPodFeed(p.store))
	p.rules = auth.NewRBAC(newRBACFeed(p.store))
	p.authorizer = auth.NewAuthorizer(p.pods, p.rules)
	p.keys, err = auth.OpenNodeKeys(records{p.store, p.log}, netip.MustParsePrefix(p.cfg.ClusterCIDR), p.cfg.NodeBits)
	if err != nil {
		return err
	}
	p.authenticator = auth.NewAuthenticator(p.authority, p.clock, p.keys)
	key, err := auth.OpenTokenKey(filepath.Join(p.cfg.DataDir, pkiDir))
	if err != nil {
		return err
	}
	p.tokens = auth.NewAccountTokens(key, p.clock, living{p.store})
	p.authenticator.Tokens = p.tokens
	return nil
}

func (p *parts) openRegistry() error {
	types, err := openapi.TypeConverter()
	if err != nil {
		return err
	}
	table := kinds.All(kinds.Deps{
		Placement: func(ctx context.Context, namespace, name string) (*api.Placement, error) {
			return p.scheduler.Explain(ctx, namespace, name)
		},
		BoardHistory: p.boards.read,
		Reviews:      &auth.Reviews{Decider: p.authorizer, Rules: p.rules, Tokens: p.tokens},
	})
	p.accounts = &accounts{}
	p.registry, err = objects.NewRegistry(p.store, table, objects.Config{
		Admit: []objects.Admitter{
			keptNamespaces{}, priorities{func() *objects.Registry { return p.registry }},
			authAdmitter{auth.NewNodeRestriction(p.pods, p.keys)}, authAdmitter{auth.NewEscalation(p.rules, p.authorizer)},
			p.accounts, nodeOwned{func() *objects.Registry { return p.registry }},
		},
		Types: types,
		Log:   p.log,
	})
	return errors.Join(err, p.accounts.open(p.registry))
}

func (p *parts) openAPI() (err error) {
	tokens, err := auth.OpenTokens(records{p.store, p.log}, p.clock, p.authority.Hash())
	if err != nil {
		return err
	}
	enrolment := &auth.Enrolment{
		CA: p.authority, Clock: p.clock, Tokens: tokens, Keys: p.keys, Authenticator: p.authenticator,
		Nodes:      nodeObjects{p.registry},
		Cluster:    auth.Cluster{Epoch: p.store.Epoch(), ClusterCIDR: p.cfg.ClusterCIDR, ServiceCIDR: p.cfg.ServiceCIDR},
		Log:        p.log,
		OnReplaced: p.nodeConns.cut,
		NodeLife:   p.cfg.NodeCertificateLife,
	}
	p.handler, err = rest.New(rest.Config{
		Registry:      p.registry,
		Authenticator: p.authenticator,
		Authorizer:    p.authorizer,
		Nodes:         p.hub,
		Epoch:         p.store.Epoch(),
		Follows:       func() []string { return follows(p.store) },
		Version:       api.BuildVersion,
		ServerTime:    p.clock.Now,
		Checks:        []rest.Check{{Name: "store", Run: p.store.Writable}},
		Routes: []rest.Route{
			{Path: api.JoinPath, Public: true, Handler: http.HandlerFunc(enrolment.Join)},
			{Path: api.RenewPath, Public: true, Handler: http.HandlerFunc(enrolment.Renew)},
			{Path: api.HeartbeatsPath, Public: true, Handler: p.heartbeats()}, // it looks itself who asks
			{Path: api.TokensPath, Handler: http.HandlerFunc(enrolment.CreateToken)},
			// It holds the authority's key: who may read everything may not have it.
			{Path: api.BackupPath, Verb: "create", Handler: backups{p.store, p.cfg.DataDir, time.Now, p.log, make(chan struct{}, 1), backupPatience}},
			{Path: api.RestorePath, Handler: restores{p.store, p.log}},
			{Path: api.UsersPath, Handler: enrolment.CreateUser(p.authorizer)},
			{Path: api.RevokePath, Handler: http.HandlerFunc(enrolment.Revoke)},
		},
		Log: p.log,
	})
	return err
}

func (p *parts) heartbeats() heartbeats {
	lease, _ := p.registry.Kind("coordination.k8s.io", "leases") // in the table
	return heartbeats{registry: p.registry, lease: lease, follows: func() []string { return follows(p.store) }, now: p.clock.Now, log: p.log}
}
