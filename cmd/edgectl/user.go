package main

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"bramble.dev/bramble/server/api"
)

// userOptions are the flags of user create.
type userOptions struct {
	name, role, clusterRole string
	groups                  []string
	life                    time.Duration
}

func newUser(flags *genericclioptions.ConfigFlags, streams genericiooptions.IOStreams) *cobra.Command {
	user := &cobra.Command{
		Use:   "user",
		Short: "Make a user, and print a kubeconfig for them",
		Args:  onlyCommands,
		Run:   func(c *cobra.Command, _ []string) { _ = c.Help() },
	}
	user.AddCommand(newUserCreate(flags, streams))
	return user
}

func newUserCreate(flags *genericclioptions.ConfigFlags, streams genericiooptions.IOStreams) *cobra.Command {
	var o userOptions
	c := &cobra.Command{
		Use:   "create NAME",
		Short: "Make a certificate for a user, bind a role to them, and print their kubeconfig",
		Long: "Make a certificate for a user, bind a role to them, and print their kubeconfig.\n\n" +
			"The key is made here and goes nowhere but into the kubeconfig: keep that file private, by\n" +
			"umask 077 before. A certificate cannot be taken back before its time (--for), but rights\n" +
			"can: delete the binding that this prints. To renew a certificate, run this again.\n\n" +
			"--role binds in one namespace (-n, or the kubeconfig's): a Role there of that name, or else\n" +
			"the ClusterRole, such as view, edit or admin. --cluster-role binds in the whole cluster, or,\n" +
			"with -n, in that namespace. With neither, the user may do what their groups may.",
		Example: "  # May look at everything in the namespace shop but its Secrets, for 30 days\n" +
			"  edgectl user create ann --role view --namespace shop > ann.kubeconfig\n\n" +
			"  # May change things in shop for a day\n" +
			"  edgectl user create bob --role edit -n shop --for 24h > bob.kubeconfig\n\n" +
			"  # May look at the whole cluster\n" +
			"  edgectl user create carol --cluster-role view > carol.kubeconfig\n\n" +
			"  # A member of a group that has rights of its own; an administrator\n" +
			"  edgectl user create dave --group gardeners > dave.kubeconfig\n" +
			"  edgectl user create erin --group system:masters > erin.kubeconfig\n\n" +
			"  # What may ann do?\n" +
			"  edgectl auth can-i --list --as ann -n shop",
		Args: oneArgument("NAME"),
		Run: func(c *cobra.Command, args []string) {
			o.name = args[0]
			if hint, err := o.check(); err != nil {
				fail(streams, err, hint)
			}
			if err := o.create(c, flags, streams); err != nil {
				fail(streams, fmt.Errorf("cannot create user %s: %w", o.name, err), hintFor(err, "see the roles there are: edgectl get roles,clusterroles"))
			}
		},
	}
	c.Flags().StringSliceVar(&o.groups, "group", nil, "a group that the user is in; may be given again")
	c.Flags().StringVar(&o.role, "role", "", "the Role, or else ClusterRole, to bind in the namespace")
	c.Flags().StringVar(&o.clusterRole, "cluster-role", "", "the ClusterRole to bind in the whole cluster, or in the namespace if -n is given")
	c.Flags().DurationVar(&o.life, "for", 30*24*time.Hour, "how long the certificate is good for, from 10m to 8760h")
	return c
}

// check says what is wrong with the flags, and what to do about it.
func (o *userOptions) check() (hint string, err error) {
	switch {
	case strings.HasPrefix(o.name, "system:"):
		return "choose another name; nodes join by a token, and service accounts have theirs by edgectl create token", fmt.Errorf("%q is one of Kubernetes' own names", o.name)
	case o.role != "" && o.clusterRole != "":
		return "give one, and bind the other by edgectl create rolebinding or clusterrolebinding", errors.New("--role and --cluster-role exclude one another")
	case o.life < 10*time.Minute || o.life > 365*24*time.Hour:
		return "give 10m to 8760h (a year)", fmt.Errorf("--for %v is not served", o.life)
	}
	return "", nil
}

func (o *userOptions) create(c *cobra.Command, flags *genericclioptions.ConfigFlags, streams genericiooptions.IOStreams) error {
	namespace, _, err := flags.ToRawKubeConfigLoader().Namespace()
	if err != nil {
		return err
	}
	b, err := o.binding(c.Context(), flags, namespace, c.Flags().Changed("namespace"))
	if err != nil {
		return err
	}
	keyText, csr, err := o.request()
	if err != nil {
		return err
	}
	var answer api.UserCertificateResponse
	request := api.UserCertificateRequest{CSR: csr, TTLSeconds: int64(o.life / time.Second)}
	if err := call(c.Context(), flags, api.UsersPath, request, &answer); err != nil {
		return err
	}
	if b != nil {
		if err := b.apply(c.Context(), flags); err != nil {
			return err
		}
		fmt.Fprintf(streams.ErrOut, "%s: %s %s for user %s\n", b.describe(), b.ref.Kind, b.ref.Name, o.name)
	}
	text, err := o.kubeconfig(flags, answer, keyText, namespace, c.Flags().Changed("namespace"))
	if err != nil {
		return err
	}
	if _, err := streams.Out.Write(text); err != nil {
		return err
	}
	fmt.Fprintf(streams.ErrOut, "the certificate is good until %s\n", answer.Expires)
	return nil
}

// request makes the user's key and a certificate request that it signs.
func (o *userOptions) request() (key []byte, csr string, err error) {
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, "", fmt.Errorf("cannot make a key: %w", err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		return nil, "", fmt.Errorf("cannot encode the key: %w", err)
	}
	request, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{
		Subject: pkix.Name{CommonName: o.name, Organization: o.groups},
	}, private)
	if err != nil {
		return nil, "", fmt.Errorf("cannot sign the certificate request: %w", err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}),
		string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: request})), nil
}

// kubeconfig is for the same server as ours.
func (o *userOptions) kubeconfig(flags *genericclioptions.ConfigFlags, answer api.UserCertificateResponse, key []byte, namespace string, named bool) ([]byte, error) {
	config, err := flags.ToRESTConfig()
	if err != nil {
		return nil, err
	}
	const cluster = "bramble"
	cfg := clientcmdapi.NewConfig()
	cfg.Clusters[cluster] = &clientcmdapi.Cluster{
		Server: config.Host, TLSServerName: api.ServerName, CertificateAuthorityData: []byte(answer.CA),
	}
	cfg.AuthInfos[o.name] = &clientcmdapi.AuthInfo{ClientCertificateData: []byte(answer.Certificate), ClientKeyData: key}
	context := &clientcmdapi.Context{Cluster: cluster, AuthInfo: o.name}
	if named || o.role != "" {
		context.Namespace = namespace
	}
	cfg.CurrentContext = o.name + "@" + cluster
	cfg.Contexts[cfg.CurrentContext] = context
	return clientcmd.Write(*cfg)
}

// binding is what binds the role to the user, or nil.
func (o *userOptions) binding(ctx context.Context, flags *genericclioptions.ConfigFlags, namespace string, named bool) (*userBinding, error) {
	switch {
	case o.role != "":
		return newUserBinding(ctx, flags, o.name, o.role, namespace, true)
	case o.clusterRole != "" && named:
		return newUserBinding(ctx, flags, o.name, o.clusterRole, namespace, false)
	case o.clusterRole != "":
		return newUserBinding(ctx, flags, o.name, o.clusterRole, "", false)
	}
	return nil, nil
}
