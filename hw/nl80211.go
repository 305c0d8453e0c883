package hw

import (
	"errors"
	"io/fs"
	"time"

	nl "github.com/mdlayher/wifi"
)

// nl80211Patience ends a request before the sensor's own deadline does.
const nl80211Patience = 400 * time.Millisecond

// nl80211 asks the kernel how well the stations of this machine hear. Every user may.
// Some drivers of Realtek tell nothing (mdlayher/wifi, issue 27). An interface that is
// in no network is told of without a signal.
func nl80211() ([]heard, error) {
	client, err := nl.New()
	if errors.Is(err, fs.ErrNotExist) {
		return nil, ErrAbsent
	}
	if err != nil {
		return nil, err
	}
	defer func() { _ = client.Close() }()
	if err := client.SetDeadline(time.Now().Add(nl80211Patience)); err != nil {
		return nil, err
	}
	interfaces, err := client.Interfaces()
	if err != nil {
		return nil, err
	}
	var all []heard
	for _, i := range interfaces {
		if i.Type != nl.InterfaceTypeStation || i.Name == "" {
			continue
		}
		stations, err := client.StationInfo(i)
		if errors.Is(err, fs.ErrNotExist) {
			err = nil
		}
		h := heard{name: i.Name, err: err}
		if len(stations) > 0 {
			h.signal = int64(stations[0].Signal)
			if bss, err := client.BSS(i); err == nil {
				h.ssid = bss.SSID
			}
		}
		all = append(all, h)
	}
	return all, nil
}
