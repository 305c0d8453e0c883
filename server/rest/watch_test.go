package rest_test

import (
	"bufio"
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"testing"
)

type event struct {
	Type   string
	Object struct {
		Kind, APIVersion string
		Metadata         struct {
			Name, ResourceVersion string
			Annotations           map[string]string
		}
		Code              int
		ColumnDefinitions []any
		Rows              []struct{ Cells []any }
	}
}

// follow opens a watch and returns a function that reads its next event; it
// returns false at the end.
func (f *fixture) follow(path string, headers ...string) (next func() (event, bool), stop func()) {
	f.t.Helper()
	ctx, cancel := context.WithCancel(f.t.Context())
	req, err := http.NewRequestWithContext(ctx, "GET", f.URL+path, nil)
	if err != nil {
		f.t.Fatal(err)
	}
	for i := 0; i+1 < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	resp, err := f.Client().Do(req)
	if err != nil {
		f.t.Fatal(err)
	}
	if resp.StatusCode != http.StatusOK {
		f.t.Fatalf("watch %s: %s", path, resp.Status)
	}
	lines := bufio.NewScanner(resp.Body)
	lines.Buffer(nil, 1<<20)
	f.t.Cleanup(func() { cancel(); resp.Body.Close() })
	return func() (event, bool) {
		var e event
		if !lines.Scan() {
			return e, false
		}
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			f.t.Fatalf("not an event: %s", lines.Text())
		}
		return e, true
	}, cancel
}

func names(f *fixture, next func() (event, bool), n int) string {
	var all []string
	for range n {
		e, ok := next()
		if !ok {
			f.t.Fatal("the watch ended")
		}
		all = append(all, e.Type+" "+e.Object.Metadata.Name)
	}
	return strings.Join(all, ", ")
}

func TestWatch(t *testing.T) {
	eachWay(t, func(t *testing.T, f *fixture) {
		f.must(201, "POST", configmaps, `{"metadata":{"name":"a"}}`)
		list := f.must(200, "GET", configmaps, "")
		rev := list.at(t, "metadata", "resourceVersion").(string)
		whole, _ := f.follow(configmaps + "?watch=true")
		later, _ := f.follow(configmaps + "?watch=true&resourceVersion=" + rev)
		one, _ := f.follow("/api/v1/configmaps?watch=1&fieldSelector=metadata.name%3Db")
		f.must(201, "POST", configmaps, `{"metadata":{"name":"b"}}`)
		f.must(200, "PUT", configmaps+"/b", `{"metadata":{"name":"b"},"data":{"k":"v"}}`)
		f.must(200, "DELETE", configmaps+"/a", "")
		f.must(200, "DELETE", configmaps+"/b", "")
		for what, test := range map[string]struct {
			next func() (event, bool)
			want string
		}{
			"from the state": {whole, "ADDED a, ADDED b, MODIFIED b, DELETED a, DELETED b"},
			"from a list":    {later, "ADDED b, MODIFIED b, DELETED a, DELETED b"},
			"of one":         {one, "ADDED b, MODIFIED b, DELETED b"},
		} {
			if got := names(f, test.next, strings.Count(test.want, ",")+1); got != test.want {
				t.Errorf("%s: got %s, want %s", what, got, test.want)
			}
		}
	})
}

func TestWatchList(t *testing.T) {
	eachWay(t, func(t *testing.T, f *fixture) {
		f.must(201, "POST", configmaps, `{"metadata":{"name":"a"}}`)
		next, _ := f.follow(configmaps + "?watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true")
		if got := names(f, next, 1); got != "ADDED a" {
			t.Errorf("got %s", got)
		}
		mark, ok := next()
		if !ok || mark.Type != "BOOKMARK" || mark.Object.Metadata.Annotations["k8s.io/initial-events-end"] != "true" ||
			mark.Object.Kind != "ConfigMap" || mark.Object.Metadata.ResourceVersion == "" {
			t.Errorf("got %+v", mark)
		}
		f.must(201, "POST", configmaps, `{"metadata":{"name":"b"}}`)
		if got := names(f, next, 1); got != "ADDED b" {
			t.Errorf("got %s", got)
		}
	})
}

func TestWatchEnds(t *testing.T) {
	eachWay(t, func(t *testing.T, f *fixture) {
		next, _ := f.follow(configmaps + "?watch=true&timeoutSeconds=1")
		if e, ok := next(); ok {
			t.Errorf("got %+v", e)
		}
	})
}

func TestWatchOfWhatIsGone(t *testing.T) {
	eachWay(t, func(t *testing.T, f *fixture) {
		f.must(201, "POST", configmaps, `{"metadata":{"name":"a"}}`)
		next, _ := f.follow(configmaps + "?watch=true&resourceVersion=1")
		e, ok := next()
		if !ok || e.Type != "ERROR" || e.Object.Kind != "Status" || e.Object.Code != http.StatusGone {
			t.Errorf("got %v %+v", ok, e)
		}
		if e, ok := next(); ok {
			t.Errorf("the watch went on: %+v", e)
		}
	})
}

func TestWatchRefusals(t *testing.T) {
	eachWay(t, func(t *testing.T, f *fixture) {
		for query, code := range map[string]int{
			"resourceVersion=x":                                 400,
			"timeoutSeconds=soon":                               400,
			"sendInitialEvents=true":                            400,
			"resourceVersionMatch=NotOlderThan":                 400,
			"fieldSelector=spec.x%3D1":                          400,
			"labelSelector=a+b":                                 400,
			"resourceVersion=18446744073709551615":              504,
			"sendInitialEvents=true&resourceVersionMatch=Exact": 400,
		} {
			if a := f.do("GET", configmaps+"?watch=true&"+query, ""); a.code != code {
				t.Errorf("%s: got %d %s", query, a.code, a.body)
			}
		}
	})
}

func TestWatchAsTable(t *testing.T) {
	eachWay(t, func(t *testing.T, f *fixture) {
		f.must(201, "POST", configmaps, `{"metadata":{"name":"a"},"data":{"k":"v"}}`)
		next, _ := f.follow(configmaps+"?watch=true", "Accept", tableMedia)
		f.must(201, "POST", configmaps, `{"metadata":{"name":"b"}}`)
		first, _ := next()
		second, _ := next()
		if first.Object.Kind != "Table" || len(first.Object.ColumnDefinitions) != 4 || first.Object.Rows[0].Cells[0] != "a" {
			t.Errorf("first: %+v", first)
		}
		if len(second.Object.ColumnDefinitions) != 0 || second.Object.Rows[0].Cells[0] != "b" {
			t.Errorf("second: %+v", second)
		}
	})
}

// TestTruthOfParameters: whatever is neither 0 nor false is true, as in Kubernetes.
func TestTruthOfParameters(t *testing.T) {
	f := serve(t, nil)
	for query, watched := range map[string]bool{
		"watch=1": true, "watch": true, "watch=yes": true, "watch=true": true,
		"": false, "watch=0": false, "watch=False": false,
	} {
		a := f.do("GET", configmaps+"?timeoutSeconds=1&"+query, "")
		if list := strings.Contains(a.body, "ConfigMapList"); a.code != 200 || list == watched {
			t.Errorf("%q: got %d %s", query, a.code, a.body)
		}
	}
	f.must(400, "GET", configmaps+"?timeoutSeconds=soon", "")
}
