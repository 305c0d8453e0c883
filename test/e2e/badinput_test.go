package e2e

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"bramble.dev/bramble/test/cluster"
)

// TestBadRequests sends what a client gets wrong: each answer is a Status with
// the right code and reason that names what is wrong.
func TestBadRequests(t *testing.T) {
	s := cluster.StartServer(t)
	admin := newCaller(t, s.Config())
	const pods = "/api/v1/namespaces/default/pods"
	const configMaps = "/api/v1/namespaces/default/configmaps"
	pod := func(spec string) string {
		return `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p"},"spec":` + spec + `}`
	}
	const container = `"containers":[{"name":"c","image":"i"}]`
	for _, test := range []struct {
		name, method, path, contentType, body string
		code                                  int
		reason, words                         string // words, separated by |, that the message must have
	}{
		{"malformed JSON", "POST", pods, "application/json", `{"apiVersion": "v1",,}`, 400, "BadRequest", "invalid character ','"},
		{"truncated JSON", "POST", pods, "application/json", `{"apiVersion": "v1"`, 400, "BadRequest", "unexpected"},
		{"malformed YAML", "POST", pods, "application/yaml", "apiVersion: v1\nkind: Pod\n  metadata: {", 400, "BadRequest", "line 3"},
		{"empty body", "POST", pods, "application/json", "", 400, "BadRequest", ""},
		{"a list for an object", "POST", pods, "application/json", "[]", 400, "BadRequest", ""},
		{"unknown media type", "POST", pods, "text/html", "<p>", 415, "UnsupportedMediaType", "application/json|application/yaml"},
		{"unknown field, strict", "POST", pods + "?fieldValidation=Strict", "application/json", pod(`{"contianers":[],` + container + `}`), 400, "BadRequest", `unknown field "spec.contianers"`},
		{"duplicate field, strict", "POST", pods + "?fieldValidation=Strict", "application/json", pod(`{"restartPolicy":"Never","restartPolicy":"Always",` + container + `}`), 400, "BadRequest", `duplicate field "spec.restartPolicy"`},
		{"wrong type", "POST", pods, "application/json", pod(`{"containers":"one"}`), 400, "BadRequest", "containers"},
		{"wrong kind", "POST", pods, "application/json", `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"p"}}`, 400, "BadRequest", "ConfigMap|Pod"},
		{"wrong namespace", "POST", pods, "application/json", `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p","namespace":"other"},"spec":{` + container + `}}`, 400, "BadRequest", "namespace"},
		{"no containers", "POST", pods, "application/json", pod(`{"containers":[]}`), 422, "Invalid", "spec.containers"},
		{"all errors at once", "POST", pods, "application/json", pod(`{"restartPolicy":"Perhaps","containers":[{"name":"A_b","image":""}]}`), 422, "Invalid", "spec.restartPolicy|spec.containers[0].name|spec.containers[0].image"},
		{"name too long", "POST", pods, "application/json", strings.Replace(pod(`{`+container+`}`), `"p"`, `"`+strings.Repeat("n", 254)+`"`, 1), 422, "Invalid", "metadata.name"},
		{"a field not honoured yet", "POST", pods, "application/json", pod(`{"hostPID":true,` + container + `}`), 422, "Invalid", "spec.hostPID"},
		{"unknown failover", "POST", pods, "application/json", `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p","annotations":{"edge.bramble.dev/failover":"hope"}},"spec":{` + container + `}}`, 422, "Invalid", "failover|keep|move|exclusive"},
		{"over 3 MB", "POST", configMaps, "application/json", `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"big"},"data":{"a":"` + strings.Repeat("x", 3<<20) + `"}}`, 413, "RequestEntityTooLarge", ""},
		{"no such namespace", "POST", "/api/v1/namespaces/nowhere/pods", "application/json", pod(`{` + container + `}`), 404, "NotFound", "nowhere"},
		{"unknown group", "GET", "/apis/apps/v1/deployments", "", "", 404, "NotFound", ""},
		{"bad label selector", "GET", pods + "?labelSelector=a%3D%3D%3Db", "", "", 400, "BadRequest", ""},
		{"bad field selector", "GET", pods + "?fieldSelector=spec.colour%3Dred", "", "", 400, "BadRequest", "spec.colour"},
		{"bad revision", "GET", pods + "?resourceVersion=yesterday&watch=true", "", "", 400, "", "resourceVersion|yesterday"},
		{"revision of another database", "GET", pods + "?resourceVersion=99999999999999999&watch=true", "", "", 504, "Timeout", "Too large resource version"},
		{"patch of nothing", "PATCH", pods + "/nosuch", "application/merge-patch+json", "{}", 404, "NotFound", `pods "nosuch" not found`},
		{"unknown patch", "PATCH", pods + "/nosuch", "application/json", "{}", 415, "UnsupportedMediaType", "application/merge-patch+json"},
		{"method not allowed", "PUT", pods, "application/json", "{}", 405, "MethodNotAllowed", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			code, status := admin.send(t, test.method, test.path, test.contentType, test.body)
			if code != test.code || test.reason != "" && string(status.Reason) != test.reason {
				t.Errorf("got %d %s %q, want %d %s", code, status.Reason, status.Message, test.code, test.reason)
			}
			text := status.Message
			if status.Details != nil {
				text += fmt.Sprint(status.Details.Causes)
			}
			for word := range strings.SplitSeq(test.words, "|") {
				if !strings.Contains(text, word) {
					t.Errorf("the message %.300q does not say %q", text, word)
				}
			}
			if status.Kind != "Status" || status.Message == "" {
				t.Errorf("no Status: %+v", status)
			}
		})
	}
	if code, _ := admin.send(t, "GET", configMaps, "", ""); code != http.StatusOK {
		t.Errorf("the server does not answer any more: %d", code)
	}
}

