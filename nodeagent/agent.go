package nodeagent

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/netip"
	"os"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"bramble.dev/bramble/hw"
	"bramble.dev/bramble/nodeagent/device"
	"bramble.dev/bramble/nodeagent/network/netapi"
	"bramble.dev/bramble/nodeagent/pod"
	"bramble.dev/bramble/nodeagent/probe"
	"bramble.dev/bramble/nodeagent/report"
	"bramble.dev/bramble/nodeagent/runtime"
	"bramble.dev/bramble/nodeagent/state"
	"bramble.dev/bramble/nodeagent/stream"
	"bramble.dev/bramble/server/client"
	"bramble.dev/bramble/server/tunnel"
)

// Agent is a node's agent. New makes it, Run runs it.
type Agent struct {
	cfg      Config
	log      *slog.Logger
	record   *state.Record
	facts    state.Facts // of the start: names and ranges do not change
	identity *identity
	dialer   *tunnel.Dialer
	client   *client.Client
	engine   *runtime.Runtime
	network  *netapi.Client
	desires  *desires
	workers  *pod.Workers
	probes   *probe.Probers
	pods     *report.Pods
	events   *report.Events
	node     *report.Node
	board    *hw.Board
	devices  *devices
	hardware *report.Hardware
	lease    *report.Lease
	health   health

	imagesChanged chan struct{} // holds one

	networked chan struct{} // closed when the node's network stands
	relist    chan struct{} // holds one: all pods are to be listed anew
}

// New opens the node's record and makes the agent's parts; nothing else happens
// before Run. state.ErrNotJoined means that the node must join first.
func New(cfg Config) (*Agent, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	record, err := state.Open(cfg.StateDir, cfg.Log)
	if err != nil {
		return nil, err
	}
	a := &Agent{
		cfg: cfg, log: cfg.Log, record: record, facts: record.Facts(),
		networked: make(chan struct{}), relist: make(chan struct{}, 1), imagesChanged: make(chan struct{}, 1),
	}
	a.health.engine, a.health.net = "Podman's service has not answered yet", "the node's network is not set up yet"
	a.identity = newIdentity(cfg.StateDir, record, cfg.Log)
	a.identity.redial = func() { a.dialer.Redial() }
	a.identity.serverTime = func() (time.Time, bool) { return a.client.ServerTime() }
	a.engine = runtime.New(runtime.Config{
		Socket: cfg.PodmanSocket, RuntimeDir: cfg.RuntimeDir, StateDir: cfg.StateDir, PauseFile: cfg.PauseFile, Log: cfg.Log,
		LogBytes: cfg.LogMaxBytes, LogFiles: cfg.LogMaxFiles, FetchDir: cfg.fetchDir(),
	})
	a.network = netapi.NewClient(cfg.NetworkSock)
	if err := a.connectServer(); err != nil {
		return nil, err
	}
	a.desires = newDesires(record, a.engine, a.knowsEpoch, cfg.Log)
	a.desires.remains = a.remains
	a.makeReports()
	a.makeWorkers()
	return a, nil
}

// connectServer makes the tunnel and the client that goes through it.
func (a *Agent) connectServer() error {
	handler := &stream.Handler{
		Pods: &finder{a}, Logs: &logs{a.engine}, Commands: &commands{a.engine}, Dialer: a.network, Mine: a.isPodAddress, Now: time.Now, Log: a.log,
		Metrics: func(w io.Writer) error { return a.hardware.Metrics(w) }, MetricsType: report.MetricsType,
	}
	a.dialer = tunnel.NewDialer(func() []string { return a.record.Facts().Servers }, a.identity.config, handler.Routes(), a.log)
	a.dialer.OnConnect = func(channel tunnel.Channel) {
		if channel == tunnel.Control {
			a.health.setAddress(hostAddress(a.record.Facts().Servers))
			a.pods.Retry()
			a.node.Look()
			a.hardware.Again()
		}
	}
	a.dialer.OnError = func(_ tunnel.Channel, err error) { a.identity.refused(err) }
	var err error
	a.client, err = client.New(a.dialer.DialContext, client.Config{UserAgent: "bramble-agent/" + a.cfg.Version, OnEpoch: a.meetEpoch, Log: a.log})
	return err
}

// makeReports makes what tells the server of the node and its pods.
func (a *Agent) makeReports() {
	a.pods = report.NewPods(a.client, a.log)
	a.pods.Deleted = a.desires.end
	a.desires.forget = a.pods.Forget
	a.events = report.NewEvents(a.client, a.facts.NodeName, a.log)
	a.node = report.NewNode(a.client, a.facts.NodeName, report.System{Root: "/", Data: a.cfg.StateDir, MaxPods: a.cfg.MaxPods}, a.healthNow, a.log)
	a.board = hw.Open(hw.Config{Root: a.cfg.HWRoot, Rescan: rescanRecorded})
	a.node.Labels = a.boardLabels
	a.devices = &devices{Table: device.New(a.cfg.HWRoot), changed: a.node.Look}
	a.hardware = report.NewHardware(a.client, a.board, a.facts.NodeName, a.cfg.StateDir, a.log)
	a.hardware.Changed = a.node.Look
	a.lease = &report.Lease{Server: a.client, Node: a.facts.NodeName, Log: a.log, Renewed: a.leaseRenewed, Resumed: a.resumed}
}

// resumed tells the server all about the node again, which it may have forgotten.
func (a *Agent) resumed() {
	a.node.Again()
	a.hardware.Again()
}

