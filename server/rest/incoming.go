package rest

import (
	"k8s.io/apimachinery/pkg/runtime/schema"

	"bramble.dev/bramble/server/objects"
)

// incoming is an object that a client wants to be written, and how.
type incoming struct {
	obj      objects.Object
	opts     writeOptions
	form     form     // of the answer
	warnings []string // of decoding
}

// readObject reads an object of the request's kind out of its body, and the
// options of its query; optionsKind is as for readWriteOptions. Whether the
// object fits its address is for the caller to check.
func readObject(r *request, optionsKind string) (in incoming, err error) {
	if in.form, err = accepts(r.Request, true); err != nil {
		return in, err
	}
	in.obj = r.kind.New()
	in.opts, in.warnings, err = readInto(r, optionsKind, in.obj, r.kind.GroupVersionKind)
	return in, err
}

// readInto reads the request's body into obj, which is of kind gvk, and the options
// of its query, by which it judges what is wrong with the body: an error, or
// warnings.
func readInto(r *request, optionsKind string, obj any, gvk schema.GroupVersionKind) (opts writeOptions, warnings []string, err error) {
	if opts, err = readWriteOptions(r.Request, optionsKind); err != nil {
		return opts, nil, err
	}
	data, media, err := readBody(r.Request)
	if err != nil {
		return opts, nil, err
	}
	faults, err := decode(data, media, obj, gvk)
	if err != nil {
		return opts, nil, err
	}
	warnings, err = opts.judge(faults, gvk)
	return opts, warnings, err
}