// TestPodsThatCannotRun applies pods that are well formed but cannot run: each
// says why in its status, with the kubelet's reason, and in an event.
func TestPodsThatCannotRun(t *testing.T) {
	t.Parallel()
	s := cluster.StartServer(t)
	s.StartNode(t, "shelf")
	const pod = `
apiVersion: v1
kind: Pod
metadata: {name: %s}
spec:
  terminationGracePeriodSeconds: 0
  containers:
    - {name: c, image: %q, command: [%q]}
%s`
	const volume = "      volumeMounts: [{name: v, mountPath: /v}]\n  volumes: [{name: v, configMap: {name: nosuch}}]"
	tests := []struct{ name, image, command, more, reasons, event string }{
		{"noimage", "127.0.0.1:1/no/such:1", "true", "", "ErrImagePull|ImagePullBackOff", "Failed"},
		{"never", "localhost/never/seen:1", "true", "      imagePullPolicy: Never", "ErrImageNeverPull", "ErrImageNeverPull"},
		{"nocommand", cluster.TestImage, "/no/such/program", "", "RunContainerError|CrashLoopBackOff", "Failed"},
		{"noconfigmap", cluster.TestImage, "true", volume, "ContainerCreating", "FailedMount"},
		{"crash", cluster.TestImage, "false", "", "CrashLoopBackOff", "BackOff"},
	}
	for _, test := range tests {
		more := test.more
		if test.name == "noconfigmap" || test.name == "never" {
			more = strings.TrimPrefix(more, "\n")
		}
		manifest := fmt.Sprintf(pod, test.name, test.image, test.command, more)
		if more != "" {
			manifest = strings.Replace(manifest, fmt.Sprintf("- {name: c, image: %q, command: [%q]}", test.image, test.command),
				fmt.Sprintf("- name: c\n      image: %q\n      command: [%q]", test.image, test.command), 1)
		}
		s.Apply(manifest)
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			cluster.Eventually(t, waitForReason, func() string {
				reason := s.Must("get", "pod", test.name, "-o", "jsonpath={.status.containerStatuses[0].state.waiting.reason}")
				for want := range strings.SplitSeq(test.reasons, "|") {
					if reason == want {
						return ""
					}
				}
				return fmt.Sprintf("reason %q, want %s", reason, test.reasons)
			})
			cluster.Eventually(t, waitForReason, func() string {
				events := s.Must("get", "events", "--field-selector", "involvedObject.name="+test.name, "-o", "jsonpath={range .items[*]}{.reason}{\" \"}{end}")
				if !strings.Contains(" "+events, " "+test.event+" ") {
					return fmt.Sprintf("events %q, want %s", events, test.event)
				}
				return ""
			})
		})
	}
	// The missing object comes: the pod goes on by itself.
	s.Must("create", "configmap", "nosuch", "--from-literal=a=b")
	cluster.Eventually(t, 2*waitForReason, func() string {
		if out := s.Must("get", "pod", "noconfigmap"); !strings.Contains(out, "Completed") && !strings.Contains(out, "CrashLoopBackOff") {
			return out
		}
		return ""
	})
	s.Must("delete", "pods", "--all", "--timeout=60s")
}
