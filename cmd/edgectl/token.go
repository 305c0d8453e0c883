package main

import (
	"fmt"
	"net"
	"net/url"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"bramble.dev/bramble/server/api"
)

func newToken(flags *genericclioptions.ConfigFlags, streams genericiooptions.IOStreams) *cobra.Command {
	token := &cobra.Command{
		Use:   "token",
		Short: "Make a token with which a node joins the cluster",
		Args:  onlyCommands,
		Run:   func(c *cobra.Command, _ []string) { _ = c.Help() },
	}
	token.AddCommand(newTokenCreate(flags, streams))
	return token
}

func newTokenCreate(flags *genericclioptions.ConfigFlags, streams genericiooptions.IOStreams) *cobra.Command {
	var ttl time.Duration
	var uses int
	var server string
	c := &cobra.Command{
		Use:   "create",
		Short: "Make a join token and print the command to run on the node",
		Long: "Make a join token and print the command to run on the node.\n\n" +
			"The token is good for one node (--uses) and one hour (--ttl). It is shown this once;\n" +
			"the server keeps only a hash of it. It carries the hash of the cluster's authority,\n" +
			"so that the node knows its server from an impostor.",
		Example: "  # On any machine with the administrator's kubeconfig\n  edgectl token create --server-address 192.168.1.10:6443",
		Args:    cobra.NoArgs,
		Run: func(c *cobra.Command, _ []string) {
			if hint, err := checkToken(ttl, uses, server); err != nil {
				fail(streams, err, hint)
			}
			var answer api.TokenResponse
			request := api.TokenRequest{TTLSeconds: int64(ttl / time.Second), Uses: uses}
			if err := call(c.Context(), flags, api.TokensPath, request, &answer); err != nil {
				fail(streams, fmt.Errorf("cannot create a token: %w", err), hintFor(err, "the server is no Bramble server"))
			}
			given := server != ""
			if !given {
				server = serverAddress(flags)
			}
			fmt.Fprintf(streams.Out, "bramble-agent join --server %s %s\n", server, answer.Token)
			if host, err := url.Parse("https://" + server); err == nil && isLoopback(host.Hostname()) && !given {
				fmt.Fprintf(streams.ErrOut, "hint: %s reaches this machine only; give the address that nodes reach with --server-address HOST:PORT\n", server)
			}
		},
	}
	c.Flags().DurationVar(&ttl, "ttl", time.Hour, "how long the token is good for")
	c.Flags().IntVar(&uses, "uses", 1, "how many nodes may join with it")
	c.Flags().StringVar(&server, "server-address", "", "HOST:PORT at which the node reaches the server (default: the kubeconfig's)")
	return c
}

// checkToken says what is wrong with the flags, and what to do about it. The
// server has upper limits of its own.
func checkToken(ttl time.Duration, uses int, server string) (hint string, err error) {
	switch {
	case ttl < time.Minute:
		return "give at least 1m", fmt.Errorf("--ttl %v is too short", ttl)
	case uses < 1:
		return "give 1 or more", fmt.Errorf("--uses %d lets no node join", uses)
	case server == "":
		return "", nil
	}
	if host, port, err := net.SplitHostPort(server); err != nil || host == "" || port == "" {
		return "give host and port, such as 192.168.1.10:6443", fmt.Errorf("--server-address %q is not HOST:PORT", server)
	}
	return "", nil
}
