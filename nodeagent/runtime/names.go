package runtime

import (
	"fmt"
	"strconv"
	"strings"

	"bramble.dev/bramble/nodeagent/container"
)

// Labels of pods and containers in Podman: all that the agent knows of them
// after a restart.
const (
	LabelPodUID       = "edge.bramble.dev/pod-uid"
	LabelPodNamespace = "edge.bramble.dev/pod-namespace"
	LabelPodName      = "edge.bramble.dev/pod-name"
	LabelContainer    = "edge.bramble.dev/container"
	LabelRestarts     = "edge.bramble.dev/restarts"
	LabelHash         = "edge.bramble.dev/hash"
	LabelImage        = "edge.bramble.dev/image"
	LabelSandbox      = "edge.bramble.dev/sandbox"
	LabelLogMessage   = "edge.bramble.dev/message-from-log"
	LabelDevices      = "edge.bramble.dev/devices"
)

// longestPart bounds each of the names in a container's engine name, which is
// for people to read; uid, container and restarts make it unique.
const longestPart = 63

// podName is the engine's name of a pod: the uid alone, so that it can be
// addressed without a look-up.
func podName(uid string) string { return "k8s_" + clean(uid) }

func infraName(uid string) string { return "k8s_POD_" + clean(uid) }

func containerName(s container.Spec) string {
	return fmt.Sprintf("k8s_%s_%s_%s_%s_%d", short(s.Name), short(s.PodName), short(s.PodNamespace), clean(s.PodUID), s.Restarts)
}

func short(s string) string {
	s = clean(s)
	return s[:min(len(s), longestPart)]
}

// clean replaces what Podman does not take in a name; Kubernetes' names and
// uids hold none of it.
func clean(s string) string {
	return strings.Map(func(c rune) rune {
		if c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '-' || c == '.' {
			return c
		}
		return '-'
	}, s)
}

func podLabels(s container.PodSpec) map[string]string {
	return map[string]string{LabelPodUID: s.UID, LabelPodNamespace: s.Namespace, LabelPodName: s.Name}
}

func containerLabels(s container.Spec) map[string]string {
	labels := map[string]string{
		LabelPodUID: s.PodUID, LabelPodNamespace: s.PodNamespace, LabelPodName: s.PodName,
		LabelContainer: s.Name, LabelRestarts: strconv.Itoa(s.Restarts), LabelHash: s.Hash, LabelImage: s.Image,
		LabelSandbox: s.Sandbox, LabelLogMessage: strconv.FormatBool(s.MessageFromLog),
	}
	if len(s.Devices) > 0 {
		labels[LabelDevices] = deviceLabel(s.Devices)
	}
	return labels
}
