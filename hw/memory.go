package hw

import "bytes"

// Memory is the main memory, in bytes.
type Memory struct {
	Total     Reading[int64] `json:"total"`     // what the kernel has: less than is soldered on
	Available Reading[int64] `json:"available"` // what can be had without swapping
	SwapTotal Reading[int64] `json:"swapTotal"`
	SwapFree  Reading[int64] `json:"swapFree"`
	// MajorFaults and Killed count since the boot: pages that were waited for, and
	// processes that the kernel killed for want of memory (since Linux 4.13).
	MajorFaults Reading[int64] `json:"majorFaults"`
	Killed      Reading[int64] `json:"killed"`
	Zram        []Zram         `json:"zram,omitempty"`
}

// Zram is swap in memory, compressed (Documentation/admin-guide/blockdev/zram.rst).
type Zram struct {
	Device string         `json:"device"`
	Data   Reading[int64] `json:"data"` // what is stored, in bytes
	Used   Reading[int64] `json:"used"` // what it takes of the memory
}

type memory struct {
	*reader
	meminfo, vmstat *file
	zram            []zram
	out             Memory
}

type zram struct {
	Zram
	stat *file
}

func newMemory(r *reader) sensor { return &memory{reader: r} }

func (m *memory) scan() {
	m.meminfo, m.vmstat, m.zram = m.open("proc/meminfo"), m.open("proc/vmstat"), nil
	for _, name := range m.names("sys/block") {
		if prefix, _ := splitNumber(name); prefix == "zram" {
			m.zram = append(m.zram, zram{Zram{Device: name}, m.open("sys/block", name, "mm_stat")})
		}
	}
}

func (m *memory) sample() {
	data, err := m.bytes(m.meminfo)
	m.out.Total = m.kB(data, err, "MemTotal:")
	m.out.Available = m.kB(data, err, "MemAvailable:")
	m.out.SwapTotal = m.kB(data, err, "SwapTotal:")
	m.out.SwapFree = m.kB(data, err, "SwapFree:")

	data, err = m.bytes(m.vmstat)
	m.out.MajorFaults = m.value(data, err, "proc/vmstat", "pgmajfault", 1)
	m.out.Killed = m.value(data, err, "proc/vmstat", "oom_kill", 1)

	for i := range m.zram {
		z := &m.zram[i]
		data, err := m.bytes(z.stat)
		var stored, used int64
		if err == nil { // orig_data_size compr_data_size mem_used_total ...
			var word []byte
			word, data = field(data)
			stored, err = parseInt(word)
			_, data = field(data)
			if word, _ = field(data); err == nil {
				used, err = parseInt(word)
			}
		}
		z.Data, z.Used = read(m.reader, "mm_stat", stored, err), read(m.reader, "mm_stat", used, err)
	}
}

func (m *memory) put(s *Snapshot) {
	zrams := s.Memory.Zram[:0]
	for i := range m.zram {
		zrams = append(zrams, m.zram[i].Zram)
	}
	s.Memory = m.out
	s.Memory.Zram = zrams
}

func (m *memory) kB(data []byte, err error, name string) Reading[int64] {
	return m.value(data, err, "proc/meminfo", name, 1024)
}

// value reads the number after name at the start of a line.
func (m *memory) value(data []byte, err error, source, name string, unit int64) Reading[int64] {
	var n int64
	if err == nil {
		n, err = numberAfter(data, name)
	}
	return read(m.reader, source, n*unit, err)
}

// numberAfter finds the line that begins with the word name, and returns the number
// that follows; ErrAbsent if there is no such line.
func numberAfter(data []byte, name string) (int64, error) {
	for len(data) > 0 {
		var line []byte
		line, data = nextLine(data)
		if !bytes.HasPrefix(line, []byte(name)) {
			continue
		}
		if word, rest := field(line); len(word) == len(name) {
			word, _ = field(rest)
			n, err := parseInt(word)
			if err == nil && n > 1<<50 {
				err = ErrFormat
			}
			return n, err
		}
	}
	return 0, ErrAbsent
}
