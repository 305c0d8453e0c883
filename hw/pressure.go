package hw

import (
	"bytes"
	"errors"
	"strings"

	"golang.org/x/sys/unix"
)

// Pressure is how much time is lost by waiting (Documentation/accounting/psi.rst).
type Pressure struct {
	CPU    Reading[Stall] `json:"cpu"`
	Memory Reading[Stall] `json:"memory"`
	IO     Reading[Stall] `json:"io"`
	Hint   string         `json:"hint,omitempty"` // how to have it, where it is not
}

// Stall is the share of time in which some tasks waited, and in which all did.
type Stall struct {
	Some    Share `json:"some"`
	Full    Share `json:"full"`
	HasFull bool  `json:"hasFull"` // Full is told: of the CPU not before Linux 5.13
}

// Share is percent of the time, averaged over as many seconds, and all of it.
type Share struct {
	Avg10       float64 `json:"avg10"`
	Avg60       float64 `json:"avg60"`
	Avg300      float64 `json:"avg300"`
	TotalMicros int64   `json:"totalMicros"` // since the boot
}

type pressure struct {
	*reader
	files [3]*file
	out   Pressure
	hints string
}

var pressureFiles = [3]string{"proc/pressure/cpu", "proc/pressure/memory", "proc/pressure/io"}

func newPressure(r *reader) sensor { return &pressure{reader: r} }

func (p *pressure) scan() {
	for i, path := range pressureFiles {
		p.files[i] = p.open(path)
	}
	p.hints = "kernel without CONFIG_PSI: another one is needed"
	if !strings.Contains(" "+p.text("proc/cmdline")+" ", " psi=1 ") {
		p.hints = "kernel without CONFIG_PSI, or it is off: try psi=1 on its command line (cmdline.txt)"
	}
}

func (p *pressure) sample() {
	out := [3]*Reading[Stall]{&p.out.CPU, &p.out.Memory, &p.out.IO}
	p.out.Hint = ""
	for i, f := range p.files {
		data, err := p.bytes(f)
		var stall Stall
		if err == nil {
			stall, err = parsePressure(data)
		}
		*out[i] = read(p.reader, pressureFiles[i], stall, err)
		switch {
		case errors.Is(err, unix.EOPNOTSUPP):
			p.out.Hint = "pressure is switched off: add psi=1 to cmdline.txt, the kernel's command line, and reboot"
		case errors.Is(err, ErrAbsent) && p.out.Hint == "":
			p.out.Hint = p.hints
		}
	}
}

func (p *pressure) put(s *Snapshot) { s.Pressure = p.out }

// parsePressure reads lines such as "some avg10=0.05 avg60=0.04 avg300=0.00 total=95654990".
func parsePressure(data []byte) (stall Stall, err error) {
	some := false
	for len(data) > 0 {
		var line []byte
		line, data = nextLine(data)
		kind, rest := field(line)
		share, err := parseShare(rest)
		if err != nil {
			return Stall{}, err
		}
		switch string(kind) {
		case "some":
			stall.Some, some = share, true
		case "full":
			stall.Full, stall.HasFull = share, true
		}
	}
	if !some && !stall.HasFull {
		return Stall{}, ErrFormat
	}
	return stall, nil
}

func parseShare(words []byte) (s Share, err error) {
	for {
		var word []byte
		if word, words = field(words); len(word) == 0 {
			return s, nil
		}
		name, value, _ := bytes.Cut(word, []byte{'='})
		n, err := parseFixed(value, 2)
		if err != nil {
			return Share{}, err
		}
		switch string(name) {
		case "avg10":
			s.Avg10 = float64(n) / 100
		case "avg60":
			s.Avg60 = float64(n) / 100
		case "avg300":
			s.Avg300 = float64(n) / 100
		case "total":
			s.TotalMicros = n / 100
		}
	}
}
