package admission

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// Every field of a pod's spec must be in the table, and the table must name
// nothing else. Where a line says descend, its fields have lines of their own.
func TestEveryFieldOfAPodSpecIsInTheTable(t *testing.T) {
	seen := map[string]bool{}
	var walk func(typ reflect.Type, prefix string)
	walk = func(typ reflect.Type, prefix string) {
		for i := range typ.NumField() {
			f := typ.Field(i)
			name, inline := jsonName(f)
			if inline {
				walk(f.Type, prefix)
				continue
			}
			key := prefix + name
			seen[key] = true
			rule, ok := ruleOf(key)
			if !ok {
				t.Errorf("the table podFields has no line for spec.%s (%s): is it honoured, warned about or refused?", key, f.Type)
				continue
			}
			if rule.verdict == descend {
				elem, deeper := inner(f.Type)
				walk(elem, key+deeper+".")
			}
		}
	}
	walk(reflect.TypeFor[corev1.PodSpec](), "")
	for key := range podFields {
		if !seen[key] {
			t.Errorf("the table podFields has a line for spec.%s, which no pod has", key)
		}
	}
}

func inner(t reflect.Type) (elem reflect.Type, deeper string) {
	for t.Kind() != reflect.Struct {
		if t.Kind() == reflect.Slice {
			deeper += "[]"
		}
		t = t.Elem()
	}
	return t, deeper
}

// Whatever is refused or warned about says so with the field's path and with
// words, and what is honoured is silent.
func TestEachLineOfTheTableWorks(t *testing.T) {
	for key, rule := range podFields {
		if rule.verdict == descend {
			continue
		}
		var spec corev1.PodSpec
		path := set(reflect.ValueOf(&spec).Elem(), strings.Split(key, "."), "spec", !slices.Contains(rule.harmless, any(true)))
		refusals, warnings := unsupportedFields(&spec)
		switch rule.verdict {
		case honoured:
			if len(refusals) > 0 || len(warnings) > 0 {
				t.Errorf("%s is honoured, but: %v %v", path, refusals, warnings)
			}
		case warned:
			if len(refusals) > 0 || len(warnings) != 1 || !strings.HasPrefix(warnings[0], path+": ignored: ") {
				t.Errorf("%s: got errors %v and warnings %q, want one warning", path, refusals, warnings)
			}
		case refused:
			if len(warnings) > 0 || len(refusals) != 1 || refusals[0].Field != path || refusals[0].Detail == "" {
				t.Errorf("%s: got errors %v and warnings %q, want one error", path, refusals, warnings)
			}
		}
	}
}

// set gives the field at the path of names below v a value that is not
// harmless (truth, if it is a bool), and returns its path.
func set(v reflect.Value, names []string, path string, truth bool) string {
	name, isList := strings.CutSuffix(names[0], "[]")
	f := fieldByJSON(v, name)
	path += "." + name
	if isList {
		f.Set(reflect.MakeSlice(f.Type(), 1, 1))
		f, path = f.Index(0), path+"[0]"
	}
	if len(names) > 1 {
		if f.Kind() == reflect.Pointer {
			f.Set(reflect.New(f.Type().Elem()))
			f = f.Elem()
		}
		return set(f, names[1:], path, truth)
	}
	some(f, truth)
	return path
}

func fieldByJSON(v reflect.Value, name string) reflect.Value {
	for i := range v.NumField() {
		switch n, inline := jsonName(v.Type().Field(i)); {
		case inline:
			if f := fieldByJSON(v.Field(i), name); f.IsValid() {
				return f
			}
		case n == name:
			return v.Field(i)
		}
	}
	return reflect.Value{}
}

func some(v reflect.Value, truth bool) {
	switch v.Kind() {
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		some(v.Elem(), truth)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(reflect.Zero(v.Type().Key()), reflect.Zero(v.Type().Elem()))
	case reflect.String:
		v.SetString("other")
	case reflect.Int32, reflect.Int64:
		v.SetInt(7)
	case reflect.Bool:
		v.SetBool(truth)
	}
}

func TestHarmlessValuesPass(t *testing.T) {
	no, yes, zero, none, ordinary := false, true, int32(0), corev1.MountPropagationNone, corev1.DefaultProcMount
	spec := corev1.PodSpec{
		HostUsers: &yes, Priority: &zero, SetHostnameAsFQDN: &no,
		ServiceAccountName: "default", DeprecatedServiceAccount: "default",
		SecurityContext: &corev1.PodSecurityContext{RunAsNonRoot: &no, SupplementalGroups: []int64{}},
		Affinity:        &corev1.Affinity{},
		InitContainers:  []corev1.Container{},
		ReadinessGates:  []corev1.PodReadinessGate{},
		Overhead:        corev1.ResourceList{},
		Containers: []corev1.Container{{
			SecurityContext: &corev1.SecurityContext{Privileged: &no, ProcMount: &ordinary},
			VolumeMounts:    []corev1.VolumeMount{{MountPropagation: &none}},
			Resources:       corev1.ResourceRequirements{Limits: corev1.ResourceList{"cpu": resource.MustParse("1")}},
		}},
	}
	if refusals, warnings := unsupportedFields(&spec); len(refusals) > 0 || len(warnings) > 0 {
		t.Errorf("got errors %v and warnings %q, want none", refusals, warnings)
	}
	unmasked := corev1.UnmaskedProcMount
	spec.HostUsers, spec.Containers[0].SecurityContext.ProcMount = &no, &unmasked
	spec.Containers[0].SecurityContext.Privileged = &yes
	refusals, _ := unsupportedFields(&spec)
	var got []string
	for _, e := range refusals {
		got = append(got, e.Field)
	}
	want := []string{
		"spec.containers[0].securityContext.privileged", "spec.containers[0].securityContext.procMount", "spec.hostUsers",
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("got errors at %q, want at %q", got, want)
	}
}

func TestAFieldThatIsNotInTheTableIsRefused(t *testing.T) {
	w := fieldWalk{}
	w.fields(reflect.ValueOf(struct {
		New string `json:"brandNew"`
	}{"x"}), "", nil)
	if len(w.refusals) != 1 || w.refusals[0].Field != "brandNew" {
		t.Errorf("got %v, want the field refused", w.refusals)
	}
}
