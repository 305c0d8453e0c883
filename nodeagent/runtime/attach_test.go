package runtime_test

import (
	"bytes"
	"testing"

	"bramble.dev/bramble/nodeagent/runtime"
)

// FuzzDemultiplex feeds what Podman frames of an attached container: what comes
// out is never more than what came in.
func FuzzDemultiplex(f *testing.F) {
	f.Add([]byte("\x01\x00\x00\x00\x00\x00\x00\x02hi\x02\x00\x00\x00\x00\x00\x00\x01!"))
	f.Add([]byte("\x09\x00\x00\x00\xff\xff\xff\xff"))
	f.Fuzz(func(t *testing.T, data []byte) {
		var out, errs bytes.Buffer
		err := runtime.Demultiplex(bytes.NewReader(data), &out, &errs)
		if out.Len()+errs.Len() > len(data) {
			t.Errorf("%d bytes became %d", len(data), out.Len()+errs.Len())
		}
		if bytes.HasPrefix(data, []byte("\x01\x00\x00\x00\x00\x00\x00\x02hi")) && !bytes.HasPrefix(out.Bytes(), []byte("hi")) {
			t.Errorf("%q became %q, %v", data, out.String(), err)
		}
	})
}
