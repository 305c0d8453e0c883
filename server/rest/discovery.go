package rest

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"

	apidiscovery "k8s.io/api/apidiscovery/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"bramble.dev/bramble/server/objects"
)

// discovery holds the documents that say what is served, encoded: by path for
// the plain ones, and the aggregated ones of /api and /apis.
type discovery struct {
	plain      map[string]document
	aggregated map[string]document
}

type document struct {
	body []byte
	etag string
}

// groupVersion is the kinds of one group and version, in the table's order.
type groupVersion struct {
	schema.GroupVersion
	kinds []*objects.Kind
}

func newDiscovery(kinds []*objects.Kind) (*discovery, error) {
	d := &discovery{plain: make(map[string]document), aggregated: make(map[string]document)}
	groups := groupsOf(kinds)
	paths := []string{"/api", "/apis"}
	list := metav1.APIGroupList{TypeMeta: metav1.TypeMeta{Kind: "APIGroupList", APIVersion: "v1"}, Groups: []metav1.APIGroup{}}
	core, named := newAggregate(), newAggregate()
	var fail error
	put := func(docs map[string]document, path string, v any) {
		doc, err := encode(v)
		if err != nil {
			fail = fmt.Errorf("cannot encode %s: %w", path, err)
		}
		docs[path] = doc
	}
	for _, gv := range groups {
		path := "/apis/" + gv.GroupVersion.String()
		if gv.Group == "" {
			path = "/api/" + gv.Version
			core.Items = append(core.Items, aggregateOf(gv))
		} else {
			group := apiGroup(gv.GroupVersion)
			list.Groups = append(list.Groups, group)
			group.TypeMeta = metav1.TypeMeta{Kind: "APIGroup", APIVersion: "v1"}
			put(d.plain, "/apis/"+gv.Group, group)
			paths = append(paths, "/apis/"+gv.Group)
			named.Items = append(named.Items, aggregateOf(gv))
		}
		put(d.plain, path, resourcesOf(gv))
		paths = append(paths, path)
	}
	put(d.plain, "/api", metav1.APIVersions{
		TypeMeta: metav1.TypeMeta{Kind: "APIVersions"}, Versions: []string{"v1"},
		ServerAddressByClientCIDRs: []metav1.ServerAddressByClientCIDR{},
	})
	put(d.plain, "/apis", list)
	put(d.aggregated, "/api", core)
	put(d.aggregated, "/apis", named)
	put(d.plain, "/", metav1.RootPaths{Paths: append(paths, "/livez", "/metrics", "/openapi/v2", "/openapi/v3", "/readyz", "/version")})
	return d, fail
}

func encode(v any) (document, error) {
	body, err := json.Marshal(v)
	sum := sha256.Sum256(body)
	return document{body: append(body, '\n'), etag: `"` + strings.ToUpper(hex.EncodeToString(sum[:])) + `"`}, err
}

// groupsOf gathers kinds by group: one version a group.
func groupsOf(kinds []*objects.Kind) []*groupVersion {
	var all []*groupVersion
	for _, k := range kinds {
		i := slices.IndexFunc(all, func(g *groupVersion) bool { return g.GroupVersion == k.GroupVersion() })
		if i < 0 {
			all = append(all, &groupVersion{GroupVersion: k.GroupVersion()})
			i = len(all) - 1
		}
		all[i].kinds = append(all[i].kinds, k)
	}
	return all
}

func apiGroup(gv schema.GroupVersion) metav1.APIGroup {
	v := metav1.GroupVersionForDiscovery{GroupVersion: gv.String(), Version: gv.Version}
	return metav1.APIGroup{Name: gv.Group, Versions: []metav1.GroupVersionForDiscovery{v}, PreferredVersion: v}
}

