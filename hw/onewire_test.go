package hw_test

import (
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sys/unix"

	"bramble.dev/bramble/hw"
)

const w1 = "sys/bus/w1/devices/"

// TestOneWire reads probes. The first is of turmoni/temp-probe-exporter, issue 1; the
// bytes at power-on are of the DS18B20's data sheet.
func TestOneWire(t *testing.T) {
	text := func(bytes, sum, milliC string) string {
		return bytes + " : crc=" + bytes[len(bytes)-2:] + " " + sum + "\n" + bytes + " t=" + milliC + "\n"
	}
	for _, test := range []struct {
		file, text string
		want       int64
		err        error
	}{
		{file: "w1_slave", text: text("fb ff 4b 46 7f ff 0c 10 06", "YES", "-312"), want: -312},
		{file: "w1_slave", text: text("72 01 4b 46 7f ff 0e 10 57", "YES", "23125"), want: 23125},
		{file: "w1_slave", text: text("72 01 4b 46 7f ff 0e 10 57", "NO", "23125"), err: hw.ErrImplausible},
		{file: "w1_slave", text: text("50 05 4b 46 7f ff 0c 10 1c", "YES", "85000"), err: hw.ErrImplausible},
		{file: "w1_slave", text: text("00 00 00 00 00 00 00 00 00", "YES", "0"), err: hw.ErrImplausible},
		{file: "w1_slave", text: text("00 00 4b 46 7f ff 0c 10 06", "YES", "0"), want: 0},
		{file: "w1_slave", text: "fb ff 4b 46 7f ff 0c 10 06 : crc=06 YES\n", err: hw.ErrFormat},
		{file: "w1_slave", err: hw.ErrFormat},
		{file: "temperature", text: "-10125\n", want: -10125},
		{file: "temperature", text: "85000\n", err: hw.ErrImplausible},
		{file: "temperature", text: "-127000\n", err: hw.ErrImplausible},
		{file: "temperature", text: "", err: hw.ErrFormat},
	} {
		root := newTree(t, map[string]string{w1 + "28-000005e2fdc3/" + test.file: test.text, w1 + "w1_bus_master1/w1_master_slaves": "28-000005e2fdc3\n", w1 + "29-0000001a2b3c/id": ""})
		board := hw.Open(hw.Config{Root: root})
		s := board.Sample(t.Context())
		board.Close()
		if len(s.OneWire) != 1 || s.OneWire[0].ID != "28-000005e2fdc3" {
			t.Fatalf("got %+v", s.OneWire)
		}
		got, err := s.OneWire[0].MilliC.Get()
		if !errors.Is(err, test.err) || err == nil && got != test.want {
			t.Errorf("%s %q: %d, %v; want %d, %v", test.file, test.text, got, err, test.want, test.err)
		}
		if len(s.Devices) != 2 || s.Devices[0].Stable != "28-000005e2fdc3" {
			t.Errorf("devices %+v", s.Devices)
		}
	}
}

// TestManyProbesDoNotHoldUpOthers has probes take the time that they do take.
func TestManyProbesDoNotHoldUpOthers(t *testing.T) {
	const probes = 8
	files := map[string]string{}
	for i := range probes {
		files[fmt.Sprintf("%s28-%012d/temperature", w1, i)] = fmt.Sprintf("%d\n", 20_000+i)
	}
	root := newTree(t, files)
	synctest.Test(t, func(t *testing.T) {
		board := hw.Open(hw.Config{Root: root, Pread: func(_ string, fd int, p []byte, off int64) (int, error) {
			time.Sleep(750 * time.Millisecond)
			return unix.Pread(fd, p, off)
		}})
		defer board.Close()
		var s hw.Snapshot
		for range 3 {
			began := time.Now()
			s = board.Sample(t.Context())
			if took := time.Since(began); took > 3*time.Second {
				t.Errorf("others waited for %v", took)
			}
		}
		for i, p := range s.OneWire {
			if got, err := p.MilliC.Get(); err != nil || got != int64(20_000+i) {
				t.Errorf("%s: %d, %v", p.ID, got, err)
			}
		}
		if len(s.OneWire) != probes || len(s.Failing) > 0 {
			t.Errorf("%d probes, failing %v", len(s.OneWire), s.Failing)
		}
	})
}
