package runtime

import (
	"encoding/json"

	"github.com/opencontainers/runtime-spec/specs-go"

	"bramble.dev/bramble/nodeagent/container"
)

// deviceMounts are a device's nodes as rootless Podman gives them to a container: it
// may make no nodes, and mounts the node's own. They go in as mounts and not as
// devices, whose paths Podman splits at colons: "/dev/iio:device0" is one.
//
// Who may open them is said by the nodes' owners and lists of rights: root in the
// container is the node's user, and has none of that user's other groups.
func deviceMounts(d container.Device) []specs.Mount {
	mounts := make([]specs.Mount, 0, len(d.Nodes))
	for _, n := range d.Nodes {
		mounts = append(mounts, specs.Mount{
			Type: "bind", Source: n.Source, Destination: n.Target, Options: []string{"rbind", "rw", "rprivate", "dev", "nosuid", "noexec"},
		})
	}
	return mounts
}

// deviceLabel is what a container has, for the agent after a restart.
func deviceLabel(devices []container.Device) string {
	text, err := json.Marshal(devices)
	if err != nil {
		panic("devices cannot be encoded: " + err.Error())
	}
	return string(text)
}

// labelledDevices are those of a container in Podman's list.
func labelledDevices(labels map[string]string) []container.Device {
	var devices []container.Device
	if json.Unmarshal([]byte(labels[LabelDevices]), &devices) != nil {
		return nil
	}
	return devices
}
