package hw

// Supply is a power supply that the kernel knows: the mains, a battery, a UPS
// (Documentation/ABI/testing/sysfs-class-power).
type Supply struct {
	Name    string          `json:"name"`
	Type    string          `json:"type"`   // "Mains", "Battery", "UPS", "USB"
	Own     bool            `json:"own"`    // it feeds the board, and not a mouse
	Status  Reading[string] `json:"status"` // "Charging", "Discharging", "Not charging", "Full", "Unknown"
	Online  Reading[int64]  `json:"online"` // 1: of the mains, that there is power
	Present Reading[int64]  `json:"present"`
	Percent Reading[int64]  `json:"percent"`
	MicroV  Reading[int64]  `json:"microV"`
	MicroA  Reading[int64]  `json:"microA"`
}

// Power is what feeds the board.
type Power struct {
	Supplies  []Supply `json:"supplies,omitempty"`
	OnBattery bool     `json:"onBattery"` // a battery of its own is discharging
}

type supplies struct {
	*reader
	supplies []supply
}

type supply struct {
	Supply
	status  *file
	numbers [5]*file // in the order of supplyFiles
}

var supplyFiles = [5]string{"online", "present", "capacity", "voltage_now", "current_now"}

func newSupplies(r *reader) sensor { return &supplies{reader: r} }

func (p *supplies) scan() {
	const class = "sys/class/power_supply"
	p.supplies = nil
	for _, name := range p.names(class) {
		k := supply{status: p.open(class, name, "status")}
		k.Name, k.Type = printable([]byte(name)), p.text(class, name, "type")
		k.Own = p.text(class, name, "scope") != "Device"
		for i, file := range supplyFiles {
			k.numbers[i] = p.open(class, name, file)
		}
		p.supplies = append(p.supplies, k)
	}
}

func (p *supplies) sample() {
	for i := range p.supplies {
		k := &p.supplies[i]
		status, err := p.bytes(k.status)
		now := k.Status.Value
		if err == nil && string(status) != now {
			now = printable(status)
		}
		k.Status = read(p.reader, "status", now, err)
		for n, to := range [5]*Reading[int64]{&k.Online, &k.Present, &k.Percent, &k.MicroV, &k.MicroA} {
			value, err := p.integer(k.numbers[n])
			if err == nil && n == 2 && (value < 0 || value > 100) {
				err = ErrImplausible
			}
			*to = read(p.reader, supplyFiles[n], value, err)
		}
	}
}

func (p *supplies) put(s *Snapshot) {
	s.Power.Supplies, s.Power.OnBattery = s.Power.Supplies[:0], false
	for i := range p.supplies {
		k := &p.supplies[i].Supply
		s.Power.Supplies = append(s.Power.Supplies, *k)
		if k.Battery() && k.Status.OK() && k.Status.Value == "Discharging" {
			s.Power.OnBattery = true
		}
	}
}

// Battery says whether it can feed the board for a while.
func (k Supply) Battery() bool {
	return k.Own && (k.Type == "Battery" || k.Type == "UPS") && (!k.Present.OK() || k.Present.Value != 0)
}

// Least is the battery or UPS with the least charge; nil if there is none.
func (p Power) Least() *Supply {
	var least *Supply
	for i := range p.Supplies {
		if k := &p.Supplies[i]; k.Battery() && (least == nil || k.Percent.OK() && k.Percent.Value < least.Percent.Value) {
			least = k
		}
	}
	return least
}
