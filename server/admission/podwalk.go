package admission

import (
	"reflect"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// unsupportedFields walks what is set in spec by the table podFields. A field
// that the table does not name is refused: it is newer than this program.
func unsupportedFields(spec *corev1.PodSpec) (refusals field.ErrorList, warnings []string) {
	w := fieldWalk{}
	w.fields(reflect.ValueOf(spec).Elem(), "", field.NewPath("spec"))
	return w.refusals, w.warnings
}

type fieldWalk struct {
	refusals field.ErrorList
	warnings []string
}

// fields judges each field of the struct v, which lies at path and whose
// fields' keys in the table begin with prefix.
func (w *fieldWalk) fields(v reflect.Value, prefix string, path *field.Path) {
	for i := range v.NumField() {
		name, inline := jsonName(v.Type().Field(i))
		if inline {
			w.fields(v.Field(i), prefix, path)
			continue
		}
		if !v.Field(i).IsZero() {
			w.judge(v.Field(i), prefix+name, path.Child(name))
		}
	}
}

func (w *fieldWalk) judge(v reflect.Value, key string, path *field.Path) {
	rule, known := ruleOf(key)
	switch {
	case !known:
		w.refusals = append(w.refusals, field.Forbidden(path, "this version does not know the field; remove it"))
	case rule.verdict == descend:
		w.inside(v, key, path)
	case rule.verdict == honoured || rule.allows(v):
	case rule.verdict == warned:
		w.warnings = append(w.warnings, path.String()+": ignored: "+rule.words)
	default:
		w.refusals = append(w.refusals, field.Forbidden(path, rule.words))
	}
}

func (w *fieldWalk) inside(v reflect.Value, key string, path *field.Path) {
	switch v.Kind() {
	case reflect.Pointer:
		w.inside(v.Elem(), key, path)
	case reflect.Slice:
		for i := range v.Len() {
			w.inside(v.Index(i), key+"[]", path.Index(i))
		}
	default:
		w.fields(v, key+".", path)
	}
}

// allows reports whether v asks for nothing but what happens anyway. An empty
// list or map asks for nothing.
func (r fieldRule) allows(v reflect.Value) bool {
	if (v.Kind() == reflect.Slice || v.Kind() == reflect.Map) && v.Len() == 0 {
		return true
	}
	if v.Kind() == reflect.Pointer {
		v = v.Elem()
	}
	for _, h := range r.harmless {
		if want := reflect.ValueOf(h); v.CanConvert(want.Type()) && v.Convert(want.Type()).Equal(want) {
			return true
		}
	}
	return false
}

// jsonName is the field's name on the wire; inline says that it has none and
// that its own fields take its place.
func jsonName(f reflect.StructField) (name string, inline bool) {
	name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
	return name, f.Anonymous && (name == "" || options == "inline")
}
