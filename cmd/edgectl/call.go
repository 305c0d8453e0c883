package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/rest"
)

// call sends body (nil: a GET) to a path of the API server and decodes the
// answer into result.
func call(ctx context.Context, flags *genericclioptions.ConfigFlags, path string, body, result any) error {
	config, err := flags.ToRESTConfig()
	if err != nil {
		return err
	}
	client, err := rest.UnversionedRESTClientFor(withCodec(config))
	if err != nil {
		return err
	}
	request := client.Get()
	if body != nil {
		data, err := json.Marshal(body)
		if err != nil {
			return err
		}
		request = client.Post().Body(data).SetHeader("Content-Type", "application/json")
	}
	data, err := request.AbsPath(path).Do(ctx).Raw()
	if err != nil {
		return said(data, err)
	}
	return json.Unmarshal(data, result)
}

// said is the server's own error where its answer has one: client-go keeps only
// the code of an answer to a path that it does not know.
func said(answer []byte, err error) error {
	var status metav1.Status
	if json.Unmarshal(answer, &status) != nil || status.Kind != "Status" || status.Message == "" {
		return err
	}
	return &apierrors.StatusError{ErrStatus: status}
}

// fail prints an error and the way out, and ends the program.
func fail(streams genericiooptions.IOStreams, err error, hint string) {
	fmt.Fprintf(streams.ErrOut, "error: %v\nhint: %s\n", reword(err.Error()), hint)
	os.Exit(1)
}

// hintFor says what to do about an error of call.
func hintFor(err error, notFound string) string {
	var status apierrors.APIStatus
	switch {
	case apierrors.IsNotFound(err) && errors.As(err, &status) && isNamespace(status.Status()):
		return "make it: edgectl create namespace " + status.Status().Details.Name
	case apierrors.IsNotFound(err):
		return notFound
	case apierrors.IsInvalid(err):
		return "give what the server's words above allow; see --help of this command"
	case apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err):
		return "ask for the right, or use the administrator's kubeconfig (--kubeconfig, or KUBECONFIG); the server writes it to admin.kubeconfig in its data directory"
	case apierrors.IsBadRequest(err):
		return "see --help of this command for what may be given"
	case errors.Is(err, fs.ErrNotExist):
		return "name a kubeconfig that exists (--kubeconfig, or KUBECONFIG); the server writes one to admin.kubeconfig in its data directory"
	case errors.As(err, &status):
		return "see the server's log"
	default:
		return "check that the server runs and that the kubeconfig (--kubeconfig, or KUBECONFIG) names its address"
	}
}

// isNamespace says whether a status is about a namespace.
func isNamespace(s metav1.Status) bool {
	return s.Details != nil && s.Details.Kind == "namespaces" && s.Details.Name != ""
}

// kubectlHint is what to do about an error of kubectl's that leaves a newcomer
// alone, or "".
func kubectlHint(message string) string {
	switch {
	case strings.Contains(message, "connection to the server localhost:8080 was refused"): // where kubectl looks without a kubeconfig
		return "name a kubeconfig (--kubeconfig, or export KUBECONFIG=FILE); the server writes one to admin.kubeconfig in its data directory"
	case strings.Contains(message, "was refused - did you specify the right host or port?"):
		return "check that the server runs and that the kubeconfig (--kubeconfig, or KUBECONFIG) names its address"
	case strings.Contains(message, "no matches for kind"), strings.Contains(message, "the server doesn't have a resource type"):
		return "see what the server has: edgectl api-resources"
	}
	return ""
}
