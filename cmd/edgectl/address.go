package main

import (
	"net"
	"net/url"

	"k8s.io/cli-runtime/pkg/genericclioptions"
)

// serverAddress is HOST:PORT of the server that the kubeconfig names.
func serverAddress(flags *genericclioptions.ConfigFlags) string {
	config, err := flags.ToRESTConfig()
	if err != nil {
		return ""
	}
	u, err := url.Parse(config.Host)
	if err != nil || u.Host == "" {
		return config.Host
	}
	if u.Port() == "" {
		return net.JoinHostPort(u.Hostname(), "443")
	}
	return u.Host
}

func isLoopback(host string) bool {
	if host == "localhost" {
		return true
	}
	ip := net.ParseIP(host)
	return ip != nil && ip.IsLoopback()
}
