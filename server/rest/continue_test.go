package rest_test

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
)

// fill makes ConfigMaps named prefix00 and so on, the even ones labelled even.
func fill(f *fixture, prefix string, n int) {
	for i := range n {
		labels := ""
		if i%2 == 0 {
			labels = `,"labels":{"even":"yes"}`
		}
		f.must(http.StatusCreated, "POST", configmaps, fmt.Sprintf(`{"metadata":{"name":"%s%02d"%s}}`, prefix, i, labels))
	}
}

func itemNames(t *testing.T, a answer) []string {
	t.Helper()
	items, _ := a.at(t, "items").([]any)
	var got []string
	for i := range items {
		got = append(got, a.at(t, "items", i, "metadata", "name").(string))
	}
	return got
}

// TestListInPages: the pages are those of the moment of the first, whatever is
// written between them; once that moment is forgotten the client is told, and
// may go on in the present.
func TestListInPages(t *testing.T) {
	f := serve(t, nil)
	fill(f, "a", 7)
	first := f.must(http.StatusOK, "GET", configmaps+"?limit=3", "")
	if got := fmt.Sprint(itemNames(t, first), first.at(t, "metadata", "remainingItemCount")); got != "[a00 a01 a02] 4" {
		t.Errorf("first page: %s", got)
	}
	token := first.at(t, "metadata", "continue").(string)
	f.must(http.StatusOK, "DELETE", configmaps+"/a04", "")
	f.must(http.StatusCreated, "POST", configmaps, `{"metadata":{"name":"a011"}}`)
	f.must(http.StatusCreated, "POST", configmaps, `{"metadata":{"name":"a99"}}`)

	second := f.must(http.StatusOK, "GET", configmaps+"?limit=3&continue="+token, "")
	if got := fmt.Sprint(itemNames(t, second)); got != "[a03 a04 a05]" {
		t.Errorf("second page: %s", got)
	}
	if first.at(t, "metadata", "resourceVersion") != second.at(t, "metadata", "resourceVersion") {
		t.Error("the pages are of two revisions")
	}
	last := f.must(http.StatusOK, "GET", configmaps+"?continue="+second.at(t, "metadata", "continue").(string), "")
	if got := fmt.Sprint(itemNames(t, last), last.at(t, "metadata", "continue")); got != "[a06] <nil>" {
		t.Errorf("last page: %s", got)
	}

	for i := range 1100 { // more than the store remembers
		f.must(http.StatusOK, "PATCH", configmaps+"/a00", fmt.Sprintf(`{"data":{"n":"%d"}}`, i), "Content-Type", mergePatch)
	}
	gone := f.must(http.StatusGone, "GET", configmaps+"?limit=3&continue="+token, "")
	if gone.at(t, "reason") != "Expired" {
		t.Errorf("an old token: %s", gone.body)
	}
	present := f.must(http.StatusOK, "GET", configmaps+"?continue="+gone.at(t, "metadata", "continue").(string), "")
	if got := fmt.Sprint(itemNames(t, present)); got != "[a03 a05 a06 a99]" {
		t.Errorf("in the present: %s", got)
	}
}

func TestPagesOfASelection(t *testing.T) {
	f := serve(t, nil)
	fill(f, "a", 9)
	var got []string
	for query := "?limit=2&labelSelector=even"; query != ""; {
		page := f.must(http.StatusOK, "GET", configmaps+query, "")
		got = append(got, strings.Join(itemNames(t, page), "+"))
		if page.at(t, "metadata", "remainingItemCount") != nil {
			t.Errorf("how many are left of a selection is not said: %s", page.body)
		}
		query = ""
		if token, ok := page.at(t, "metadata", "continue").(string); ok {
			query = "?limit=2&labelSelector=even&continue=" + url.QueryEscape(token)
		}
	}
	if fmt.Sprint(got) != "[a00+a02 a04+a06 a08]" {
		t.Errorf("pages: %v", got)
	}
}

func TestDeleteCollection(t *testing.T) {
	f := serve(t, nil)
	fill(f, "a", 5)
	f.must(http.StatusCreated, "POST", "/api/v1/namespaces/other/configmaps", `{"metadata":{"name":"a00","labels":{"even":"yes"}}}`)

	dry := f.must(http.StatusOK, "DELETE", configmaps+"?dryRun=All", "")
	if got := fmt.Sprint(itemNames(t, dry)); got != "[a00 a01 a02 a03 a04]" || dry.at(t, "kind") != "ConfigMapList" {
		t.Errorf("dry run: %s", dry.body)
	}
	some := f.must(http.StatusOK, "DELETE", configmaps+"?labelSelector=even", `{"kind":"DeleteOptions","apiVersion":"v1"}`)
	if got := fmt.Sprint(itemNames(t, some)); got != "[a00 a02 a04]" {
		t.Errorf("taken: %s", got)
	}
	if got := fmt.Sprint(itemNames(t, f.must(http.StatusOK, "GET", "/api/v1/configmaps", ""))); got != "[a01 a03 a00]" {
		t.Errorf("left: %s", got)
	}
}
