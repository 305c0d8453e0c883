package hw

import (
	"bytes"
	"strconv"
	"strings"
)

// Firmware is what a Raspberry Pi's firmware measures.
type Firmware struct {
	ArmHz      Reading[int64] `json:"armHz"`      // the clock that the cores really have
	CoreMicroV Reading[int64] `json:"coreMicroV"` // the supply of the SoC's core
	PMIC       Reading[PMIC]  `json:"pmic"`       // of a Pi 5 and a CM5
}

// PMIC is what the power chip of a Pi 5 measures.
type PMIC struct {
	Rails       [maxRails]Rail `json:"-"`
	Count       int            `json:"rails"`
	RailsMicroW int64          `json:"railsMicroW"` // of all rails whose current is known
	// BoardMicroW estimates what the board takes, by one user's fit of the rails to a
	// meter (leukipp/touchkio, issue 35): 1.1451 P + 0.5879 W.
	BoardMicroW int64 `json:"boardMicroW"`
	ExtMicroV   int64 `json:"extMicroV"`  // of the 5 V supply; about 4.9 V where it is good
	BattMicroV  int64 `json:"battMicroV"` // of the clock's cell; some mV without one
}

// Rail is one output of the power chip.
type Rail struct {
	Name           string
	MicroA, MicroV int64
}

const maxRails = 16

const (
	clockCommand = "measure_clock arm"
	voltsCommand = "measure_volts core"
	pmicCommand  = "pmic_read_adc"
)

type firmwareMeter struct {
	*reader
	command func(string) (string, error)
	out     Firmware
}

func newFirmwareMeter(r *reader, command func(string) (string, error)) sensor {
	return &firmwareMeter{reader: r, command: command}
}

func (f *firmwareMeter) scan() {}

func (f *firmwareMeter) sample() {
	hz, err := ask(f.command, clockCommand, ParseClock)
	f.out.ArmHz = read(f.reader, clockCommand, hz, err)
	volts, err := ask(f.command, voltsCommand, ParseVolts)
	f.out.CoreMicroV = read(f.reader, voltsCommand, volts, err)
	pmic, err := ask(f.command, pmicCommand, ParsePMIC)
	f.out.PMIC = read(f.reader, pmicCommand, pmic, err)
}

func (f *firmwareMeter) put(s *Snapshot) { s.Firmware = f.out }

func ask[T any](command func(string) (string, error), what string, parse func(string) (T, error)) (T, error) {
	answer, err := command(what)
	if err != nil {
		var none T
		return none, err
	}
	return parse(answer)
}

// ParseClock reads "frequency(48)=657000000", in Hz.
func ParseClock(answer string) (int64, error) {
	name, value, found := strings.Cut(answer, "=")
	if !found || !strings.HasPrefix(strings.TrimSpace(name), "frequency(") {
		return 0, ErrFormat
	}
	return parseInt([]byte(value))
}

// ParseVolts reads "volt=1.3188V", in µV.
func ParseVolts(answer string) (int64, error) {
	value, found := strings.CutPrefix(strings.TrimSpace(answer), "volt=")
	value, unit := strings.CutSuffix(value, "V")
	if !found || !unit {
		return 0, ErrFormat
	}
	return parseFixed([]byte(value), 6)
}

// ParsePMIC reads lines such as "VDD_CORE_A current(7)=1.54489000A" and
// "VDD_CORE_V volt(15)=0.88725180V".
func ParsePMIC(answer string) (p PMIC, err error) {
	data := []byte(answer)
	for len(data) > 0 {
		var line []byte
		line, data = nextLine(data)
		name, what := field(line)
		if len(name) == 0 {
			continue
		}
		kind, value, found := bytes.Cut(trim(what), []byte{'='})
		if !found || len(name) < 3 || len(value) < 2 {
			return PMIC{}, ErrFormat
		}
		micro, err := parseFixed(value[:len(value)-1], 6)
		if err != nil {
			return PMIC{}, err
		}
		rail := string(name[:len(name)-2])
		switch {
		case rail == "EXT5V":
			p.ExtMicroV = micro
		case rail == "BATT":
			p.BattMicroV = micro
		case bytes.HasPrefix(kind, []byte("current(")):
			p.rail(rail).MicroA = micro
		case bytes.HasPrefix(kind, []byte("volt(")):
			p.rail(rail).MicroV = micro
		}
	}
	if p.Count == 0 {
		return PMIC{}, ErrFormat
	}
	for _, r := range p.Rails[:p.Count] {
		p.RailsMicroW += r.MicroA * r.MicroV / 1e6
	}
	p.BoardMicroW = p.RailsMicroW*11451/10000 + 587_900
	return p, nil
}

// rail is the rail of a name, made if it is new; of more than there is room for, the
// last.
func (p *PMIC) rail(name string) *Rail {
	for i := range p.Rails[:p.Count] {
		if p.Rails[i].Name == name {
			return &p.Rails[i]
		}
	}
	if p.Count < maxRails {
		p.Count++
	}
	p.Rails[p.Count-1] = Rail{Name: name}
	return &p.Rails[p.Count-1]
}

// String says the rail's figures: "VDD_CORE 0.887 V 1.545 A".
func (r Rail) String() string {
	unit := func(micro int64) string { return strconv.FormatFloat(float64(micro)/1e6, 'f', 3, 64) }
	return r.Name + " " + unit(r.MicroV) + " V " + unit(r.MicroA) + " A"
}
