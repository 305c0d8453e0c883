package report

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"bramble.dev/bramble/hw"
	"bramble.dev/bramble/server/api"
)

// cpuFeatures are what people choose nodes by, as the kernel calls it and as
// node-feature-discovery does, by architecture.
var cpuFeatures = map[string]map[string]string{
	"arm64": {
		"aes": "AES", "asimd": "ASIMD", "asimddp": "ASIMDDP", "asimdhp": "ASIMDHP", "atomics": "ATOMICS", "crc32": "CRC32",
		"fphp": "FPHP", "pmull": "PMULL", "sha1": "SHA1", "sha2": "SHA2", "sha3": "SHA3", "sha512": "SHA512", "sve": "SVE",
	},
	"arm": {
		"aes": "AES", "crc32": "CRC32", "idiva": "IDIVA", "lpae": "LPAE", "neon": "NEON", "pmull": "PMULL", "sha1": "SHA1", "sha2": "SHA2",
		"vfpv3": "VFPv3", "vfpv4": "VFPv4",
	},
	"amd64": {"aes": "AESNI", "avx": "AVX", "avx2": "AVX2", "avx512f": "AVX512F", "fma": "FMA3", "sha_ni": "SHA"},
}

// BoardLabels are a Node's labels of what its board is and has. It is pure.
func BoardLabels(s hw.Snapshot) map[string]string {
	id := s.Identity
	labels := map[string]string{
		api.LabelModel: api.FitName(id.Model), api.LabelSoC: api.FitName(id.SoC),
		api.LabelPageSize: number(id.PageSize), api.LabelArchVariant: api.FitName(id.Processor.Variant),
	}
	if r := id.Revision; r != nil {
		labels[api.LabelRevision], labels[api.LabelType] = strconv.FormatUint(uint64(r.Code), 16), api.FitName(r.Type)
		labels[api.LabelMemoryMB] = number(r.MemoryMB)
	}
	for _, feature := range id.Processor.Features {
		if name := cpuFeatures[id.Processor.Arch][feature]; name != "" {
			labels[api.LabelCPUFeature+name] = "true"
		}
	}
	for _, d := range s.Devices {
		for _, kind := range d.Kinds() {
			if label := api.DeviceLabel(kind); label != "" {
				labels[label] = "true"
			}
		}
	}
	maps.DeleteFunc(labels, func(_, value string) bool { return value == "" })
	return labels
}

// number is a number's text; "" if it is not known.
func number(n int) string {
	if n == 0 {
		return ""
	}
	return strconv.Itoa(n)
}

// baseLabels are those of every node.
func baseLabels(name, arch, os string) map[string]string {
	return map[string]string{corev1.LabelArchStable: arch, corev1.LabelOSStable: os, corev1.LabelHostname: name}
}

// owned are the labels that the agent has set on a Node before.
func owned(node *corev1.Node) map[string]string {
	labels := map[string]string{}
	for label := range strings.SplitSeq(node.Annotations[api.AnnotationLabels], ",") {
		if value, has := node.Labels[label]; has && api.IsBoardLabel(label) {
			labels[label] = value
		}
	}
	return labels
}

// labelChange is the change of a Node's metadata that gives it the labels want, and
// takes those away that the agent set before; nil if there is none. A label that
// somebody else has set stays as it is.
func labelChange(node *corev1.Node, base, want map[string]string) map[string]any {
	before := owned(node)
	labels := map[string]any{}
	for label, value := range base {
		if node.Labels[label] != value {
			labels[label] = value
		}
	}
	var ours []string
	for label, value := range want {
		is, has := node.Labels[label]
		if _, mine := before[label]; has && !mine {
			continue
		}
		ours = append(ours, label)
		if !has || is != value {
			labels[label] = value
		}
	}
	for label := range before {
		if want[label] == "" {
			labels[label] = nil
		}
	}
	slices.Sort(ours)
	note := strings.Join(ours, ",")
	change := map[string]any{}
	if len(labels) > 0 {
		change["labels"] = labels
	}
	if node.Annotations[api.AnnotationLabels] != note {
		change["annotations"] = map[string]any{api.AnnotationLabels: note}
	}
	if len(change) == 0 {
		return nil
	}
	return change
}