func resourcesOf(gv *groupVersion) metav1.APIResourceList {
	list := metav1.APIResourceList{
		TypeMeta: metav1.TypeMeta{Kind: "APIResourceList", APIVersion: "v1"}, GroupVersion: gv.GroupVersion.String(),
		APIResources: []metav1.APIResource{},
	}
	for _, k := range gv.kinds {
		list.APIResources = append(list.APIResources, metav1.APIResource{
			Name: k.Plural, SingularName: k.Singular, Namespaced: k.Namespaced, Kind: k.Kind,
			Verbs: verbsOf(k), ShortNames: k.ShortNames, Categories: k.Categories,
		})
		for _, sub := range k.Subresources {
			r := metav1.APIResource{Name: k.Plural + "/" + sub.Name, Namespaced: k.Namespaced, Kind: k.Kind, Verbs: sub.Verbs}
			if sub.Kind != "" {
				r.Group, r.Version, r.Kind = sub.Group, sub.Version, sub.Kind
			}
			list.APIResources = append(list.APIResources, r)
		}
	}
	return list
}

func newAggregate() *apidiscovery.APIGroupDiscoveryList {
	return &apidiscovery.APIGroupDiscoveryList{
		TypeMeta: metav1.TypeMeta{Kind: "APIGroupDiscoveryList", APIVersion: "apidiscovery.k8s.io/v2"},
		Items:    []apidiscovery.APIGroupDiscovery{},
	}
}

func aggregateOf(gv *groupVersion) apidiscovery.APIGroupDiscovery {
	version := apidiscovery.APIVersionDiscovery{Version: gv.Version, Freshness: apidiscovery.DiscoveryFreshnessCurrent}
	for _, k := range gv.kinds {
		scope := apidiscovery.ScopeCluster
		if k.Namespaced {
			scope = apidiscovery.ScopeNamespace
		}
		r := apidiscovery.APIResourceDiscovery{
			Resource: k.Plural, SingularResource: k.Singular, ResponseKind: responseKind(k.GroupVersionKind),
			Scope: scope, Verbs: verbsOf(k), ShortNames: k.ShortNames, Categories: k.Categories,
		}
		for _, sub := range k.Subresources {
			kind := k.GroupVersionKind
			if sub.Kind != "" {
				kind = sub.GroupVersionKind
			}
			r.Subresources = append(r.Subresources, apidiscovery.APISubresourceDiscovery{
				Subresource: sub.Name, ResponseKind: responseKind(kind), Verbs: sub.Verbs,
			})
		}
		version.Resources = append(version.Resources, r)
	}
	group := apidiscovery.APIGroupDiscovery{Versions: []apidiscovery.APIVersionDiscovery{version}}
	group.Name = gv.Group
	return group
}

func responseKind(gvk schema.GroupVersionKind) *metav1.GroupVersionKind {
	return &metav1.GroupVersionKind{Group: gvk.Group, Version: gvk.Version, Kind: gvk.Kind}
}

const mediaAggregated = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"

// serve answers GET for the discovery documents, 304 where the client has them.
func (d *discovery) serve(w http.ResponseWriter, r *http.Request, in info) error {
	path := strings.TrimSuffix(in.Path, "/")
	if path == "" {
		path = "/"
	}
	doc, ok := d.plain[path]
	if !ok {
		return notFound(in)
	}
	media := mediaJSON
	if aggregated, ok := d.aggregated[path]; ok {
		w.Header().Set("Vary", "Accept")
		if wantsAggregated(r) {
			doc, media = aggregated, mediaAggregated
		}
	}
	if media == mediaJSON {
		if _, err := accepts(r, false); err != nil {
			return err
		}
	}
	w.Header().Set("ETag", doc.etag)
	w.Header().Set("Cache-Control", "public")
	if r.Header.Get("If-None-Match") == doc.etag {
		w.WriteHeader(http.StatusNotModified)
		return nil
	}
	writeBytes(w, http.StatusOK, media, doc.body)
	return nil
}

// wantsAggregated reports whether the client puts the aggregated form first.
func wantsAggregated(r *http.Request) bool {
	for _, c := range parseAccept(r.Header.Values("Accept")) {
		p := c.params
		switch {
		case c.media != mediaJSON:
		case p["as"] == "":
			return false
		case p["as"] == "APIGroupDiscoveryList" && p["g"] == apidiscovery.GroupName && p["v"] == "v2":
			return true
		}
	}
	return false
}
