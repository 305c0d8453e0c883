package hw

import (
	"strings"
	"time"
)

// Disk is a block device that holds data: no partition, loop or RAM disk.
type Disk struct {
	Name    string         `json:"name"` // "mmcblk0"
	Kind    string         `json:"kind"` // "SD", "MMC" (eMMC), "NVMe", "disk"
	Model   string         `json:"model,omitempty"`
	Size    int64          `json:"sizeBytes"`
	Card    *Card          `json:"card,omitempty"` // of an SD card or eMMC
	Wear    Reading[Wear]  `json:"wear"`           // absent of SD cards: they do not tell
	WearBy  string         `json:"wearBy"`         // what its wear is judged by: "life_time", "bytes_written"
	Written Reading[int64] `json:"writtenBytes"`   // since the boot
	Read    Reading[int64] `json:"readBytes"`
}

// Card is what a card says of itself (CID register).
type Card struct {
	CID    string `json:"cid"`
	Maker  int64  `json:"maker"` // MID, assigned by the SD Association or JEDEC
	OEM    string `json:"oem,omitempty"`
	Serial string `json:"serial,omitempty"`
	Made   string `json:"made,omitempty"` // "2021-07"; "" where the card lies: eMMC of 1997
}

// Wear is how much of the life that its maker promises a device has used. Of eMMC the
// kernel reads it when the card is found: it is as old as the boot.
type Wear struct {
	UsedPercent int    `json:"usedPercent"` // at most; 101: more than promised
	PreEOL      string `json:"preEOL"`      // "normal", "warning" (80 % of spare blocks used), "urgent"; "" if not told
}

// Out says that a device is to be replaced: nine tenths of its life are used.
func (w Wear) Out() bool { return w.UsedPercent >= 90 || w.PreEOL == "urgent" }

const sectorBytes = 512 // of /proc/diskstats, whatever the device has

type disks struct {
	*reader
	stats *file
	disks []Disk
}

func newDisks(r *reader) sensor { return &disks{reader: r} }

const blockClass = "sys/block"

func (d *disks) scan() {
	d.stats, d.disks = d.open("proc/diskstats"), nil
	for _, name := range d.names(blockClass) {
		if prefix, _ := splitNumber(name); prefix == "loop" || prefix == "ram" || prefix == "zram" || prefix == "dm-" || prefix == "md" ||
			strings.Contains(name, "boot") || strings.Contains(name, "rpmb") { // parts of an eMMC
			continue
		}
		sectors, _ := d.number(blockClass, name, "size")
		k := Disk{Name: name, Kind: "disk", Size: sectors * sectorBytes}
		k.Model = printable([]byte(d.text(blockClass, name, "device/model")))
		k.Wear.Err, k.Written.Err, k.Read.Err = ErrAbsent, ErrAbsent, ErrAbsent
		switch {
		case strings.HasPrefix(name, "mmcblk"):
			d.card(&k)
		case strings.HasPrefix(name, "nvme"):
			k.Kind = "NVMe"
		}
		if k.WearBy = "bytes_written"; k.Wear.OK() {
			k.WearBy = "life_time"
		}
		d.disks = append(d.disks, k)
	}
}

// card reads what a card says when it is found.
func (d *disks) card(k *Disk) {
	path := blockClass + "/" + k.Name + "/device"
	maker, _ := parseHex([]byte(d.text(path, "manfid")))
	k.Kind, k.Model = d.text(path, "type"), printable([]byte(d.text(path, "name")))
	k.Card = &Card{
		CID: d.text(path, "cid"), Maker: int64(maker & 0xffffff), OEM: oemName(d.text(path, "oemid")),
		Serial: d.text(path, "serial"), Made: cardDate(d.text(path, "date")),
	}
	life, err := d.once(path, "life_time")
	var wear Wear
	if err == nil {
		wear, err = ParseWear(life, d.text(path, "pre_eol_info"))
	}
	k.Wear = read(d.reader, path+"/life_time", wear, err)
}

func (d *disks) sample() {
	data, err := d.bytes(d.stats)
	for i := range d.disks {
		k := &d.disks[i]
		got, put, err := diskStats(data, err, k.Name)
		k.Read = read(d.reader, "proc/diskstats", got*sectorBytes, err)
		k.Written = read(d.reader, "proc/diskstats", put*sectorBytes, err)
	}
}

func (d *disks) put(s *Snapshot) { s.Disks = append(s.Disks[:0], d.disks...) }

// diskStats finds a device's sectors read and written: fields 6 and 10 of its line in
// /proc/diskstats (Documentation/admin-guide/iostats.rst).
func diskStats(data []byte, err error, name string) (got, put int64, _ error) {
	for err == nil && len(data) > 0 {
		var line, word []byte
		line, data = nextLine(data)
		for n := 1; n <= 10; n++ {
			if word, line = field(line); n == 3 && string(word) != name {
				break
			}
			switch n {
			case 6:
				got, err = parseInt(word)
			case 10:
				if err == nil {
					put, err = parseInt(word)
				}
				if got|put >= 1<<50 {
					err = ErrFormat
				}
				return got, put, err
			}
		}
	}
	if err == nil {
		err = ErrAbsent
	}
	return 0, 0, err
}

// ParseWear reads "0x01 0x02", the wear of an eMMC's SLC and MLC parts in steps of a
// tenth, and its pre-EOL information (JESD84-B51, EXT_CSD 267 to 269). The worse part
// counts, by the upper end of its step.
func ParseWear(life, preEOL string) (Wear, error) {
	var w Wear
	words := strings.Fields(life)
	if len(words) == 0 {
		return w, ErrFormat
	}
	for _, word := range words {
		step, err := parseHex([]byte(word))
		if err != nil || step > 0xff {
			return Wear{}, ErrFormat
		}
		used := int(step) * 10
		if step >= 0x0b {
			used = 101
		}
		w.UsedPercent = max(w.UsedPercent, used)
	}
	if code, err := parseHex([]byte(preEOL)); err == nil && code < 4 {
		w.PreEOL = []string{"", "normal", "warning", "urgent"}[code]
	}
	if w.UsedPercent == 0 { // 0 is "not defined"
		return Wear{}, ErrAbsent
	}
	return w, nil
}

// oemName is the two letters of an OEM id; its number if they are none.
func oemName(id string) string {
	code, err := parseHex([]byte(id))
	if err != nil {
		return ""
	}
	high, low := byte(code>>8), byte(code)
	if high > ' ' && high < 0x7f && low > ' ' && low < 0x7f {
		return string([]byte{high, low})
	}
	return id
}

// cardDate turns "11/2015" into "2015-11". Early eMMC counts its years from 1997 where
// it means 2013, so that nothing before 2005 is believed.
func cardDate(date string) string {
	month, year, _ := strings.Cut(date, "/")
	when, err := time.Parse("01/2006", month+"/"+year)
	if err != nil || when.Year() < 2005 {
		return ""
	}
	return when.Format("2006-01")
}
