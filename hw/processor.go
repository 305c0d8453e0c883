package hw

// processor reads how busy the cores are (proc_stat(5), proc_loadavg(5)).
type processor struct {
	*reader
	stat, loadavg *file
	busy, all     uint64 // of the sample before, in USER_HZ
	out           CPU    // Busy and Load1
}

func newProcessor(r *reader) sensor { return &processor{reader: r} }

func (p *processor) scan() {
	p.stat, p.loadavg = p.open("proc/stat"), p.open("proc/loadavg")
}

func (p *processor) sample() {
	data, err := p.bytes(p.stat)
	busy, all := p.busy, p.all
	if err == nil {
		busy, all, err = parseStat(data)
	}
	var share int64
	switch {
	case err != nil:
	case all <= p.all || busy < p.busy || p.all == 0: // the first sample; or a core went
		err = ErrAbsent
	default:
		share = int64((busy - p.busy) * 1000 / (all - p.all))
	}
	p.busy, p.all = busy, all
	p.out.Busy = read(p.reader, "proc/stat", share, err)

	var load int64
	if data, err = p.bytes(p.loadavg); err == nil {
		word, _ := field(data)
		load, err = parseFixed(word, 2)
	}
	p.out.Load1 = read(p.reader, "proc/loadavg", load, err)
}

func (p *processor) put(s *Snapshot) { s.CPU.Busy, s.CPU.Load1 = p.out.Busy, p.out.Load1 }

// parseStat reads the first line of /proc/stat: "cpu user nice system idle iowait irq
// softirq steal ...", of which guest and guest_nice are in user and nice already.
func parseStat(data []byte) (busy, all uint64, err error) {
	line, _ := nextLine(data)
	word, rest := field(line)
	if string(word) != "cpu" {
		return 0, 0, ErrFormat
	}
	for i := range 8 {
		if word, rest = field(rest); len(word) == 0 {
			if i < 4 {
				return 0, 0, ErrFormat
			}
			break
		}
		n, err := parseUint(word, 10)
		if err != nil || n > 1<<48 {
			return 0, 0, ErrFormat
		}
		all += n
		if i != 3 && i != 4 { // idle, iowait
			busy += n
		}
	}
	return busy, all, nil
}
