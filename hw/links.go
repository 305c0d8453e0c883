package hw

// Link is a network interface that is a device: no bridge, veth or tunnel.
type Link struct {
	Name      string         `json:"name"`
	Wireless  bool           `json:"wireless"`
	State     string         `json:"state"`          // "up", "down", "unknown" (RFC 2863)
	Carrier   Reading[int64] `json:"carrier"`        // 1: there is a cable, or an access point
	Changes   Reading[int64] `json:"carrierChanges"` // since it is there
	Speed     Reading[int64] `json:"speedMbit"`
	Duplex    string         `json:"duplex,omitempty"`
	MTU       int64          `json:"mtu"`
	RxBytes   Reading[int64] `json:"rxBytes"`
	TxBytes   Reading[int64] `json:"txBytes"`
	RxErrors  Reading[int64] `json:"rxErrors"`
	TxErrors  Reading[int64] `json:"txErrors"`
	RxDropped Reading[int64] `json:"rxDropped"`
	TxDropped Reading[int64] `json:"txDropped"`
}

type links struct {
	*reader
	links []link
}

type link struct {
	Link
	state, duplex *file
	numbers       [9]*file // in the order of Link.numbers
}

var linkFiles = [9]string{
	"carrier", "carrier_changes", "speed", "statistics/rx_bytes", "statistics/tx_bytes",
	"statistics/rx_errors", "statistics/tx_errors", "statistics/rx_dropped", "statistics/tx_dropped",
}

func (l *Link) numbers() [9]*Reading[int64] {
	return [9]*Reading[int64]{&l.Carrier, &l.Changes, &l.Speed, &l.RxBytes, &l.TxBytes, &l.RxErrors, &l.TxErrors, &l.RxDropped, &l.TxDropped}
}

const netClass = "sys/class/net"

// isWireless says whether an interface is Wi-Fi, by either of the kernel's ways.
func (r *reader) isWireless(name string) bool {
	return r.exists(netClass, name, "phy80211") || r.exists(netClass, name, "wireless")
}

func newLinks(r *reader) sensor { return &links{reader: r} }

func (l *links) scan() {
	l.links = nil
	for _, name := range l.names(netClass) {
		path := netClass + "/" + name
		wireless := l.isWireless(name)
		if !wireless && !l.exists(path, "device") {
			continue
		}
		k := link{state: l.open(path, "operstate"), duplex: l.open(path, "duplex")}
		k.Name, k.Wireless = name, wireless
		k.MTU, _ = l.number(path, "mtu")
		for i, file := range linkFiles {
			k.numbers[i] = l.open(path, file)
		}
		l.links = append(l.links, k)
	}
}

func (l *links) sample() {
	for i := range l.links {
		k := &l.links[i]
		if state, err := l.bytes(k.state); err != nil {
			k.State = "unknown"
		} else if string(state) != k.State {
			k.State = string(state)
		}
		if duplex, err := l.bytes(k.duplex); err != nil {
			k.Duplex = ""
		} else if string(duplex) != k.Duplex {
			k.Duplex = string(duplex)
		}
		for n, to := range k.Link.numbers() {
			value, err := l.integer(k.numbers[n])
			if err == nil && value < 0 { // a speed that is not known
				err = ErrAbsent
			}
			*to = read(l.reader, linkFiles[n], value, err)
		}
	}
}

func (l *links) put(s *Snapshot) {
	s.Links = s.Links[:0]
	for i := range l.links {
		s.Links = append(s.Links, l.links[i].Link)
	}
}
