package runtime_test

import (
	"bytes"
	"context"
	"errors"
	"testing"
	"time"

	"bramble.dev/bramble/nodeagent/container"
	"bramble.dev/bramble/nodeagent/runtime"
)

// TestAttachEndsWhenItsClientTakesNoMore of what a container says without end: also
// where the connection to it is kept, for its input.
func TestAttachEndsWhenItsClientTakesNoMore(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	for uid, stdin := range map[string]bool{"u1": false, "u2": true} {
		spec := shell(n.makePod(t, uid), "while echo again; do sleep 0.1; done")
		spec.Stdin = stdin
		id := n.run(t, spec)
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		err := n.Attach(ctx, id, runtime.AttachOptions{Stdin: stdin}, container.Streams{Stdout: &refuser{after: 3}})
		cancel()
		if !errors.Is(err, errRefused) {
			t.Errorf("with input %v: %v", stdin, err)
		}
	}
}

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
