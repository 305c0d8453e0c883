package hw

import "strings"

// CPU is what the processor does.
type CPU struct {
	Policies []Policy       `json:"policies,omitempty"` // none: the kernel does not tell its clocks
	Busy     Reading[int64] `json:"busy"`               // thousandths of all cores, since the sample before
	Load1    Reading[int64] `json:"load1"`              // hundredths, over a minute
}

// Policy is cores that have one clock (Documentation/admin-guide/pm/cpufreq.rst).
type Policy struct {
	CPUs     string         `json:"cpus"` // as the kernel lists them: "0 1 2 3"
	Governor string         `json:"governor,omitempty"`
	Current  Reading[int64] `json:"currentKHz"` // as the kernel believes: on a Raspberry Pi the firmware may have less
	Limit    Reading[int64] `json:"limitKHz"`   // what it may have now, by cooling or by its user
	Min      int64          `json:"minKHz"`     // of the hardware; 0: not told
	Max      int64          `json:"maxKHz"`
}

type frequencies struct {
	*reader
	policies []policy
}

type policy struct {
	Policy
	path           string
	current, limit *file
}

func newFrequencies(r *reader) sensor { return &frequencies{reader: r} }

const cpuDevices = "sys/devices/system/cpu"

func (f *frequencies) scan() {
	f.policies = nil
	for _, name := range f.names(cpuDevices, "cpufreq") {
		if strings.HasPrefix(name, "policy") {
			f.add(cpuDevices + "/cpufreq/" + name)
		}
	}
	if len(f.policies) > 0 {
		return
	}
	for _, name := range f.names(cpuDevices) { // before Linux 4.3 each core had its own
		if _, n := splitNumber(name); n >= 0 && strings.HasPrefix(name, "cpu") && f.exists(cpuDevices, name, "cpufreq") {
			f.add(cpuDevices + "/" + name + "/cpufreq")
		}
	}
}

func (f *frequencies) add(path string) {
	p := policy{path: path, current: f.open(path, "scaling_cur_freq"), limit: f.open(path, "scaling_max_freq")}
	p.Min, _ = f.number(path, "cpuinfo_min_freq")
	p.Max, _ = f.number(path, "cpuinfo_max_freq")
	p.CPUs, p.Governor = f.text(path, "related_cpus"), f.text(path, "scaling_governor")
	f.policies = append(f.policies, p)
}

func (f *frequencies) sample() {
	for i := range f.policies {
		p := &f.policies[i]
		current, err := f.integer(p.current)
		p.Current = read(f.reader, p.path, current, err)
		limit, err := f.integer(p.limit)
		p.Limit = read(f.reader, p.path, limit, err)
	}
}

func (f *frequencies) put(s *Snapshot) {
	s.CPU.Policies = s.CPU.Policies[:0]
	for i := range f.policies {
		s.CPU.Policies = append(s.CPU.Policies, f.policies[i].Policy)
	}
}
