package admission

import (
	"reflect"

	corev1 "k8s.io/api/core/v1"
)

// FieldVerdict is what the table podFields says of one field of a pod's spec,
// for the tests from outside.
type FieldVerdict struct {
	Path     string // below spec, with [] for any index
	Verdict  string // "honoured", "warned" or "refused"
	Words    string
	Harmless []any
}

// PodFieldVerdicts walks a pod's spec in the order of its types. Fields whose
// own fields have lines are not in it.
func PodFieldVerdicts() []FieldVerdict {
	names := map[verdict]string{honoured: "honoured", warned: "warned", refused: "refused"}
	var all []FieldVerdict
	var walk func(typ reflect.Type, prefix string)
	walk = func(typ reflect.Type, prefix string) {
		for f := range typ.Fields() {
			name, inline := jsonName(f)
			if inline {
				walk(f.Type, prefix)
				continue
			}
			rule, _ := ruleOf(prefix + name)
			if rule.verdict == descend {
				elem, deeper := inner(f.Type)
				walk(elem, prefix+name+deeper+".")
				continue
			}
			if _, own := podFields[prefix+name]; !own {
				continue // an init container's, with the line of containers
			}
			all = append(all, FieldVerdict{prefix + name, names[rule.verdict], rule.words, rule.harmless})
		}
	}
	walk(reflect.TypeFor[corev1.PodSpec](), "")
	return all
}
