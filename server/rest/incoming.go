package rest

import "bramble.dev/bramble/server/objects"

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
	if in.opts, err = readWriteOptions(r.Request, optionsKind); err != nil {
		return in, err
	}
	data, media, err := readBody(r.Request)
	if err != nil {
		return in, err
	}
	in.obj = r.kind.New()
	faults, err := decode(data, media, in.obj, r.kind.GroupVersionKind)
	if err != nil {
		return in, err
	}
	in.warnings, err = in.opts.judge(faults, r.kind.GroupVersionKind)
	return in, err
}
