package server_test

import (
	"bufio"
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	apidiscovery "k8s.io/api/apidiscovery/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
)

// samples are what each kind needs beside a name.
var samples = map[string]string{
	"pods":                      `"spec":{"schedulerName":"another","containers":[{"name":"c","image":"i"}]}`,
	"configmaps":                `"data":{"a":"b"}`,
	"secrets":                   `"stringData":{"a":"b"}`,
	"events":                    `"involvedObject":{"kind":"Pod","namespace":"default","name":"p"},"reason":"R","message":"m","type":"Normal"`,
	"leases":                    `"spec":{"holderIdentity":"h"}`,
	"priorityclasses":           `"value":7`,
	"roles":                     `"rules":[]`,
	"clusterroles":              `"rules":[]`,
	"rolebindings":              `"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"ClusterRole","name":"view"}`,
	"clusterrolebindings":       `"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"ClusterRole","name":"view"}`,
	"tokenreviews":              `"spec":{"token":"t"}`,
	"localsubjectaccessreviews": `"spec":{"user":"u","resourceAttributes":{"namespace":"default","verb":"get","resource":"pods"}}`,
	"selfsubjectaccessreviews":  `"spec":{"resourceAttributes":{"verb":"get","resource":"pods"}}`,
	"selfsubjectrulesreviews":   `"spec":{"namespace":"default"}`,
	"subjectaccessreviews":      `"spec":{"user":"u","resourceAttributes":{"verb":"get","resource":"pods"}}`,
}

// kindUnderTest is one kind as discovery names it.
type kindUnderTest struct {
	apidiscovery.APIResourceDiscovery
	t          *testing.T
	client     *http.Client
	apiVersion string
	path       string // of the collection
	sample     string
}

// body is an object of that name with a label.
func (k *kindUnderTest) body(name, label string) string {
	body := `{"apiVersion":"` + k.apiVersion + `","kind":"` + k.ResponseKind.Kind + `","metadata":{"name":"` + name + `","labels":{"verbs":"` + label + `"}}`
	if k.sample != "" {
		body += "," + k.sample
	}
	return body + "}"
}

func (k *kindUnderTest) do(method, path, body, contentType string) (code int, answer string) {
	k.t.Helper()
	req, err := http.NewRequestWithContext(k.t.Context(), method, path, strings.NewReader(body))
	if err != nil {
		k.t.Fatal(err)
	}
	req.Header.Set("Content-Type", contentType)
	resp, err := k.client.Do(req)
	if err != nil {
		k.t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		k.t.Fatal(err)
	}
	return resp.StatusCode, string(text)
}

// must does a request and wants code and, in the answer, all of has.
func (k *kindUnderTest) must(code int, method, path, body, contentType string, has ...string) string {
	k.t.Helper()
	got, answer := k.do(method, path, body, contentType)
	if got != code {
		k.t.Fatalf("%s %s: %d, want %d: %s", method, path, got, code, answer)
	}
	for _, want := range has {
		if !strings.Contains(answer, want) {
			k.t.Errorf("%s %s: no %s in %s", method, path, want, answer)
		}
	}
	return answer
}

const plain, merge, apply = "application/json", "application/merge-patch+json", "application/apply-patch+yaml"

// each verb's request: all of them are made of every kind, and those that discovery
// does not name must be answered 405.
var requests = []struct {
	verb, method string
	named        bool // it is for one object
	contentType  string
}{
	{"create", http.MethodPost, false, plain},
	{"get", http.MethodGet, true, plain},
	{"list", http.MethodGet, false, plain},
	{"update", http.MethodPut, true, plain},
	{"patch", http.MethodPatch, true, merge},
	{"delete", http.MethodDelete, true, plain},
	{"deletecollection", http.MethodDelete, false, plain},
}

// TestEveryVerbOfEveryKind does with each kind what discovery says can be done with it.
func TestEveryVerbOfEveryKind(t *testing.T) {
	r := start(t, t.TempDir(), nil)
	client, err := rest.HTTPClientFor(r.config)
	if err != nil {
		t.Fatal(err)
	}
	for _, root := range []string{"/api", "/apis"} {
		for _, group := range discover(t, client, r.config.Host+root).Items {
			for _, version := range group.Versions {
				for _, resource := range version.Resources {
					apiVersion := strings.TrimPrefix(group.Name+"/"+version.Version, "/")
					path := r.config.Host + root + "/" + apiVersion + "/"
					if resource.Scope == apidiscovery.ScopeNamespace {
						path += "namespaces/default/"
					}
					t.Run(resource.Resource, func(t *testing.T) {
						k := &kindUnderTest{resource, t, client, apiVersion, path + resource.Resource, samples[resource.Resource]}
						k.refusesOtherVerbs()
						switch {
						case slices.Contains(k.Verbs, "list"):
							k.stored()
						case slices.Contains(k.Verbs, "create"):
							k.must(http.StatusCreated, http.MethodPost, k.path, k.body("", ""), plain, `"status":{`)
						default:
							k.computed(r.config.Host)
						}
					})
				}
			}
		}
	}
}

func discover(t *testing.T, client *http.Client, url string) (list apidiscovery.APIGroupDiscoveryList) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Accept", "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList")
	resp, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if err := json.NewDecoder(resp.Body).Decode(&list); err != nil || len(list.Items) == 0 {
		t.Fatalf("%s: %d groups, %v", url, len(list.Items), err)
	}
	return list
}

