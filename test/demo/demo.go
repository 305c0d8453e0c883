package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"bramble.dev/bramble/test/cluster"
)

const (
	userName = "bramble-demo"
	nodeName = "demo"
	image    = "localhost/bramble/hello:1"
	page     = "/api/v1/namespaces/default/pods/hello:8080/proxy/" // of the pod, through the API
)

// step is one thing that the demo does, and what to do when it fails.
type step struct {
	what, hint string
	do         func(ctx context.Context) error
}

type demo struct {
	root, bin string
	address   string // of the server
	user      *cluster.User
}

func (d *demo) up() []step {
	logs := fmt.Sprintf("see /var/lib/%s/server.log and agent.log; `make demo-stop` starts over", userName)
	return []step{
		{"user " + userName + ", with rootless Podman of its own", "is useradd there (package passwd), and /etc/subuid writable? `make demo-stop` removes a half-made user", d.makeUser},
		{"image " + image + ", from this machine's busybox", "try it by hand: sudo -u " + userName + " podman images", d.makeImage},
		{"server on https://" + d.address, logs + "; another port: DEMO_PORT=26443 make demo", d.startServer},
		{"node " + nodeName + " joins with a one-time token", logs, d.join},
		{"agent of node " + nodeName + ", until it is Ready", logs, d.startAgent},
		{"edgectl apply -f examples/hello.yaml", "see the server's words above; `make demo-stop` starts over", d.apply},
		{"pod hello, until it is Ready", "ask: bin/edgectl --kubeconfig demo.kubeconfig describe pod hello", d.waitPod},
		{"edgectl get pods -o wide", logs, d.show("get", "pods", "-o", "wide")},
		{"edgectl get --raw " + page, logs, d.show("get", "--raw", page)},
		{"edgectl logs hello", logs, d.show("logs", "hello")},
	}
}

func (d *demo) down() []step {
	return []step{
		{"processes, files and user " + userName, "a process of the user may hang: ps -u " + userName, d.removeUser},
		{"demo.kubeconfig", "remove it by hand", func(context.Context) error {
			if err := os.Remove(d.kubeconfig()); err != nil && !os.IsNotExist(err) {
				return err
			}
			return nil
		}},
	}
}

func (d *demo) farewell(verb string) string {
	if verb == "down" {
		return "The demo is gone. What stays are the Debian packages that it installed.\n"
	}
	return "\nAll of it is running. Use it:  export KUBECONFIG=" + d.kubeconfig() +
		"\n                               bin/edgectl get pods -A        (kubectl works as well)" +
		"\n                               bin/edgectl why pod hello\nStop it and clean up:          make demo-stop\n"
}

func (d *demo) kubeconfig() string { return filepath.Join(d.root, "demo.kubeconfig") }

func (d *demo) makeUser(ctx context.Context) (err error) {
	if d.user, err = cluster.MakeUser(ctx, userName); err != nil {
		return err
	}
	return d.installPrograms(ctx)
}

func (d *demo) removeUser(ctx context.Context) error {
	if _, err := user.Lookup(userName); err != nil {
		return nil // there is none
	}
	u, err := cluster.MakeUser(ctx, userName)
	if err != nil {
		return err
	}
	return u.Close()
}

func (d *demo) makeImage(ctx context.Context) error {
	if _, err := d.user.Podman(ctx, "image", "exists", image); err == nil {
		return nil
	}
	return d.user.LoadImageAs(ctx, image)
}

func (d *demo) startServer(ctx context.Context) (err error) {
	// The node knows the server by this address.
	if data, err := os.ReadFile(d.ownKubeconfig()); err == nil && !bytes.Contains(data, []byte(d.address)) {
		return fmt.Errorf("the demo stands already, at another address than %s: `make demo-stop` first", d.address)
	}
	var server *child
	if len(d.pids("bramble-server")) == 0 {
		server, err = d.background("server", "bramble-server", "--data-dir", filepath.Join(d.user.Home, "server"), "--listen", d.address)
		if err != nil {
			return err
		}
	}
	// By the server's own kubeconfig: another one that listens there is not it.
	ready := func(ctx context.Context) bool {
		if d.copyKubeconfig() != nil {
			return false
		}
		_, err := d.edgectl(ctx, "get", "--raw", "/readyz")
		return err == nil
	}
	return server.await(ctx, 20*time.Second, "the server was not ready", ready)
}

