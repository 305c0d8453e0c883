package api

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// Labels of a Node that say what its board is. Its agent sets them.
const (
	LabelModel       = Group + "/model"        // "Raspberry-Pi-4-Model-B-Rev-1.4"
	LabelType        = Group + "/type"         // of a Raspberry Pi: "4B"
	LabelSoC         = Group + "/soc"          // "BCM2711"
	LabelRevision    = Group + "/revision"     // of a Raspberry Pi, its code: "c03114"
	LabelMemoryMB    = Group + "/memory-mb"    // soldered on: "4096"
	LabelPageSize    = Group + "/page-size"    // of the kernel, in bytes: "16384"
	LabelArchVariant = Group + "/arch-variant" // as images name it: "v7"

	// LabelCPUFeature begins the labels of what all cores can do, with the names that
	// node-feature-discovery has: "feature.node.kubernetes.io/cpu-cpuid.AES".
	LabelCPUFeature = "feature.node.kubernetes.io/cpu-cpuid."
)

// AnnotationLabels on a Node names the labels that its agent has set by its board,
// separated by commas. The agent changes and removes those alone.
const AnnotationLabels = Group + "/labels"

// deviceLabels are the kinds of devices of which a Node has a label when there are any.
var deviceLabels = []string{
	"audio", "bluetooth", "camera", "coral", "dri", "gpio", "hailo", "i2c", "iio", "npu", "onewire", "rknpu", "serial", "spi", "video",
}

// DeviceLabel is the label of a kind of devices; "" if there is none.
func DeviceLabel(kind string) string {
	if !slices.Contains(deviceLabels, kind) {
		return ""
	}
	return Group + "/" + kind
}

// IsBoardLabel says that a label is one that an agent sets by its board.
func IsBoardLabel(label string) bool {
	switch label {
	case LabelModel, LabelType, LabelSoC, LabelRevision, LabelMemoryMB, LabelPageSize, LabelArchVariant:
		return true
	}
	kind, ours := strings.CutPrefix(label, Group+"/")
	return ours && DeviceLabel(kind) != "" || strings.HasPrefix(label, LabelCPUFeature)
}

// IsNodesLabel says that a node may set a label of these domains, Kubernetes' and ours,
// on itself.
func IsNodesLabel(label string) bool {
	switch label {
	case corev1.LabelArchStable, corev1.LabelOSStable, corev1.LabelHostname:
		return true
	}
	return IsBoardLabel(label)
}

// FitName makes of a text what may be a resource's name after its domain, or a label's
// value: at most 63 letters, digits, dashes, dots and underscores, without the latter three
// at its ends. Of what is too long a hash of all takes the end's place.
func FitName(text string) string {
	const limit = 63
	name := strings.Map(func(c rune) rune {
		if c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.ContainsRune("-._", c) {
			return c
		}
		return '-'
	}, text)
	if len(name) > limit {
		sum := sha256.Sum256([]byte(text))
		const digits = 8
		name = strings.TrimRight(name[:limit-digits-1], "-._") + "-" + hex.EncodeToString(sum[:digits/2])
	}
	return strings.Trim(name, "-._")
}