// makeWorkers makes the pods' workers from the other parts.
func (a *Agent) makeWorkers() {
	a.probes = probe.New(probe.Config{
		Dial: a.dialProbed, Exec: a.engine.Exec, Event: a.events.Pod,
		Changed: func(uid string) { a.workers.Nudge(uid) },
	})
	a.workers = pod.New(pod.Config{
		Pods: a.engine, Containers: a.engine, Images: a.engine,
		Network: a.network, Probes: a.probes, Devices: a.devices,
		Volumes:     a.makeVolumes(),
		Source:      &source{server: a.client, connected: a.dialer.Connected, known: a.knowsEpoch, record: a.record, log: a.log},
		Reporter:    &reporter{pods: a.pods, events: a.events, desires: a.desires},
		HostIP:      a.health.address,
		Resolver:    a.resolver,
		Allocatable: a.allocatable,
		Unenforced:  func() []string { return a.node.System.Read().Unenforced },
		ServerTime:  a.client.ServerTime,
		Dir:         a.cfg.own("pods"),
		Log:         a.log,
	})
	a.desires.workers = a.workers
}

// Run runs the agent until ctx ends, which is no error, or a part of it cannot
// go on; state.ErrInUse when another agent runs. Pods outlive it.
func (a *Agent) Run(ctx context.Context) error {
	unlock, err := state.Lock(a.cfg.StateDir)
	if err != nil {
		return err
	}
	defer unlock()
	if err := os.MkdirAll(a.cfg.own(""), 0o700); err != nil {
		return fmt.Errorf("cannot make the runtime directory: %w", err)
	}
	a.health.setAddress(hostAddress(a.facts.Servers))
	a.desires.leased = a.leasedSinceBoot()
	group, ctx := errgroup.WithContext(ctx)
	for _, part := range []func(context.Context) error{
		a.dialer.Run, a.watchPods, a.lease.Run, a.node.Run, a.board.Run, a.followDevices, a.hardware.Run, a.examine, a.pods.Run, a.events.Run,
		a.identity.run, a.runEngine, a.watchEngine, a.engine.RotateLogs, a.watchImages, a.followVolumes, a.runNetwork, a.watchNetwork, a.desires.runSweeps, a.mendRecord,
		a.probes.Run, a.runPods,
	} {
		group.Go(func() error { return part(ctx) })
	}
	err = group.Wait()
	a.client.Close()
	a.network.Close()
	a.board.Close()
	if errors.Is(err, context.Canceled) && ctx.Err() != nil {
		return nil
	}
	return err
}

// runPods lets the workers work once the node's network stands, by the server's
// list or, when that does not come in time, by the record.
func (a *Agent) runPods(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-a.networked:
	}
	patience := time.NewTimer(a.cfg.Patience)
	defer patience.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-a.desires.listed:
	case <-patience.C:
		a.desires.restore()
	}
	return a.workers.Run(ctx)
}

// watchPods keeps what is desired equal to the server's pods.
func (a *Agent) watchPods(ctx context.Context) error {
	for ctx.Err() == nil {
		watch, stop := context.WithCancel(ctx)
		over := make(chan struct{})
		go func() { // ends with watch; over says so
			defer close(over)
			select {
			case <-a.relist:
				stop()
			case <-watch.Done():
			}
		}()
		a.client.WatchPods(watch, a.facts.NodeName, a.desires)
		stop()
		<-over
	}
	return ctx.Err()
}

// meetEpoch takes up the epoch of the server's database where a confirmed
// restore put it in the place of the one that this node knows: from then on the
// server's pods are what is wanted.
func (a *Agent) meetEpoch(epoch string, follows []string) {
	facts := a.record.Facts()
	switch {
	case epoch == facts.Epoch:
		a.health.set(&a.health.database, "")
	case slices.Contains(follows, facts.Epoch):
		facts.Epoch = epoch
		if err := a.record.SetFacts(facts); err != nil {
			a.log.Error("cannot record the server's new database", "epoch", epoch, "err", err)
			return
		}
		a.log.Info("the server's database is a restored backup, which was confirmed", "epoch", epoch)
		a.health.set(&a.health.database, "")
		select {
		case a.relist <- struct{}{}:
		default:
		}
	default:
		a.health.set(&a.health.database, "the server's database is not the one that this node knows: a restored backup, or another cluster's; "+
			"pods that it has not go on here until: edgectl restore --confirm")
	}
	a.node.Look()
}

// knowsEpoch reports whether the server's database is the one that this node
// joined, or its confirmed successor. Before the first answer nothing is known.
func (a *Agent) knowsEpoch() bool {
	epoch := a.client.Epoch()
	return epoch != "" && epoch == a.record.Facts().Epoch
}

// isPodAddress reports whether an address lies in this node's range.
func (a *Agent) isPodAddress(addr netip.Addr) bool {
	prefix, err := netip.ParsePrefix(a.facts.PodCIDR)
	return err == nil && prefix.Contains(addr)
}

// leaseRenewed lets exclusive pods start, and remembers that until a reboot.
func (a *Agent) leaseRenewed() {
	a.desires.lease()
	marker := a.cfg.own("lease-renewed")
	if _, err := os.Stat(marker); err != nil {
		if err := os.WriteFile(marker, nil, 0o600); err != nil {
			a.log.Error("cannot note that the lease was renewed", "err", err)
		}
	}
}

func (a *Agent) leasedSinceBoot() bool {
	_, err := os.Stat(a.cfg.own("lease-renewed"))
	return err == nil
}
