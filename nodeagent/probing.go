package nodeagent

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"

	"bramble.dev/bramble/nodeagent/network/netapi"
	"bramble.dev/bramble/nodeagent/probe"
)

// dialProbed connects a probe or a hook: to pods through the network process,
// to any other host from the machine itself. That the network process is away is
// not the pod's fault.
func (a *Agent) dialProbed(ctx context.Context, network, address string) (net.Conn, error) {
	to, err := netip.ParseAddrPort(address)
	if err != nil || !a.isPodAddress(to.Addr()) {
		return (&net.Dialer{}).DialContext(ctx, network, address)
	}
	conn, err := a.network.Dial(ctx, to)
	var answer *netapi.Error
	switch {
	case err == nil:
		return conn, nil
	case errors.As(err, &answer) && answer.Status == http.StatusBadGateway:
		return nil, answer // the pod's own refusal, in the kernel's words
	case ctx.Err() != nil:
		return nil, err
	}
	return nil, fmt.Errorf("%w: %w", probe.ErrNoAnswer, err)
}
