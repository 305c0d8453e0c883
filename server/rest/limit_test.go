package rest_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// Bodies that cost far more to work on than to send are refused before they do.
func TestBodiesOfBadShape(t *testing.T) {
	f := serve(t, nil)
	const collection, object = "/api/v1/namespaces/default/configmaps", "/api/v1/namespaces/default/configmaps/a"
	f.must(http.StatusCreated, "POST", collection, `{"metadata":{"name":"a"}}`)
	deep := strings.Repeat(`{"a":`, 9000) + "1" + strings.Repeat("}", 9000)
	finalizers := `{"metadata":{"finalizers":[` + strings.Repeat(`"a.b/c",`, 60000) + `"a.b/d"]}}`
	var fields strings.Builder
	for i := range 100_000 {
		fmt.Fprintf(&fields, `"k%d":"v",`, i)
	}
	labels := `{"metadata":{"labels":{` + fields.String() + `"z":"v"}}}`
	yaml := "data:\n  " + strings.NewReplacer(",", "\n  ", ":", ": ").Replace(strings.TrimSuffix(fields.String(), ","))
	for _, test := range []struct{ name, method, path, media, body string }{
		{"deep merge patch", "PATCH", object, "application/merge-patch+json", deep},
		{"deep strategic patch", "PATCH", object, "application/strategic-merge-patch+json", deep},
		{"deep JSON patch", "PATCH", object, "application/json-patch+json", `[{"op":"add","path":"/data","value":` + deep + `}]`},
		{"deep object", "POST", collection, "application/json", deep},
		{"deep YAML", "POST", collection, "application/yaml", deep},
		{"deep apply", "PATCH", object + "?fieldManager=t", "application/apply-patch+yaml", deep},
		{"deep options", "DELETE", object, "application/json", deep},
		{"long list", "PATCH", object, "application/strategic-merge-patch+json", finalizers},
		{"long list, created", "POST", collection, "application/json", finalizers},
		{"many fields", "POST", collection, "application/json", labels},
		{"many fields in YAML", "POST", collection, "application/yaml", yaml},
	} {
		a := f.do(test.method, test.path, test.body, "Content-Type", test.media)
		if a.code != http.StatusRequestEntityTooLarge || !strings.Contains(a.body, "the body") {
			t.Errorf("%s: %d %.200s", test.name, a.code, a.body)
		}
	}
	// What only looks like it is none.
	fine := `{"metadata":{"name":"b"},"data":{"a":"` + strings.Repeat(`[{,\"`, 50000) + `"}}`
	f.must(http.StatusCreated, "POST", collection, fine)
	f.must(http.StatusCreated, "POST", collection, strings.Replace(fine, `"b"`, `"c"`, 1), "Content-Type", "application/yaml")
}

// What YAML costs is known before it is parsed: two megabytes of it take seconds.
func TestYAMLIsBoundedBeforeItIsParsed(t *testing.T) {
	t.Parallel()
	f := serve(t, nil)
	for _, test := range [][3]string{
		{"POST", "/api/v1/namespaces/default/configmaps", "application/yaml"},
		{"PATCH", "/api/v1/namespaces/default/configmaps/a?fieldManager=t", "application/apply-patch+yaml"},
	} {
		a := f.do(test[0], test[1], "a: ["+strings.Repeat("a,", 1<<20)+"]", "Content-Type", test[2])
		if a.code != http.StatusRequestEntityTooLarge || !strings.Contains(a.body, "send it as JSON") {
			t.Errorf("%s: %d %.200s", test[2], a.code, a.body)
		}
	}
}

// deadlines is a connection that notes the deadlines it is given.
type deadlines struct {
	httptest.ResponseRecorder
	read, write []time.Time
}

func (d *deadlines) SetReadDeadline(at time.Time) error {
	d.read = append(d.read, at)
	return nil
}

func (d *deadlines) SetWriteDeadline(at time.Time) error {
	d.write = append(d.write, at)
	return nil
}

// A body has a deadline before anybody is asked who sends it, and none when it
// has come; an answer has one for each piece.
func TestDeadlines(t *testing.T) {
	handler := serve(t, nil).Config.Handler
	const path = "/api/v1/namespaces/default/configmaps"
	send := func(user, method, path, body string) *deadlines {
		d := &deadlines{ResponseRecorder: *httptest.NewRecorder()}
		r := httptest.NewRequestWithContext(t.Context(), method, path, strings.NewReader(body))
		if user != "" {
			r.Header.Set("Test-User", user)
		}
		handler.ServeHTTP(d, r)
		return d
	}
	if d := send("none", "POST", path, "{}"); len(d.read) == 0 || d.read[0].IsZero() {
		t.Errorf("a stranger's body: %d %v", d.Code, d.read)
	}
	d := send("", "POST", path, `{"metadata":{"name":"a"},"data":{"a":"`+strings.Repeat("x", 600_000)+`"}}`)
	if len(d.read) != 2 || !d.read[0].After(time.Now()) || !d.read[1].IsZero() {
		t.Errorf("a body that came: %d %v", d.Code, d.read)
	}
	if len(d.write) < 3 || !d.write[0].After(time.Now()) {
		t.Errorf("its answer: %d %v", d.Code, d.write)
	}
	if d := send("", "GET", path+"/a", ""); len(d.read) != 0 {
		t.Errorf("no body: %d %v", d.Code, d.read)
	}
	// HTTP/2 ends a stream whose deadline passes, also where nothing is being written.
	if d := send("", "GET", path+"?watch=1&timeoutSeconds=1", ""); len(d.write) == 0 || !d.write[len(d.write)-1].IsZero() {
		t.Errorf("a watch that is quiet: %d %v", d.Code, d.write)
	}
	if d := send("", "POST", "/api/v1/namespaces/default/pods/p/proxy/", "stream"); len(d.read) != 0 {
		t.Errorf("a stream to a pod: %d %v", d.Code, d.read)
	}
}
