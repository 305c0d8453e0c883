package admission_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// writeLimits writes what is refused whatever the kind, in the words of the
// server itself, which is asked for each.
func writeLimits(t *testing.T, doc *bytes.Buffer, handler http.Handler) {
	doc.WriteString("\n## Limits of a request\n\n" +
		"The first is Kubernetes' own. The other limits of a body keep a board from computing\n" +
		"for minutes over one request; no real object comes near them.\n\n" +
		"| what is sent | code | what the client is told |\n|---|---|---|\n")
	const configMap = `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"m"%s},"data":{%s}}`
	const pod = `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p"},"spec":{"containers":[{"name":"c","image":"i",` +
		`"resources":{"limits":{"memory":"%s"}}}]}}`
	for _, row := range []struct {
		what, method, path, body string
		headers                  map[string]string
	}{
		{what: "a body of more than 3 MiB", method: http.MethodPost, path: "/api/v1/namespaces/default/configmaps",
			body: fmt.Sprintf(configMap, "", `"k":"`+strings.Repeat("x", 3<<20)+`"`)},
		{what: "one of more than 256 KiB by a node", method: http.MethodPatch, path: "/api/v1/nodes/n/status",
			headers: map[string]string{"Node": "n", "Content-Type": "application/merge-patch+json"},
			body:    `{"metadata":{"annotations":{"a":"` + strings.Repeat("x", 256<<10) + `"}}}`},
		{what: "129 levels of lists or objects in one another", method: http.MethodPost, path: "/api/v1/namespaces/default/configmaps",
			body: strings.Repeat("[", 129) + strings.Repeat("]", 129)},
		{what: "a list of 4,097 items", method: http.MethodPost, path: "/api/v1/namespaces/default/configmaps",
			body: fmt.Sprintf(configMap, `,"finalizers":[`+strings.Repeat(`"f/f",`, 4096)+`"f/f"]`, "")},
		{what: "an object of 16,385 fields", method: http.MethodPost, path: "/api/v1/namespaces/default/configmaps",
			body: fmt.Sprintf(configMap, "", strings.Repeat(`"k":"",`, 16384)+`"k":""`)},
		{what: "a quantity with an exponent of five digits or more", method: http.MethodPost, path: "/api/v1/namespaces/default/pods",
			body: fmt.Sprintf(pod, "1e99999")},
		{what: "a selector of more than 16 KiB", method: http.MethodGet,
			path: "/api/v1/namespaces/default/pods?labelSelector=" + strings.Repeat("a,", 8193)},
	} {
		r := httptest.NewRequestWithContext(t.Context(), row.method, row.path, strings.NewReader(row.body))
		r.Header.Set("Content-Type", "application/json")
		for name, value := range row.headers {
			r.Header.Set(name, value)
		}
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, r)
		var status metav1.Status
		if err := json.Unmarshal(w.Body.Bytes(), &status); err != nil || status.Status != metav1.StatusFailure {
			t.Errorf("%s: answered %d: %.200s (%v)", row.what, w.Code, w.Body, err)
		}
		fmt.Fprintf(doc, "| %s | %d | %s |\n", row.what, w.Code, status.Message)
	}
	doc.WriteString("\nThe namespaces `default`, `kube-system`, `kube-public` and `kube-node-lease` are always\n" +
		"there, and may not be deleted. A body must have come within a minute.\n\n" +
		"Each user, and each node, has a lane of its own: 32 requests under way, 256 that wait for\n" +
		"that for up to 10 s, 256 watches, logs and other streams. What is more is answered 429\n" +
		"with Retry-After, which Kubernetes' clients heed. Those who show no credentials have a lane\n" +
		"for each address.\n\n" +
		"Connections are bounded as well, nodes' tunnels aside. One too many is let in, and the\n" +
		"oldest of the address or user that has most is closed for it: a client dials again.\n\n" +
		"| what | at most | of each |\n|---|---|---|\n" +
		"| TLS handshakes under way, for 10 s | 1,024 | |\n" +
		"| connections of users: with a client certificate of this cluster | 1,024 | |\n" +
		"| connections of all others | 256 | |\n" +
		"| tunnels | any number | node: 16 |\n" +
		"| connections by HTTP/2; what comes beyond is served by HTTP/1.1 | 64 | address: 16 |\n" +
		"| requests under way on one by HTTP/2 | | user: 32, others: 8 |\n" +
		"| headers of a request, which must have come within 10 s | | user: 64 KiB, others: 16 KiB (431) |\n")
}
