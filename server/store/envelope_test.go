package store_test

import (
	"bytes"
	"testing"

	"bramble.dev/bramble/server/store"
)

func FuzzUnseal(f *testing.F) {
	f.Add(store.Seal([]byte(`{"kind":"Pod"}`)))
	f.Add([]byte{})
	f.Add([]byte{1})
	f.Add([]byte{1, 0x80})
	f.Add([]byte{1, 0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1})
	f.Add([]byte{2, 0, 1, '{', '}'})
	f.Fuzz(func(t *testing.T, b []byte) {
		body, err := store.Unseal(b)
		if err != nil {
			if body != nil {
				t.Error("a body with an error")
			}
			return
		}
		if len(body) == 0 || !bytes.HasSuffix(b, body) {
			t.Errorf("%x has body %x", b, body)
		}
		if again, err := store.Unseal(store.Seal(body)); err != nil || !bytes.Equal(again, body) {
			t.Errorf("%x became %x, %v", body, again, err)
		}
	})
}
