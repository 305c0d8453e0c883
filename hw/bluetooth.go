package hw

// listBluetooth lists the adapters. Programs use them by sockets and by BlueZ: they
// have no node.
func listBluetooth(r *reader) []Device {
	const class = "sys/class/bluetooth"
	var found []Device
	for _, name := range r.matching(class, "hci") { // not "hci0:11", which is a connection
		d := r.device(Bluetooth, name, "")
		r.describe(&d, class, name, "device")
		found = append(found, d)
	}
	return found
}
