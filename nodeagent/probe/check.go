package probe

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"bramble.dev/bramble/nodeagent/container"
)

// maxOutput bounds what is kept of a command's output or an answer's body.
const maxOutput = 10 << 10

// outcome is what a probe found.
type outcome struct {
	healthy bool
	warning bool   // healthy, but words should be heard
	words   string // why not healthy
}

func unhealthy(format string, args ...any) outcome {
	return outcome{words: fmt.Sprintf(format, args...)}
}

// check probes once, until ctx's deadline. An error says that the probe could
// not be made.
func (p *Probers) check(ctx context.Context, t container.Target, probe *corev1.Probe) (outcome, error) {
	switch {
	case probe.Exec != nil:
		return p.command(ctx, t, probe.Exec.Command, limitOf(probe))
	case probe.HTTPGet != nil:
		return p.httpGet(ctx, t, probe.HTTPGet)
	case probe.TCPSocket != nil:
		port, err := portOf(t, probe.TCPSocket.Port)
		if err != nil {
			return outcome{}, err
		}
		return p.tcp(ctx, hostOf(t, probe.TCPSocket.Host, port))
	case probe.GRPC != nil:
		service := ""
		if probe.GRPC.Service != nil {
			service = *probe.GRPC.Service
		}
		return p.grpc(ctx, hostOf(t, "", int(probe.GRPC.Port)), service, limitOf(probe))
	}
	return outcome{}, errors.New("missing probe handler")
}

// limitOf is how long a probe may take. Events name it, and not the time that it
// took: equal ones are counted, different ones are kept each.
func limitOf(p *corev1.Probe) time.Duration { return max(time.Second, seconds(p.TimeoutSeconds)) }

func (p *Probers) command(ctx context.Context, t container.Target, command []string, limit time.Duration) (outcome, error) {
	output, code, err := p.cfg.Exec(ctx, t, command, maxOutput)
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return unhealthy("command timed out: %q timed out after %s", strings.Join(command, " "), limit), nil
	case err != nil:
		return outcome{}, err
	case code != 0:
		return unhealthy("%s", output), nil
	}
	return outcome{healthy: true}, nil
}

func (p *Probers) tcp(ctx context.Context, address string) (outcome, error) {
	conn, err := p.cfg.Dial(ctx, "tcp", address)
	if err != nil {
		return failure(err)
	}
	_ = conn.Close() // it was there
	return outcome{healthy: true}, nil
}

// failure is the outcome of a connection's error, unless that says nothing.
func failure(err error) (outcome, error) {
	if errors.Is(err, ErrNoAnswer) {
		return outcome{}, err
	}
	return unhealthy("%v", err), nil
}

// hostOf is where to connect to: the pod, unless host is named.
func hostOf(t container.Target, host string, port int) string {
	if host == "" {
		host = t.Address.String()
	}
	return net.JoinHostPort(host, strconv.Itoa(port))
}

// portOf resolves a port by the container's own names.
func portOf(t container.Target, port intstr.IntOrString) (int, error) {
	number := port.IntValue()
	if port.Type == intstr.String {
		for _, p := range t.Spec.Ports {
			if p.Name == port.StrVal {
				number = int(p.ContainerPort)
			}
		}
	}
	if number < 1 || number > 65535 {
		return 0, fmt.Errorf("container %s has no port %q", t.Spec.Name, port.String())
	}
	return number, nil
}