func (k *kindUnderTest) refusesOtherVerbs() {
	for _, r := range requests {
		if slices.Contains(k.Verbs, r.verb) {
			continue
		}
		path := k.path
		if r.named {
			path += "/v-none"
		}
		k.must(http.StatusMethodNotAllowed, r.method, path, k.body("v-none", "x"), r.contentType, `"MethodNotAllowed"`)
	}
}

// stored takes an object through its life.
func (k *kindUnderTest) stored() {
	one := k.path + "/v-one"
	created := k.must(http.StatusCreated, http.MethodPost, k.path, k.body("v-one", "a"), plain, `"name":"v-one"`)
	var meta metav1.PartialObjectMetadata
	if err := json.Unmarshal([]byte(created), &meta); err != nil {
		k.t.Fatal(err)
	}
	seen := k.watch(meta.ResourceVersion)
	got := k.must(http.StatusOK, http.MethodGet, one, "", plain, `"verbs":"a"`)
	k.must(http.StatusOK, http.MethodGet, k.path, "", plain, `"name":"v-one"`)
	k.must(http.StatusOK, http.MethodPut, one, strings.ReplaceAll(got, `"verbs":"a"`, `"verbs":"b"`), plain, `"verbs":"b"`)
	k.must(http.StatusOK, http.MethodPatch, one, `{"metadata":{"labels":{"verbs":"c"}}}`, merge, `"verbs":"c"`)
	k.must(http.StatusOK, http.MethodPatch, one+"?fieldManager=v&force=true", k.body("v-one", "d"), apply, `"verbs":"d"`)
	if slices.ContainsFunc(k.Subresources, func(s apidiscovery.APISubresourceDiscovery) bool { return s.Subresource == "status" }) {
		now := k.must(http.StatusOK, http.MethodGet, one+"/status", "", plain, `"verbs":"d"`)
		k.must(http.StatusOK, http.MethodPut, one+"/status", now, plain)
		k.must(http.StatusOK, http.MethodPatch, one+"/status", `{"status":{}}`, merge)
	}
	k.must(http.StatusOK, http.MethodDelete, one+"?gracePeriodSeconds=0", "", plain)
	for _, want := range []string{`"type":"MODIFIED"`, `"type":"MODIFIED"`, `"type":"MODIFIED"`, `"type":"DELETED"`} {
		event := <-seen
		for strings.Contains(event, `"MODIFIED"`) && strings.Contains(event, `"Terminating"`) { // a namespace says first that it will go
			event = <-seen
		}
		if !strings.Contains(event, want) || !strings.Contains(event, `"name":"v-one"`) {
			k.t.Errorf("watched %q, want %s", event, want)
		}
	}
	k.must(http.StatusNotFound, http.MethodGet, one, "", plain)
	if !slices.Contains(k.Verbs, "deletecollection") {
		return
	}
	for _, name := range []string{"v-two", "v-three"} {
		k.must(http.StatusCreated, http.MethodPost, k.path, k.body(name, "many"), plain)
	}
	k.must(http.StatusOK, http.MethodDelete, k.path+"?labelSelector=verbs%3Dmany", "", plain)
	if left := k.must(http.StatusOK, http.MethodGet, k.path+"?labelSelector=verbs%3Dmany", "", plain); strings.Contains(left, "v-two") {
		k.t.Errorf("left: %s", left)
	}
}

// watch sends the events of v-one after a revision, until the test ends.
func (k *kindUnderTest) watch(from string) <-chan string {
	req, err := http.NewRequestWithContext(k.t.Context(), http.MethodGet, k.path+"?watch=1&fieldSelector=metadata.name%3Dv-one&resourceVersion="+from, nil)
	if err != nil {
		k.t.Fatal(err)
	}
	resp, err := k.client.Do(req)
	if err != nil {
		k.t.Fatal(err)
	}
	k.t.Cleanup(func() { _ = resp.Body.Close() })
	events := make(chan string, 16) // more than there are
	go func() {
		defer close(events)
		lines := bufio.NewScanner(resp.Body)
		lines.Buffer(nil, 1<<20)
		for lines.Scan() {
			events <- lines.Text()
		}
	}()
	return events
}

// computed asks why a pod is nowhere.
func (k *kindUnderTest) computed(host string) {
	if k.Resource == "nodehardwarehistories" {
		boards := &kindUnderTest{k.APIResourceDiscovery, k.t, k.client, k.apiVersion, host + "/apis/" + k.apiVersion + "/nodehardwares", samples["nodehardwares"]}
		body := strings.Replace(boards.body("v-said", "a"), `"kind":"NodeHardwareHistory"`, `"kind":"NodeHardware"`, 1)
		boards.must(http.StatusCreated, http.MethodPost, boards.path, body, plain)
		eventually(k.t, "what a board said is remembered", func() bool {
			resp, err := k.client.Get(k.path + "/v-said")
			return err == nil && resp.Body.Close() == nil && resp.StatusCode == http.StatusOK
		})
		return
	}
	pods := &kindUnderTest{k.APIResourceDiscovery, k.t, k.client, "v1", host + "/api/v1/namespaces/default/pods", samples["pods"]}
	body := strings.Replace(pods.body("v-placed", "a"), `"kind":"Placement"`, `"kind":"Pod"`, 1)
	pods.must(http.StatusCreated, http.MethodPost, pods.path, body, plain)
	k.must(http.StatusOK, http.MethodGet, k.path+"/v-placed", "", plain, "0/0 nodes fit")
}
