package rest

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// proxy serves pods/NAME/proxy/...: the request goes on to the pod's own
// address, through the tunnel to its node.
func (s *server) proxy(w http.ResponseWriter, r *request) error {
	scheme, name, port, err := splitProxyName(r.Name)
	if err != nil {
		return err
	}
	pod, node, err := s.boundPod(r, name)
	if err != nil {
		return err
	}
	address, err := podAddress(pod, port)
	if err != nil {
		return err
	}
	if r.Tail == "" && r.Method == http.MethodGet {
		// Relative links of the pod's pages need the slash.
		to := *r.URL
		to.Path += "/"
		w.Header().Set("Location", to.String())
		w.WriteHeader(http.StatusMovedPermanently)
		return nil
	}
	transport := &http.Transport{
		DisableKeepAlives: true, // a connection a request: nothing stays behind
		DialContext: func(_ context.Context, _, _ string) (net.Conn, error) {
			return dialPod(r.Context(), node, address) // which ends with the client; the other does not
		},
	}
	proxy := &httputil.ReverseProxy{
		Transport:     transport,
		FlushInterval: -1, // streams pass as they come
		Rewrite: func(p *httputil.ProxyRequest) {
			p.Out.URL = &url.URL{Scheme: scheme, Host: address, Path: r.Tail, RawQuery: p.In.URL.RawQuery}
			p.Out.Host = address
			p.Out.Header.Del("Authorization") // the server's business, not the pod's
			p.SetXForwarded()
		},
		ErrorHandler: func(w http.ResponseWriter, req *http.Request, err error) {
			s.writeError(w, req, podUnreachable(pod, address, err))
		},
	}
	w.Header().Del("Date") // the pod's own is sent
	proxy.ServeHTTP(w, r.Request)
	return nil
}

// splitProxyName takes "[SCHEME:]NAME[:PORT]" apart.
func splitProxyName(s string) (scheme, name, port string, err error) {
	parts := strings.Split(s, ":")
	switch len(parts) {
	case 1:
		return "http", parts[0], "", nil
	case 2:
		return "http", parts[0], parts[1], nil
	case 3:
		if parts[0] == "" || parts[0] == "http" {
			return "http", parts[1], parts[2], nil
		}
		return "", "", "", badRequest("invalid pod request %q: scheme %q is not served, only http", s, parts[0])
	}
	return "", "", "", badRequest("invalid pod request %q: must be NAME, NAME:PORT or SCHEME:NAME:PORT", s)
}

// podAddress is the pod's IP and the port that is meant: a number, a port's
// name, or else the first that a container names.
func podAddress(pod *corev1.Pod, port string) (string, error) {
	if pod.Status.PodIP == "" {
		return "", unavailable("pod %s has no address yet: wait until it is Running", pod.Name)
	}
	number, err := strconv.ParseUint(port, 10, 16)
	if err == nil {
		return net.JoinHostPort(pod.Status.PodIP, strconv.FormatUint(number, 10)), nil
	}
	for _, c := range pod.Spec.Containers {
		for _, p := range c.Ports {
			if port == "" || p.Name == port {
				return net.JoinHostPort(pod.Status.PodIP, strconv.Itoa(int(p.ContainerPort))), nil
			}
		}
	}
	if port == "" {
		return net.JoinHostPort(pod.Status.PodIP, "80"), nil
	}
	return "", badRequest("pod %s has no port named %q", pod.Name, port)
}

func podUnreachable(pod *corev1.Pod, address string, err error) error {
	if _, known := statusOf(err); known {
		return err
	}
	return unavailable("error trying to reach pod %s at %s on node %s: %v", pod.Name, address, pod.Spec.NodeName, err)
}

// dialPod opens a raw stream to a pod's address by the agent's /dial.
func dialPod(ctx context.Context, node http.RoundTripper, address string) (net.Conn, error) {
	target := url.URL{Scheme: "http", Host: nodeHost, Path: "/dial", RawQuery: url.Values{"address": {address}}.Encode()}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, target.String(), nil)
	if err != nil {
		return nil, fmt.Errorf("cannot dial %s: %w", address, err)
	}
	req.Header.Set("Connection", "Upgrade")
	req.Header.Set("Upgrade", "tcp")
	resp, err := node.RoundTrip(req)
	if err != nil {
		return nil, fmt.Errorf("cannot dial %s: %w", address, err)
	}
	if resp.StatusCode != http.StatusSwitchingProtocols {
		defer resp.Body.Close()
		return nil, fmt.Errorf("cannot dial %s: %w", address, nodeError("of the pod", resp))
	}
	stream, ok := resp.Body.(io.ReadWriteCloser)
	if !ok {
		resp.Body.Close()
		return nil, fmt.Errorf("cannot dial %s: the node's stream takes no data", address)
	}
	return streamConn{stream}, nil
}

// streamConn makes a net.Conn of an upgraded stream. It has no deadlines:
// http.Transport, its only user, closes it instead.
type streamConn struct{ io.ReadWriteCloser }

type streamAddr struct{}

func (streamAddr) Network() string { return "bramble" }
func (streamAddr) String() string  { return "pod" }

func (streamConn) LocalAddr() net.Addr              { return streamAddr{} }
func (streamConn) RemoteAddr() net.Addr             { return streamAddr{} }
func (streamConn) SetDeadline(time.Time) error      { return nil }
func (streamConn) SetReadDeadline(time.Time) error  { return nil }
func (streamConn) SetWriteDeadline(time.Time) error { return nil }
