package probe

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"bramble.dev/bramble/nodeagent/container"
)

// userAgent is what probes call themselves, as the kubelet's of our API's version do.
const userAgent = "kube-probe/1.37"

// httpGet succeeds with a status from 200 to 399. A redirect is followed on the
// same host; one to another host is a success with a warning. Certificates are
// not verified.
func (p *Probers) httpGet(ctx context.Context, t container.Target, get *corev1.HTTPGetAction) (outcome, error) {
	req, err := request(ctx, t, get)
	if err != nil {
		return outcome{}, err
	}
	res, err := p.client().Do(req)
	if err != nil {
		return failure(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(io.LimitReader(res.Body, maxOutput))
	switch {
	case err != nil:
		return failure(err)
	case res.StatusCode < 200 || res.StatusCode >= 400:
		return unhealthy("HTTP probe failed with statuscode: %d", res.StatusCode), nil
	case res.StatusCode >= 300:
		return outcome{healthy: true, warning: true, words: fmt.Sprintf("Probe terminated redirects, Response body: %s", body)}, nil
	}
	return outcome{healthy: true}, nil
}

// client makes a client for one request, which leaves no connection behind.
func (p *Probers) client() *http.Client {
	return &http.Client{
		Transport: &http.Transport{
			DialContext: p.cfg.Dial, DisableKeepAlives: true, DisableCompression: true,
			TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, // as the kubelet: the pod's certificate is its own affair
			Protocols:       protocols((*http.Protocols).SetHTTP1),
		},
		CheckRedirect: func(req *http.Request, via []*http.Request) error {
			if req.URL.Hostname() != via[0].URL.Hostname() {
				return http.ErrUseLastResponse
			}
			if len(via) >= 10 {
				return errors.New("stopped after 10 redirects")
			}
			return nil
		},
	}
}

func protocols(set func(*http.Protocols, bool)) *http.Protocols {
	var p http.Protocols
	set(&p, true)
	return &p
}

func request(ctx context.Context, t container.Target, get *corev1.HTTPGetAction) (*http.Request, error) {
	port, err := portOf(t, get.Port)
	if err != nil {
		return nil, err
	}
	u, err := url.Parse(get.Path)
	if err != nil {
		u = &url.URL{Path: get.Path}
	}
	u.Scheme, u.Host = strings.ToLower(string(get.Scheme)), hostOf(t, get.Host, port)
	if u.Scheme == "" {
		u.Scheme = "http"
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return nil, err
	}
	for _, h := range get.HTTPHeaders {
		req.Header.Add(h.Name, h.Value)
	}
	if host := req.Header.Get("Host"); host != "" {
		req.Host = host
	}
	if _, said := req.Header["User-Agent"]; !said {
		req.Header.Set("User-Agent", userAgent)
	}
	if _, said := req.Header["Accept"]; !said {
		req.Header.Set("Accept", "*/*")
	}
	return req, nil
}
