package main

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"strings"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"bramble.dev/bramble/cmd/settings"
	"bramble.dev/bramble/nodeagent"
	"bramble.dev/bramble/nodeagent/state"
	"bramble.dev/bramble/server/api"
	"bramble.dev/bramble/server/client"
)

type joinOptions struct {
	server, nodeName, stateDir string
}

func newJoin() *cobra.Command {
	var o joinOptions
	name, _ := os.Hostname() // a missing name is asked for below
	c := &cobra.Command{
		Use:     "join TOKEN",
		Short:   "Make this machine a node of a cluster",
		Long:    "Make this machine a node of a cluster, by a token that `edgectl token create` printed.\nThe token names the cluster's authority, so that no other server is believed.",
		Example: "  bramble-agent join --server 192.0.2.10 bramble1.5f0c...",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return settings.Hint(fmt.Errorf("join needs one token, and got %d", len(args)), "`edgectl token create`, where the cluster is administered, prints the whole command")
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error {
			if err := checkSelf(); err != nil {
				return err
			}
			facts, err := join(c.Context(), o, args[0])
			if err != nil {
				return err
			}
			_, err = fmt.Fprintf(c.OutOrStdout(), "joined as node %s; its pods get addresses of %s\nstart it with: bramble-agent run\n", facts.NodeName, facts.PodCIDR)
			return err
		},
	}
	c.Flags().StringVar(&o.server, "server", "127.0.0.1:6443", "HOST or HOST:PORT of the API server")
	c.Flags().StringVar(&o.nodeName, "node-name", strings.ToLower(name), "the node's name")
	c.Flags().StringVar(&o.stateDir, "state-dir", nodeagent.DefaultStateDir(), "where the node's identity is kept")
	return c
}

// join gets a certificate for this node's key, which a node that joins again
// keeps: the server takes it for the same node. One that was revoked comes back
// with another key.
func join(ctx context.Context, o joinOptions, token string) (state.Facts, error) {
	if o.nodeName == "" {
		return state.Facts{}, settings.Hint(errors.New("this machine has no host name"), "give the node a name by --node-name")
	}
	if err := checkJoined(o.stateDir, o.nodeName); err != nil {
		return state.Facts{}, err
	}
	key, keyPEM, err := nodeKey(o.stateDir)
	if err != nil {
		return state.Facts{}, settings.Hint(err, "run this as the node's own user, or name a directory of that user by --state-dir")
	}
	answer, err := client.Join(ctx, o.server, token, o.nodeName, key)
	if apierrors.HasStatusCause(err, api.CauseKeyRevoked) {
		// The node was revoked and comes back: the old key stays dead.
		if key, keyPEM, err = newNodeKey(o.stateDir); err == nil {
			answer, err = client.Join(ctx, o.server, token, o.nodeName, key)
		}
	}
	if errors.Is(err, client.ErrOtherCA) {
		return state.Facts{}, settings.Hint(err, "give by --server the address of the server that made the token, or make one at this server: edgectl token create")
	}
	var unreached *url.Error
	if errors.As(err, &unreached) {
		return state.Facts{}, settings.Hint(err, "see that bramble-server runs and listens there for other machines (its --listen), and give its address by --server HOST:PORT")
	}
	if err != nil {
		return state.Facts{}, err
	}
	facts := state.Facts{
		NodeName: answer.NodeName, Servers: []string{client.HostPort(o.server)}, Epoch: answer.Epoch,
		PodCIDR: answer.PodCIDR, ClusterCIDR: answer.ClusterCIDR, ServiceCIDR: answer.ServiceCIDR,
		TrustedTime: answer.ServerTime, CertificateIssued: answer.ServerTime,
	}
	identity := state.Identity{Key: keyPEM, Certificate: []byte(answer.Certificate), CA: []byte(answer.CA)}
	return facts, state.Join(o.stateDir, facts, identity)
}

// checkJoined refuses to make another node of one: its pods would be left behind
// under the old name. To join again under the same name renews the identity.
func checkJoined(dir, name string) error {
	record, err := state.Open(dir, slog.New(slog.DiscardHandler))
	if err != nil || record.Facts().NodeName == name {
		return nil // not joined, or not readable: joining makes it anew
	}
	return settings.Hint(fmt.Errorf("this machine is node %s already (%s)", record.Facts().NodeName, dir),
		fmt.Sprintf("to join again under that name: --node-name %s; to make another node of it: stop the agent, edgectl delete node %[1]s, and remove %s", record.Facts().NodeName, dir))
}

// nodeKey returns the key of an earlier join, or a new one.
func nodeKey(dir string) (crypto.Signer, []byte, error) {
	if text, err := state.ReadKey(dir); err == nil {
		if signer, err := parseKey(text); err == nil {
			return signer, text, nil
		}
	}
	return newNodeKey(dir)
}

func newNodeKey(dir string) (crypto.Signer, []byte, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, fmt.Errorf("cannot make the node's key: %w", err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, nil, fmt.Errorf("cannot encode the node's key: %w", err)
	}
	text := pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})
	return key, text, state.KeepKey(dir, text)
}

func parseKey(text []byte) (crypto.Signer, error) {
	block, _ := pem.Decode(text)
	if block == nil {
		return nil, errors.New("no PEM")
	}
	key, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		return nil, err
	}
	signer, ok := key.(crypto.Signer)
	if !ok {
		return nil, fmt.Errorf("a %T does not sign", key)
	}
	return signer, nil
}
