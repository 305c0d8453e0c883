package store_test

import (
	"bytes"
	"fmt"
	"os"
	"runtime"
	"strings"
	"sync"
	"testing"
	"unsafe"

	"bramble.dev/bramble/server/store"
)

// text of an object that is worth compressing.
func object(name string) []byte {
	return fmt.Appendf(nil, `{"kind":"Pod","metadata":{"name":%q,"annotations":{"notes":%q}}}`, name, strings.Repeat(name+" says hello. ", 30))
}

func TestBodiesReadAsWritten(t *testing.T) {
	random := make([]byte, 4000)
	for i := range random {
		random[i] = byte(i*i*7919>>5) ^ byte(i*31)
	}
	for name, body := range map[string][]byte{
		"empty": {}, "short": []byte(`{"a":1}`), "typical": object("a"), "large": bytes.Repeat(object("b"), 5000), "dense": random,
	} {
		t.Run(name, func(t *testing.T) {
			b := store.Pack(body)
			for range 2 {
				if !bytes.Equal(b.Bytes(), body) || b.Len() != len(body) {
					t.Fatalf("%d bytes are read as %d: %.80q", len(body), b.Len(), b.Bytes())
				}
				runtime.GC()
				runtime.GC()
			}
		})
	}
	if b := (*store.Body)(nil); b.Bytes() != nil || b.Len() != 0 {
		t.Errorf("nothing is %q", b.Bytes())
	}
}

// Whoever reads at the same time reads the same bytes, and nobody keeps them after.
func TestReadersShareABody(t *testing.T) {
	b := store.Pack(object("a"))
	runtime.GC()
	runtime.GC() // what was written is gone
	all := make([][]byte, 8)
	var readers sync.WaitGroup
	for i := range all {
		readers.Go(func() { all[i] = b.Bytes() })
	}
	readers.Wait()
	for _, one := range all {
		if unsafe.SliceData(one) != unsafe.SliceData(all[0]) {
			t.Fatal("a reader has bytes of its own")
		}
	}
	gone := make(chan struct{})
	runtime.AddCleanup(unsafe.SliceData(all[0]), func(chan<- struct{}) { close(gone) }, gone)
	clear(all)
	for range 5 {
		runtime.GC()
	}
	<-gone
	if !bytes.Equal(b.Bytes(), object("a")) {
		t.Error("it reads otherwise afterwards")
	}
}

// A thousand pods of one kind, as clusters have them, in a fifth of their size.
func TestTypicalObjectsAreStoredSmall(t *testing.T) {
	typical, err := os.ReadFile("testdata/pod.json")
	if err != nil {
		t.Fatal(err)
	}
	const count = 1000
	bodies := make([]*store.Body, count)
	before := heap()
	for i := range bodies {
		bodies[i] = store.Pack(bytes.ReplaceAll(typical, []byte("NUMBER"), fmt.Append(nil, i)))
	}
	each := (heap() - before) / count
	t.Logf("%d bytes are kept in %d", len(typical), each)
	if each > uint64(len(typical)/5) {
		t.Errorf("%d bytes are kept in %d", len(typical), each)
	}
	runtime.KeepAlive(bodies)
}

func heap() uint64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

func BenchmarkPack(b *testing.B) {
	typical, err := os.ReadFile("testdata/pod.json")
	if err != nil {
		b.Fatal(err)
	}
	b.SetBytes(int64(len(typical)))
	for b.Loop() {
		store.Pack(typical)
	}
}

func BenchmarkUnpack(b *testing.B) {
	typical, err := os.ReadFile("testdata/pod.json")
	if err != nil {
		b.Fatal(err)
	}
	body := store.Pack(typical)
	b.SetBytes(int64(len(typical)))
	for b.Loop() {
		body.Unpack()
	}
}