func (d *demo) ownKubeconfig() string {
	return filepath.Join(d.user.Home, "server", "admin.kubeconfig")
}

// copyKubeconfig gives the caller, who may have come by sudo, a kubeconfig.
func (d *demo) copyKubeconfig() error {
	data, err := os.ReadFile(d.ownKubeconfig())
	if err != nil {
		return err
	}
	if err := os.WriteFile(d.kubeconfig(), data, 0o600); err != nil {
		return err
	}
	if uid, err := strconv.Atoi(os.Getenv("SUDO_UID")); err == nil {
		return os.Chown(d.kubeconfig(), uid, -1)
	}
	return nil
}

func (d *demo) join(ctx context.Context) error {
	revoked, err := d.edgectl(ctx, "get", "node", nodeName, "-o", `jsonpath={.metadata.annotations.edge\.bramble\.dev/revoked}`)
	if err == nil && revoked == "" {
		return nil // joined before, and not revoked or deleted since
	}
	command, err := d.edgectl(ctx, "token", "create", "--server-address", d.address)
	if err != nil {
		return err
	}
	words := strings.Fields(command)
	token := words[len(words)-1]
	cmd := d.user.Command(ctx, filepath.Join(d.binOfUser(), "bramble-agent"), "join",
		"--state-dir", d.agentDir(), "--server", d.address, "--node-name", nodeName, token)
	if err := output(cmd); err != nil {
		return err
	}
	return d.end(ctx, "bramble-agent") // one that runs goes by what it was before
}

func (d *demo) agentDir() string  { return filepath.Join(d.user.Home, "agent") }
func (d *demo) binOfUser() string { return filepath.Join(d.user.Home, "bin") }

func (d *demo) startAgent(ctx context.Context) (err error) {
	var agent *child
	if len(d.pids("bramble-agent")) == 0 {
		if agent, err = d.background("agent", "bramble-agent", "run", "--state-dir", d.agentDir()); err != nil {
			return err
		}
	}
	err = agent.await(ctx, 40*time.Second, "the node did not register", func(ctx context.Context) bool {
		_, err := d.edgectl(ctx, "get", "node", nodeName)
		return err == nil
	})
	if err != nil {
		return err
	}
	_, err = d.edgectl(ctx, "wait", "--for=condition=Ready", "node/"+nodeName, "--timeout=40s")
	return err
}

func (d *demo) apply(ctx context.Context) error {
	return d.show("apply", "-f", filepath.Join(d.root, "examples/hello.yaml"))(ctx)
}

func (d *demo) waitPod(ctx context.Context) error {
	_, err := d.edgectl(ctx, "wait", "--for=condition=Ready", "pod/hello", "--timeout=60s")
	return err
}

// show runs edgectl and prints what it says.
func (d *demo) show(args ...string) func(context.Context) error {
	return func(ctx context.Context) error {
		out, err := d.edgectl(ctx, args...)
		for line := range strings.Lines(out) {
			fmt.Print("      ", line)
		}
		return err
	}
}

func (d *demo) edgectl(ctx context.Context, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, filepath.Join(d.bin, "edgectl"), append([]string{"--kubeconfig", d.kubeconfig()}, args...)...)
	// Else it were root's, in the home of a caller who came by sudo.
	cmd.Env = append(os.Environ(), "KUBECACHEDIR="+filepath.Join(d.user.Home, "edgectl-cache"))
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return stdout.String(), fmt.Errorf("edgectl %s: %s", strings.Join(args, " "), strings.TrimSpace(stderr.String()))
	}
	return stdout.String(), nil
}
