package hw

import (
	"bytes"
	"slices"
	"strings"
	"time"
)

// Probe is a thermometer at a 1-Wire bus.
type Probe struct {
	ID     string         `json:"id"` // its own for ever: "28-000005e2fdc3"
	MilliC Reading[int64] `json:"milliC"`
}

// thermometers are the families of DS18S20, DS1822, DS18B20, DS1825 and DS28EA00.
var thermometers = []string{"10-", "22-", "28-", "3b-", "42-"}

// To read a probe takes 750 ms, by its data sheet; other sensors wait meanwhile. The
// driver tries a bad one again, five times at most (W1_THERM_MAX_TRY).
const (
	oneWireShare    = 2 * time.Second // then the rest of the probes waits for the next time
	oneWireDeadline = oneWireShare + 5*time.Second
	powerOn         = 85_000 // what a probe says that has measured nothing yet
)

type oneWire struct {
	*reader
	found  []Device
	probes []probe
	next   int // is read first
}

type probe struct {
	Probe
	path string
	file *file
}

// newOneWireSource makes a source with the patience that its probes need.
func (b *Board) newOneWireSource() *source {
	return b.newSource(string(OneWire), Medium, func(r *reader) sensor { return &oneWire{reader: r} }).within(oneWireDeadline)
}

const oneWireBus = "sys/bus/w1/devices"

func (o *oneWire) scan() {
	o.found, o.probes, o.next = nil, nil, 0
	for _, name := range o.names(oneWireBus) {
		if strings.HasPrefix(name, "w1_bus_master") {
			continue
		}
		d := o.device(OneWire, name, "")
		d.Stable = d.Name
		o.found = append(o.found, d)
		if !slices.ContainsFunc(thermometers, func(f string) bool { return strings.HasPrefix(name, f) }) {
			continue
		}
		p := probe{Probe: Probe{ID: d.Name}, path: oneWireBus + "/" + name}
		// The newer temperature hides that all bytes were zero: a short circuit.
		if p.file = o.open(p.path, "w1_slave"); p.file == nil {
			p.file = o.open(p.path, "temperature")
		}
		o.probes = append(o.probes, p)
	}
}

// sample reads the probes in turn, as many as may be in one go.
func (o *oneWire) sample() {
	until := o.now() + oneWireShare
	for range o.probes {
		p := &o.probes[o.next]
		o.next = (o.next + 1) % len(o.probes)
		milliC, err := o.measure(p.file)
		p.MilliC = read(o.reader, p.path, milliC, err)
		if o.now() >= until {
			return
		}
	}
}

func (o *oneWire) measure(f *file) (milliC int64, err error) {
	data, err := o.bytes(f)
	if err != nil {
		return 0, err
	}
	if strings.HasSuffix(f.path, "w1_slave") {
		milliC, err = parseW1(data)
	} else {
		milliC, err = parseInt(data)
	}
	if err == nil && (milliC == powerOn || milliC < -55_000 || milliC > 125_000) {
		err = ErrImplausible
	}
	return milliC, err
}

func (o *oneWire) put(s *Snapshot) {
	s.Devices = replace(s.Devices, OneWire, o.found)
	s.OneWire = s.OneWire[:0]
	for i := range o.probes {
		s.OneWire = append(s.OneWire, o.probes[i].Probe)
	}
}

// parseW1 reads w1_slave (Documentation/w1/slaves/w1_therm.rst): the nine bytes of
// the probe and whether their sum is right, and again with the temperature.
//
//	fb ff 4b 46 7f ff 0c 10 06 : crc=06 YES
//	fb ff 4b 46 7f ff 0c 10 06 t=-312
func parseW1(data []byte) (milliC int64, err error) {
	sum, values := nextLine(data)
	_, temperature, found := bytes.Cut(values, []byte("t="))
	switch {
	case !found || !bytes.Contains(sum, []byte("crc=")):
		return 0, ErrFormat
	case !bytes.HasSuffix(trim(sum), []byte("YES")), len(bytes.Trim(sum[:bytes.Index(sum, []byte("crc="))], "0 :")) == 0:
		return 0, ErrImplausible
	}
	return parseInt(temperature)
}
