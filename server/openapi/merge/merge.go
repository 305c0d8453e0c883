// Package merge is the compact JSON form in which the schema of server-side
// apply is embedded: structured-merge-diff's own form is YAML, whose parsing
// took the server longer than all else at its start. Package openapi reads it,
// its generator writes it.
package merge

import (
	"sigs.k8s.io/structured-merge-diff/v6/schema"
)

// Document is a schema, and which of its types each kind is: by
// "GROUP/VERSION KIND", as in "v1 Pod".
type Document struct {
	Kinds map[string]string `json:"kinds"`
	Types []Type            `json:"types"`
}

// Type is schema.TypeDef.
type Type struct {
	Name string `json:"n"`
	Atom
}

// Atom is schema.Atom: any of the three.
type Atom struct {
	Scalar string `json:"s,omitempty"`
	List   *List  `json:"l,omitempty"`
	Map    *Map   `json:"m,omitempty"`
}

// List is schema.List.
type List struct {
	Element      Ref      `json:"e"`
	Relationship string   `json:"r,omitempty"`
	Keys         []string `json:"k,omitempty"`
}

// Map is schema.Map, without unions: Kubernetes' types have none.
type Map struct {
	Fields       []Field `json:"f,omitempty"`
	Element      Ref     `json:"e"`
	Relationship string  `json:"r,omitempty"`
}

// Field is schema.StructField. Default is kept where it is a scalar: merging
// asks for those of keys only.
type Field struct {
	Name    string `json:"n"`
	Type    Ref    `json:"t"`
	Default any    `json:"d,omitempty"`
}

// Ref is schema.TypeRef.
type Ref struct {
	Named        string `json:"n,omitempty"`
	Inlined      *Atom  `json:"i,omitempty"`
	Relationship string `json:"r,omitempty"`
	Nullable     bool   `json:"0,omitempty"`
}

// Pack turns a schema's types into their compact form.
func Pack(types []schema.TypeDef) []Type {
	out := make([]Type, len(types))
	for i, t := range types {
		out[i] = Type{Name: t.Name, Atom: packAtom(t.Atom)}
	}
	return out
}

func packAtom(a schema.Atom) Atom {
	var out Atom
	if a.Scalar != nil {
		out.Scalar = string(*a.Scalar)
	}
	if l := a.List; l != nil {
		out.List = &List{Element: packRef(l.ElementType), Relationship: string(l.ElementRelationship), Keys: l.Keys}
	}
	if m := a.Map; m != nil {
		out.Map = &Map{Element: packRef(m.ElementType), Relationship: string(m.ElementRelationship)}
		for _, f := range m.Fields {
			out.Map.Fields = append(out.Map.Fields, Field{Name: f.Name, Type: packRef(f.Type), Default: scalarOnly(f.Default)})
		}
	}
	return out
}

func scalarOnly(v any) any {
	switch v.(type) {
	case string, bool, float64, int64, int:
		return v
	}
	return nil
}

func packRef(r schema.TypeRef) Ref {
	out := Ref{Nullable: r.Nullable}
	if r.NamedType != nil {
		out.Named = *r.NamedType
	}
	if r.ElementRelationship != nil {
		out.Relationship = string(*r.ElementRelationship)
	}
	if a := packAtom(r.Inlined); a != (Atom{}) {
		out.Inlined = &a
	}
	return out
}

// Unpack is the inverse of Pack.
func Unpack(types []Type) []schema.TypeDef {
	out := make([]schema.TypeDef, len(types))
	for i, t := range types {
		out[i] = schema.TypeDef{Name: t.Name, Atom: unpackAtom(t.Atom)}
	}
	return out
}

func unpackAtom(a Atom) schema.Atom {
	var out schema.Atom
	if a.Scalar != "" {
		scalar := schema.Scalar(a.Scalar)
		out.Scalar = &scalar
	}
	if l := a.List; l != nil {
		out.List = &schema.List{
			ElementType: unpackRef(l.Element), ElementRelationship: schema.ElementRelationship(l.Relationship), Keys: l.Keys,
		}
	}
	if m := a.Map; m != nil {
		out.Map = &schema.Map{ElementType: unpackRef(m.Element), ElementRelationship: schema.ElementRelationship(m.Relationship)}
		for _, f := range m.Fields {
			out.Fields = append(out.Fields, schema.StructField{Name: f.Name, Type: unpackRef(f.Type), Default: f.Default})
		}
	}
	return out
}

func unpackRef(r Ref) schema.TypeRef {
	out := schema.TypeRef{Nullable: r.Nullable}
	if r.Named != "" {
		out.NamedType = &r.Named
	}
	if r.Relationship != "" {
		relationship := schema.ElementRelationship(r.Relationship)
		out.ElementRelationship = &relationship
	}
	if r.Inlined != nil {
		out.Inlined = unpackAtom(*r.Inlined)
	}
	return out
}
