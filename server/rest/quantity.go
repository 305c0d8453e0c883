package rest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"regexp"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
)

// To read the quantity 1e-999999999, or to compare 1e999999999 with 1, takes
// all the memory and time there is. No quantity that is meant has an exponent
// of five digits, so such a body is refused before its quantities are read.
var (
	monstrous       = regexp.MustCompile(`^[+-]?[0-9.]+[eE][+-]?[0-9]{5,}$`)
	monstrousInJSON = regexp.MustCompile(`[0-9.][eE][+-]?[0-9]{5}|\\u`) // or hidden by an escape
	// A Quantity is a message whose only field is a string: tag, length, text. So
	// are others, such as names, of which some begin like a number (a commit's
	// hash): seven digits are taken for a quantity at once, five only where there
	// are more than a few such texts.
	monstrousInProtobuf = regexp.MustCompile(`(?s)\x0a.{1,3}[+-]?[0-9.]+[eE][+-]?[0-9]{7}`)
	largeInProtobuf     = regexp.MustCompile(`(?s)\x0a.{1,3}[+-]?[0-9.]+[eE][+-]?[0-9]{5}`)
	quantityType        = reflect.TypeFor[resource.Quantity]()
)

// fewLarge is how many texts of a protobuf body may look like quantities of five
// and six digits; each costs about a tenth of a second if it is one.
const fewLarge = 16

// hasMonstrous reports whether an object in protobuf has such quantities.
func hasMonstrous(raw []byte) bool {
	return monstrousInProtobuf.Match(raw) || len(largeInProtobuf.FindAllIndex(raw, fewLarge+1)) > fewLarge
}

// checkQuantities looks for such quantities in the JSON of what will become a
// value of obj's type.
func checkQuantities(data []byte, obj any) error {
	if !monstrousInJSON.Match(data) {
		return nil
	}
	var v any
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	if d.Decode(&v) != nil {
		return nil // the decoder proper says why
	}
	return findQuantity(v, reflect.TypeOf(obj), "")
}

func findQuantity(v any, t reflect.Type, path string) error {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t == quantityType {
		if text := fmt.Sprint(v); monstrous.MatchString(strings.TrimSpace(text)) {
			return badRequest("%s: %.40q is larger or smaller than any quantity that can be meant", path, text)
		}
		return nil
	}
	switch v := v.(type) {
	case map[string]any:
		for name, value := range v {
			if to := typeOf(t, name); to != nil {
				if err := findQuantity(value, to, strings.TrimPrefix(path+"."+name, ".")); err != nil {
					return err
				}
			}
		}
	case []any:
		if t.Kind() != reflect.Slice {
			return nil
		}
		for i, value := range v {
			if err := findQuantity(value, t.Elem(), fmt.Sprintf("%s[%d]", path, i)); err != nil {
				return err
			}
		}
	}
	return nil
}

// typeOf is the type of what t has under a name in JSON; nil: nothing.
func typeOf(t reflect.Type, name string) reflect.Type {
	switch t.Kind() {
	case reflect.Map:
		return t.Elem()
	case reflect.Struct:
		for i := range t.NumField() {
			f := t.Field(i)
			tag, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			if tag == name {
				return f.Type
			}
			if tag == "" && f.Anonymous {
				if to := typeOf(f.Type, name); to != nil {
					return to
				}
			}
		}
	}
	return nil
}
