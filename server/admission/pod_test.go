package admission_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/yaml"

	"bramble.dev/bramble/server/admission"
)

// podOf reads a pod from YAML and defaults it.
func podOf(t *testing.T, manifest string) *corev1.Pod {
	t.Helper()
	p := &corev1.Pod{}
	if err := yaml.UnmarshalStrict([]byte(manifest), p); err != nil {
		t.Fatal(err)
	}
	admission.DefaultPod(p)
	return p
}

const small = `
metadata: {name: hello, namespace: default}
spec:
  containers:
  - {name: web, image: "example.org:5000/web"}
`

func TestPodDefaults(t *testing.T) {
	got, err := yaml.Marshal(podOf(t, small).Spec)
	if err != nil {
		t.Fatal(err)
	}
	want := `containers:
- image: example.org:5000/web
  imagePullPolicy: Always
  name: web
  resources: {}
  terminationMessagePath: /dev/termination-log
  terminationMessagePolicy: File
dnsPolicy: ClusterFirst
enableServiceLinks: true
restartPolicy: Always
schedulerName: default-scheduler
securityContext: {}
terminationGracePeriodSeconds: 30
tolerations:
- effect: NoExecute
  key: node.kubernetes.io/not-ready
  operator: Exists
  tolerationSeconds: 300
- effect: NoExecute
  key: node.kubernetes.io/unreachable
  operator: Exists
  tolerationSeconds: 300
`
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Errorf("defaults (-want +got):\n%s", diff)
	}
}

func TestPodDefaultsKeepWhatIsSaid(t *testing.T) {
	p := podOf(t, `
metadata: {name: hello, namespace: default}
spec:
  restartPolicy: Never
  terminationGracePeriodSeconds: 0
  tolerations: [{operator: Exists}]
  serviceAccount: default
  volumes: [{name: scratch}, {name: conf, configMap: {name: c}}, {name: key, secret: {secretName: s, defaultMode: 256}}]
  containers:
  - name: a
    image: a:v1
    ports: [{containerPort: 80}]
    resources: {limits: {cpu: "1", memory: 64Mi}, requests: {cpu: 100m}}
`)
	if p.Spec.RestartPolicy != corev1.RestartPolicyNever || *p.Spec.TerminationGracePeriodSeconds != 0 {
		t.Errorf("a default took the place of what was said: %v", p.Spec)
	}
	if len(p.Spec.Tolerations) != 1 {
		t.Errorf("tolerations were added to one that tolerates all: %v", p.Spec.Tolerations)
	}
	if p.Spec.ServiceAccountName != "default" {
		t.Errorf("serviceAccountName is %q", p.Spec.ServiceAccountName)
	}
	if p.Spec.Volumes[0].EmptyDir == nil || *p.Spec.Volumes[1].ConfigMap.DefaultMode != 0o644 || *p.Spec.Volumes[2].Secret.DefaultMode != 0o400 {
		t.Errorf("volumes: %+v", p.Spec.Volumes)
	}
	c := p.Spec.Containers[0]
	if c.Ports[0].Protocol != corev1.ProtocolTCP {
		t.Errorf("protocol is %q", c.Ports[0].Protocol)
	}
	if cpu, memory := c.Resources.Requests.Cpu(), c.Resources.Requests.Memory(); cpu.String() != "100m" || memory.String() != "64Mi" {
		t.Errorf("requests are %s and %s, want 100m as said and 64Mi by the limit", cpu, memory)
	}
}

// Defaulting what has its defaults must change nothing: an update would else
// be refused.
func TestPodDefaultsAreStable(t *testing.T) {
	p := podOf(t, small)
	again := p.DeepCopy()
	admission.DefaultPod(again)
	if diff := cmp.Diff(p, again); diff != "" {
		t.Errorf("defaulted twice (-once +twice):\n%s", diff)
	}
}

func TestPullPolicy(t *testing.T) {
	for image, want := range map[string]corev1.PullPolicy{
		"busybox":                        corev1.PullAlways,
		"busybox:latest":                 corev1.PullAlways,
		"busybox:1.36":                   corev1.PullIfNotPresent,
		"localhost:5000/busybox":         corev1.PullAlways,
		"localhost:5000/busybox:latest":  corev1.PullAlways,
		"localhost:5000/busybox:v1":      corev1.PullIfNotPresent,
		"busybox@sha256:0123":            corev1.PullIfNotPresent,
		"busybox:latest@sha256:01234567": corev1.PullIfNotPresent,
	} {
		p := &corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{{Image: image}}}}
		admission.DefaultPod(p)
		if got := p.Spec.Containers[0].ImagePullPolicy; got != want {
			t.Errorf("%s: got %s, want %s", image, got, want)
		}
	}
}

// lines has one "path: text" for each error.
func lines(errs field.ErrorList) []string {
	var out []string
	for _, e := range errs {
		out = append(out, e.Error())
	}
	slices.Sort(out)
	return out
}

func TestPodValidation(t *testing.T) {
	tests := []struct {
		name string
		spec string // below spec, beside containers
		ctr  string // below containers[0], beside name and image
		want []string
	}{
		{name: "fine"},
		{name: "all at once", spec: "restartPolicy: Sometimes\n  dnsPolicy: Mine\n  terminationGracePeriodSeconds: -1\n  hostname: Not_A_Name\n  activeDeadlineSeconds: 0", want: []string{
			`spec.activeDeadlineSeconds: Invalid value: 0`, `spec.dnsPolicy: Unsupported value: "Mine"`, `spec.hostname: Invalid value: "Not_A_Name"`,
			`spec.restartPolicy: Unsupported value: "Sometimes"`, `spec.terminationGracePeriodSeconds: Invalid value: -1`,
		}},
		{name: "refused fields", spec: "hostPID: true\n  runtimeClassName: x", ctr: "lifecycle: {preStop: {tcpSocket: {port: 1}}}", want: []string{
			`spec.containers[0].lifecycle.preStop.tcpSocket: Forbidden: hooks by TCP do nothing`, `spec.hostPID: Forbidden: not supported yet`, `spec.runtimeClassName: Forbidden: not supported yet`,
		}},
		{name: "ports", ctr: `ports: [{containerPort: 0}, {containerPort: 70000}, {containerPort: 80, name: a_b}, {containerPort: 1, protocol: ICMP}, {containerPort: 2, name: a}, {containerPort: 3, name: a}]`, want: []string{
			`spec.containers[0].ports[0].containerPort: Required value`, `spec.containers[0].ports[1].containerPort: Invalid value: 70000`,
			`spec.containers[0].ports[2].name: Invalid value: "a_b"`, `spec.containers[0].ports[3].protocol: Unsupported value: "ICMP"`,
			`spec.containers[0].ports[5].name: Duplicate value: "a"`,
		}},
		{name: "env", ctr: `env: [{name: ""}, {name: "A=B"}, {name: OK, value: x}]`, want: []string{
			`spec.containers[0].env[0].name: Required value`, `spec.containers[0].env[1].name: Invalid value: "A=B"`,
		}},
		{name: "env from elsewhere", ctr: `env: [{name: A, valueFrom: {}}, {name: B, value: x, valueFrom: {fieldRef: {fieldPath: metadata.name}}}, {name: C, valueFrom: {fieldRef: {fieldPath: spec.hostname}}}, {name: D, valueFrom: {fieldRef: {fieldPath: "metadata.labels['a b']"}}}, {name: E, valueFrom: {resourceFieldRef: {resource: limits.gpu}}}, {name: F, valueFrom: {resourceFieldRef: {resource: limits.cpu, divisor: 3, containerName: other}}}, {name: G, valueFrom: {configMapKeyRef: {key: "a/b"}}}, {name: H, valueFrom: {secretKeyRef: {name: s, key: k}, configMapKeyRef: {name: s, key: k}}}, {name: I, valueFrom: {fileKeyRef: {path: p, key: k, volumeName: v}}}, {name: J, valueFrom: {fieldRef: {fieldPath: "metadata.annotations['example.org/Note']"}}}]
    envFrom: [{}, {configMapRef: {name: a}, secretRef: {name: b}}, {prefix: "A=", secretRef: {name: B}}]`, want: []string{
			`spec.containers[0].env[0].valueFrom: Invalid value: "": must specify one of`, `spec.containers[0].env[1].valueFrom: Invalid value: "": may not be specified when `,
			`spec.containers[0].env[2].valueFrom.fieldRef.fieldPath: Unsupported value: "spec.hostname"`, `spec.containers[0].env[3].valueFrom.fieldRef.fieldPath: Invalid value: "metadata.labels['a b']"`,
			`spec.containers[0].env[4].valueFrom.resourceFieldRef.resource: Unsupported value: "limits.gpu"`, `spec.containers[0].env[5].valueFrom.resourceFieldRef.containerName: Not found: "other"`,
			`spec.containers[0].env[5].valueFrom.resourceFieldRef.divisor: Unsupported value: "3"`, `spec.containers[0].env[6].valueFrom.configMapKeyRef.key: Invalid value: "a/b"`,
			`spec.containers[0].env[6].valueFrom.configMapKeyRef.name: Required value`, `spec.containers[0].env[7].valueFrom: Invalid value: "": may not have more than one field`,
			`spec.containers[0].env[8].valueFrom.fileKeyRef: Forbidden: variables from files`, `spec.containers[0].envFrom[0]: Invalid value: "": must specify one of`,
			`spec.containers[0].envFrom[1]: Invalid value: "": may not have more than one`, `spec.containers[0].envFrom[2].prefix: Invalid value: "A="`, `spec.containers[0].envFrom[2].secretRef.name: Invalid value: "B"`,
		}},
		{name: "probes", ctr: `livenessProbe: {exec: {}, successThreshold: 2, periodSeconds: -1}
    readinessProbe: {httpGet: {port: 0, scheme: FTP, httpHeaders: [{name: "a b", value: c}]}, terminationGracePeriodSeconds: 3}
    startupProbe: {tcpSocket: {port: web}, grpc: {port: 1}, terminationGracePeriodSeconds: 0}`, want: []string{
			`spec.containers[0].livenessProbe.exec.command: Required value`, `spec.containers[0].livenessProbe.periodSeconds: Invalid value: -1`, `spec.containers[0].livenessProbe.successThreshold: Invalid value: 2: must be 1`,
			`spec.containers[0].readinessProbe.httpGet.httpHeaders[0].name: Invalid value: "a b"`, `spec.containers[0].readinessProbe.httpGet.port: Invalid value: "0"`,
			`spec.containers[0].readinessProbe.httpGet.scheme: Unsupported value: "FTP"`, `spec.containers[0].readinessProbe.terminationGracePeriodSeconds: Invalid value: 3: must not be set`,
			`spec.containers[0].startupProbe.grpc: Forbidden: may not specify more than 1 handler type`, `spec.containers[0].startupProbe.terminationGracePeriodSeconds: Invalid value: 0`,
		}},
		{name: "probe of nothing", ctr: `livenessProbe: {periodSeconds: 3}`, want: []string{`spec.containers[0].livenessProbe: Required value: must specify a handler type`}},
		{name: "hooks", spec: "terminationGracePeriodSeconds: 5", ctr: `lifecycle: {postStart: {}, preStop: {sleep: {seconds: 6}}, stopSignal: SIGUSR1}`, want: []string{
			`spec.containers[0].lifecycle.postStart: Required value: must specify a handler type`, `spec.containers[0].lifecycle.preStop.sleep: Invalid value: 6`, `spec.containers[0].lifecycle.stopSignal: Forbidden: may not be set without spec.os.name`,
		}},
		{name: "stop signal", spec: "os: {name: linux}", ctr: `lifecycle: {stopSignal: SIGWHAT}`, want: []string{`spec.containers[0].lifecycle.stopSignal: Invalid value: "SIGWHAT"`}},
		{name: "init containers", spec: "initContainers: [{name: c, image: i}, {name: d, restartPolicy: Never, image: i, lifecycle: {preStop: {sleep: {seconds: 1}}}, readinessProbe: {tcpSocket: {port: 1}}, securityContext: {privileged: true}}, {name: e, image: i, restartPolicy: Always, readinessProbe: {tcpSocket: {port: 1}}}]", want: []string{
			`spec.initContainers[0].name: Duplicate value: "c"`, `spec.initContainers[1].lifecycle: Forbidden: may not be set for init containers without restartPolicy=Always`,
			`spec.initContainers[1].readinessProbe: Forbidden: may not be set for init`, `spec.initContainers[1].restartPolicy: Unsupported value: "Never": supported values: "Always"`,
			`spec.initContainers[1].securityContext.privileged: Forbidden: privileged`,
		}},
		{name: "gates", spec: "readinessGates: [{conditionType: example.org/ok}, {conditionType: 'a b'}]", want: []string{`spec.readinessGates[1].conditionType: Invalid value: "a b"`}},
		{name: "mounts", spec: "volumes: [{name: v, emptyDir: {}}]", ctr: `volumeMounts: [{name: w, mountPath: /a}, {name: v, mountPath: "/b:c"}, {name: v, mountPath: data}, {name: v, mountPath: /a}, {name: v, mountPath: "/./"}]`, want: []string{
			`spec.containers[0].volumeMounts[0].name: Not found: "w"`, `spec.containers[0].volumeMounts[1].mountPath: Invalid value: "/b:c"`,
			`spec.containers[0].volumeMounts[2].mountPath: Invalid value: "data": must be an absolute path`, `spec.containers[0].volumeMounts[3].mountPath: Invalid value: "/a": must be unique`,
			`spec.containers[0].volumeMounts[4].mountPath: Invalid value: "/./": must not be the root`,
		}},
		{name: "volumes", spec: `volumes: [{name: v, emptyDir: {medium: Paper}, configMap: {name: c}}, {name: v, secret: {items: [{key: "", path: ../up}], defaultMode: 4096}}, {name: V, configMap: {name: c, items: [{key: k, path: /abs}, {key: k, path: ..x}]}}]`, want: []string{
			`spec.volumes[0].configMap: Forbidden: may not specify more than 1 volume type`, `spec.volumes[0].emptyDir.medium: Unsupported value: "Paper"`,
			`spec.volumes[1].name: Duplicate value: "v"`, `spec.volumes[1].secret.defaultMode: Invalid value: 4096`, `spec.volumes[1].secret.items[0].key: Required value`,
			`spec.volumes[1].secret.items[0].path: Invalid value: "../up": must not contain '..'`, `spec.volumes[1].secret.secretName: Required value`,
			`spec.volumes[2].configMap.items[0].path: Invalid value: "/abs": must be a relative path`, `spec.volumes[2].configMap.items[1].path: Invalid value: "..x": must not start with '..'`,
			`spec.volumes[2].name: Invalid value: "V"`,
		}},
		{name: "resources", ctr: `resources: {limits: {cpu: "1", memory: -1, example.org/gpu: 1500m}, requests: {cpu: "2", example.org/npu: 1, bananas: 3}}`, want: []string{
			`spec.containers[0].resources.limits[example.org/gpu]: Invalid value: "1500m": must be an integer`,
			`spec.containers[0].resources.limits[memory]: Invalid value: "-1": must be greater than or equal to 0`,
			`spec.containers[0].resources.requests[bananas]: Invalid value: "bananas": must be a standard resource type or fully qualified`,
			`spec.containers[0].resources.requests[cpu]: Invalid value: "2": must be less than or equal to cpu limit of 1`,
			`spec.containers[0].resources.requests[example.org/gpu]: Invalid value: "1500m": must be an integer`,
			`spec.containers[0].resources.requests[example.org/npu]: Invalid value: "1": must be equal to example.org/npu limit`,
			`spec.containers[0].resources.requests[memory]: Invalid value: "-1": must be greater than or equal to 0`,
		}},
		{name: "tolerations", spec: `tolerations: [{key: "", operator: Equal}, {key: a, operator: Exists, value: b}, {key: a, effect: Sometimes}, {key: a, effect: NoSchedule, tolerationSeconds: 3}, {key: a, operator: Like}]`, want: []string{
			`spec.tolerations[0].operator: Invalid value: "Equal": operator must be Exists when`, `spec.tolerations[1].operator: Invalid value`,
			`spec.tolerations[2].effect: Unsupported value: "Sometimes"`, `spec.tolerations[3].effect: Invalid value: "NoSchedule": effect must be 'NoExecute'`,
			`spec.tolerations[4].operator: Unsupported value: "Like"`,
		}},
		{name: "names", spec: "nodeName: Bad_Node\n  subdomain: a.b\n  nodeSelector: {\"bad key\": v}\n  serviceAccountName: Bad_SA\n  imagePullSecrets: [{}]", want: []string{
			`spec.imagePullSecrets[0].name: Required value`, `spec.nodeName: Invalid value: "Bad_Node"`, `spec.nodeSelector: Invalid value: "bad key"`,
			`spec.serviceAccountName: Invalid value: "Bad_SA"`, `spec.subdomain: Invalid value: "a.b"`,
		}},
		{name: "dns none without servers", spec: "dnsPolicy: None", want: []string{`spec.dnsConfig: Required value`}},
		{name: "dns", spec: `dnsConfig: {nameservers: [1.1.1.1, 2.2.2.2, x, 4.4.4.4], searches: [example.org., "not valid"], options: [{name: ""}]}`, want: []string{
			`spec.dnsConfig.nameservers: Too many: 4: must have at most 3 items`, `spec.dnsConfig.nameservers[2]: Invalid value: "x"`,
			`spec.dnsConfig.options[0]: Required value`, `spec.dnsConfig.searches[1]: Invalid value: "not valid"`,
		}},
		{name: "node affinity", spec: `affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchExpressions: [{key: a, operator: In}, {key: "b c", operator: Exists, values: [x]}, {key: d, operator: Gt, values: ["1", "2"]}, {key: e, operator: Like}], matchFields: [{key: metadata.uid, operator: In, values: [x]}, {key: metadata.name, operator: Exists}]}]}, preferredDuringSchedulingIgnoredDuringExecution: [{weight: 101, preference: {}}]}}`, want: []string{
			`spec.affinity.nodeAffinity.preferredDuringSchedulingIgnoredDuringExecution[0].weight: Invalid value: 101: must be in the range 1-100`,
			`spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0].matchExpressions[0].values: Required value`,
			`spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0].matchExpressions[1].key: Invalid value: "b c"`,
			`spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0].matchExpressions[1].values: Forbidden`,
			`spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0].matchExpressions[2].values: Required value`,
			`spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0].matchExpressions[3].operator: Invalid value: "Like"`,
			`spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0].matchFields[0].key: Invalid value: "metadata.uid"`,
			`spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0].matchFields[1].operator: Invalid value: "Exists"`,
			`spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0].matchFields[1].values: Required value`,
		}},
		{name: "no node term", spec: `affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: []}}}`, want: []string{
			`spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms: Required value: must have at least one node selector term`,
		}},
		{name: "pod affinity", spec: `affinity: {podAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{labelSelector: {matchExpressions: [{key: a, operator: In}]}, namespaces: [A_B]}], preferredDuringSchedulingIgnoredDuringExecution: [{weight: 0, podAffinityTerm: {topologyKey: z, matchLabelKeys: [a]}}]}, podAntiAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: "x y", labelSelector: {matchLabels: {a: b}, matchExpressions: [{key: a, operator: Exists}]}, matchLabelKeys: [a, c], mismatchLabelKeys: [c]}]}}`, want: []string{
			`spec.affinity.podAffinity.preferredDuringSchedulingIgnoredDuringExecution[0].podAffinityTerm.matchLabelKeys: Forbidden: must not be specified when labelSelector is not set`,
			`spec.affinity.podAffinity.preferredDuringSchedulingIgnoredDuringExecution[0].weight: Invalid value: 0: must be in the range 1-100`,
			`spec.affinity.podAffinity.requiredDuringSchedulingIgnoredDuringExecution[0].labelSelector.matchExpressions[0].values: Required value`,
			`spec.affinity.podAffinity.requiredDuringSchedulingIgnoredDuringExecution[0].namespaces[0]: Invalid value: "A_B"`,
			`spec.affinity.podAffinity.requiredDuringSchedulingIgnoredDuringExecution[0].topologyKey: Required value: can not be empty`,
			`spec.affinity.podAntiAffinity.requiredDuringSchedulingIgnoredDuringExecution[0].matchLabelKeys[0]: Invalid value: "a": exists in both matchLabelKeys and labelSelector`,
			`spec.affinity.podAntiAffinity.requiredDuringSchedulingIgnoredDuringExecution[0].matchLabelKeys[1]: Invalid value: "c": exists in both matchLabelKeys and mismatchLabelKeys`,
			`spec.affinity.podAntiAffinity.requiredDuringSchedulingIgnoredDuringExecution[0].topologyKey: Invalid value: "x y"`,
		}},
		{name: "spread", spec: `topologySpreadConstraints: [{topologyKey: z, whenUnsatisfiable: Perhaps}, {maxSkew: 1, topologyKey: z, whenUnsatisfiable: ScheduleAnyway, minDomains: 2, nodeTaintsPolicy: Some}, {maxSkew: 2, topologyKey: z, whenUnsatisfiable: ScheduleAnyway}]`, want: []string{
			`spec.topologySpreadConstraints[0].maxSkew: Invalid value: 0: must be greater than zero`,
			`spec.topologySpreadConstraints[0].whenUnsatisfiable: Unsupported value: "Perhaps"`,
			`spec.topologySpreadConstraints[1].minDomains: Invalid value: 2: can only use minDomains if whenUnsatisfiable=DoNotSchedule, not ScheduleAnyway`,
			`spec.topologySpreadConstraints[1].nodeTaintsPolicy: Unsupported value: "Some"`,
			`spec.topologySpreadConstraints[2].{topologyKey, whenUnsatisfiable}: Duplicate value`,
		}},
		{name: "gates and class", spec: "nodeName: n\n  schedulingGates: [{name: a/b}, {name: a/b}, {name: \"a b\"}]\n  priorityClassName: A_B", want: []string{
			`spec.nodeName: Forbidden: cannot be set until all schedulingGates have been cleared`, `spec.priorityClassName: Invalid value: "A_B"`,
			`spec.schedulingGates[1]: Duplicate value`, `spec.schedulingGates[2].name: Invalid value: "a b"`,
		}},
		{name: "security", spec: "hostNetwork: true\n  hostAliases: [{ip: x, hostnames: [a_b]}]\n  securityContext: {runAsUser: -1, fsGroup: -2, fsGroupChangePolicy: Perhaps, seccompProfile: {type: Localhost, localhostProfile: x}}", ctr: "securityContext: {privileged: true, procMount: Unmasked, capabilities: {add: [SYS_ADMIN, net_raw], drop: ['']}, seccompProfile: {type: Some}}\n    ports: [{containerPort: 80, hostPort: 81}]", want: []string{
			`spec.containers[0].ports[0].hostPort: Invalid value: 81: must match`,
			`spec.containers[0].securityContext.capabilities.add[0]: Forbidden: SYS_ADMIN can not be given in rootless containers`,
			`spec.containers[0].securityContext.capabilities.drop[0]: Required value`,
			`spec.containers[0].securityContext.privileged: Forbidden: privileged containers are not supported`,
			`spec.containers[0].securityContext.procMount: Forbidden`,
			`spec.containers[0].securityContext.seccompProfile.type: Unsupported value: "Some"`,
			`spec.hostAliases[0].hostnames[0]: Invalid value: "a_b"`, `spec.hostAliases[0].ip: Invalid value: "x"`,
			`spec.securityContext.fsGroup: Invalid value: -2`, `spec.securityContext.fsGroupChangePolicy: Unsupported value: "Perhaps"`,
			`spec.securityContext.runAsUser: Invalid value: -1`, `spec.securityContext.seccompProfile.type: Forbidden: profiles of the node`,
		}},
		{name: "volumes of the node", spec: `volumes: [{name: a, hostPath: {path: /run}}, {name: b, hostPath: {path: /a/../b, type: Thing}}, {name: c, hostPath: {path: /proc/1}}, {name: d, hostPath: {path: /srv/x}}, {name: e, emptyDir: {sizeLimit: 1Mi}}, {name: f, hostPath: {path: x}}, {name: g, hostPath: {path: //}}]`, want: []string{
			`spec.volumes[0].hostPath.path: Forbidden: it would give the container /run/user of its node`,
			`spec.volumes[1].hostPath.path: Invalid value: "/a/../b": must not contain '..'`, `spec.volumes[1].hostPath.type: Unsupported value: "Thing"`,
			`spec.volumes[2].hostPath.path: Forbidden`, `spec.volumes[4].emptyDir.sizeLimit: Forbidden`,
			`spec.volumes[5].hostPath.path: Invalid value: "x": must be an absolute path`, `spec.volumes[6].hostPath.path: Forbidden`,
		}},
		{name: "projected volumes", spec: `volumes: [{name: a, projected: {sources: [{configMap: {name: a, items: [{key: k, path: x}]}, secret: {name: b}}, {downwardAPI: {items: [{path: x, fieldRef: {fieldPath: status.podIP}}, {path: ../y}]}}, {serviceAccountToken: {path: t}}, {}]}}, {name: b, downwardAPI: {items: [{path: c, resourceFieldRef: {resource: limits.cpu}}]}}]`, ctr: "volumeMounts: [{name: a, mountPath: /a, subPath: ../b}, {name: a, mountPath: /b, subPath: a, subPathExpr: /c}]", want: []string{
			`spec.containers[0].volumeMounts[0].subPath: Invalid value: "../b"`, `spec.containers[0].volumeMounts[1].subPathExpr: Invalid value: "/c": must be a relative path`,
			`spec.containers[0].volumeMounts[1].subPathExpr: Invalid value: "/c": subPathExpr and subPath are mutually exclusive`,
			`spec.volumes[0].projected.sources[0]: Invalid value: "": must be exactly one source`,
			`spec.volumes[0].projected.sources[1].downwardAPI.items[0].fieldRef.fieldPath: Unsupported value: "status.podIP"`,
			`spec.volumes[0].projected.sources[1].downwardAPI.items[1].path: Invalid value: "../y"`,
			`spec.volumes[0].projected.sources[1].downwardAPI.items[1]: Required value`,
			`spec.volumes[0].projected.sources[1]: Invalid value: "x": conflicting duplicate paths`,
			`spec.volumes[0].projected.sources[2].serviceAccountToken: Forbidden: no token is mounted into pods yet`,
			`spec.volumes[0].projected.sources[3]: Invalid value: "": must be exactly one source`,
			`spec.volumes[1].downwardAPI.items[0].resourceFieldRef.containerName: Required value`,
		}},
		{name: "all of it granted", spec: "securityContext: {runAsUser: 1000, runAsGroup: 1000, runAsNonRoot: true, fsGroup: 2000, supplementalGroups: [5], seccompProfile: {type: RuntimeDefault}}\n  shareProcessNamespace: true\n  hostAliases: [{ip: 10.1.2.3, hostnames: [a.b]}]", ctr: "securityContext: {readOnlyRootFilesystem: true, allowPrivilegeEscalation: false, procMount: Default, capabilities: {drop: [ALL], add: [NET_BIND_SERVICE]}}\n    ports: [{containerPort: 80, hostPort: 8080, hostIP: 127.0.0.1}]", want: nil},
		{name: "windows", spec: "os: {name: windows}", want: []string{`spec.os.name: Unsupported value: "windows"`}},
		{name: "image", ctr: `workingDir: /`, want: nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			manifest := "metadata: {name: p, namespace: default}\nspec:\n  " + tt.spec + "\n  containers:\n  - name: c\n    image: busybox:1\n    " + tt.ctr + "\n"
			got := lines(admission.ValidatePod(podOf(t, manifest)))
			if len(got) != len(tt.want) {
				t.Fatalf("got %d errors, want %d:\n%s", len(got), len(tt.want), strings.Join(got, "\n"))
			}
			slices.Sort(tt.want)
			for i := range got {
				if !strings.HasPrefix(got[i], tt.want[i]) {
					t.Errorf("got  %s\nwant %s...", got[i], tt.want[i])
				}
			}
		})
	}
}

func TestPodsWithoutContainersOrNames(t *testing.T) {
	p := podOf(t, "metadata: {name: p}\nspec: {}")
	if got := lines(admission.ValidatePod(p)); !slices.Equal(got, []string{"spec.containers: Required value"}) {
		t.Errorf("got %q", got)
	}
	p = podOf(t, "metadata: {name: p}\nspec: {containers: [{name: '', image: ''}, {name: b, image: ' b'}, {name: b, image: b}]}")
	want := []string{
		"spec.containers[0].image: Required value", "spec.containers[0].name: Required value",
		`spec.containers[1].image: Invalid value: " b": must not have leading or trailing whitespace`, `spec.containers[2].name: Duplicate value: "b"`,
	}
	if diff := cmp.Diff(want, lines(admission.ValidatePod(p))); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestFailoverAnnotation(t *testing.T) {
	for value, fine := range map[string]bool{"keep": true, "move": true, "exclusive": true, "": false, "Keep": false, "never": false} {
		p := podOf(t, small)
		p.Annotations = map[string]string{"edge.bramble.dev/failover": value}
		errs := admission.ValidatePod(p)
		if fine != (len(errs) == 0) {
			t.Errorf("%q: got %v", value, errs)
		}
		if !fine && (errs[0].Field != "metadata.annotations[edge.bramble.dev/failover]" || !strings.Contains(errs[0].Detail, `"keep", "move", "exclusive"`)) {
			t.Errorf("%q: got %v, want the field and the three values", value, errs[0])
		}
	}
}

func TestPodWarnings(t *testing.T) {
	p := podOf(t, small)
	p.Spec.ServiceAccountName = "robot"
	p.Spec.ImagePullSecrets = []corev1.LocalObjectReference{{Name: "s"}}
	if errs := admission.ValidatePod(p); len(errs) > 0 {
		t.Fatal(errs)
	}
	want := []string{
		"spec.serviceAccountName: ignored: the account must exist, but no token of it is mounted into the pod yet",
	}
	if diff := cmp.Diff(want, admission.PodWarnings(p)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestPreparePod(t *testing.T) {
	p := podOf(t, small)
	p.Status = corev1.PodStatus{Phase: corev1.PodRunning, PodIP: "10.0.0.1"}
	admission.PreparePod(p)
	if want := (corev1.PodStatus{Phase: corev1.PodPending, QOSClass: corev1.PodQOSBestEffort}); !cmp.Equal(p.Status, want) || p.Generation != 1 {
		t.Errorf("got %+v of generation %d", p.Status, p.Generation)
	}
}

func TestQOSClass(t *testing.T) {
	list := func(cpu, memory string) corev1.ResourceList {
		l := corev1.ResourceList{}
		if cpu != "" {
			l["cpu"] = resource.MustParse(cpu)
		}
		if memory != "" {
			l["memory"] = resource.MustParse(memory)
		}
		return l
	}
	full := corev1.ResourceRequirements{Limits: list("1", "1Gi"), Requests: list("1000m", "1024Mi")}
	for _, tt := range []struct {
		name string
		reqs []corev1.ResourceRequirements
		want corev1.PodQOSClass
	}{
		{"nothing", []corev1.ResourceRequirements{{}, {}}, corev1.PodQOSBestEffort},
		{"zero", []corev1.ResourceRequirements{{Requests: list("0", "")}}, corev1.PodQOSBestEffort},
		{"all equal", []corev1.ResourceRequirements{full, full}, corev1.PodQOSGuaranteed},
		{"one without", []corev1.ResourceRequirements{full, {}}, corev1.PodQOSBurstable},
		{"no memory limit", []corev1.ResourceRequirements{{Limits: list("1", ""), Requests: list("1", "")}}, corev1.PodQOSBurstable},
		{"less asked than allowed", []corev1.ResourceRequirements{{Limits: list("1", "1Gi"), Requests: list("1", "1Mi")}}, corev1.PodQOSBurstable},
		{"only a request", []corev1.ResourceRequirements{{Requests: list("", "1Mi")}}, corev1.PodQOSBurstable},
	} {
		p := &corev1.Pod{}
		for _, r := range tt.reqs {
			p.Spec.Containers = append(p.Spec.Containers, corev1.Container{Resources: r})
		}
		if got := admission.QOSClass(p); got != tt.want {
			t.Errorf("%s: got %s, want %s", tt.name, got, tt.want)
		}
	}
}

func TestPodUpdate(t *testing.T) {
	ten, five := int64(10), int64(5)
	base := podOf(t, small)
	base.Spec.ActiveDeadlineSeconds = &ten
	for _, tt := range []struct {
		name   string
		change func(*corev1.Pod)
		want   string // part of the only error; "" for none
	}{
		{"nothing", func(*corev1.Pod) {}, ""},
		{"labels", func(p *corev1.Pod) { p.Labels = map[string]string{"a": "b"} }, ""},
		{"image", func(p *corev1.Pod) { p.Spec.Containers[0].Image = "web:2" }, ""},
		{"deadline shorter", func(p *corev1.Pod) { p.Spec.ActiveDeadlineSeconds = &five }, ""},
		{"deadline longer", func(p *corev1.Pod) { long := int64(11); p.Spec.ActiveDeadlineSeconds = &long }, "must be less than or equal to previous value"},
		{"deadline gone", func(p *corev1.Pod) { p.Spec.ActiveDeadlineSeconds = nil }, "must not update from a positive integer to nil"},
		{"toleration more", func(p *corev1.Pod) {
			p.Spec.Tolerations = append(p.Spec.Tolerations, corev1.Toleration{Operator: corev1.TolerationOpExists})
		}, ""},
		{"toleration seconds", func(p *corev1.Pod) { p.Spec.Tolerations[0].TolerationSeconds = &five }, ""},
		{"toleration gone", func(p *corev1.Pod) { p.Spec.Tolerations = p.Spec.Tolerations[1:] }, "existing toleration can not be modified"},
		{"command", func(p *corev1.Pod) { p.Spec.Containers[0].Command = []string{"x"} }, "changed: containers."},
		{"several", func(p *corev1.Pod) {
			p.Spec.Hostname, p.Spec.NodeName, p.Spec.RestartPolicy = "h", "n", corev1.RestartPolicyNever
		}, "changed: restartPolicy, nodeName, hostname."},
		{"container more", func(p *corev1.Pod) { p.Spec.Containers = append(p.Spec.Containers, corev1.Container{Name: "b"}) }, "may not add or remove containers"},
	} {
		p := base.DeepCopy()
		tt.change(p)
		errs := admission.ValidatePodUpdate(p, base)
		if tt.want == "" && len(errs) > 0 || tt.want != "" && (len(errs) != 1 || !strings.Contains(errs[0].Error(), tt.want)) {
			t.Errorf("%s: got %v, want %q", tt.name, errs, tt.want)
		}
	}
}

// What the store gives back differs from what was sent in the form of
// quantities and in nil for empty; that is no change.
func TestPodUpdateSeesNoChangeInForm(t *testing.T) {
	a := podOf(t, small)
	a.Spec.Containers[0].Resources.Requests = corev1.ResourceList{"cpu": resource.MustParse("1000m")}
	b := a.DeepCopy()
	b.Spec.Containers[0].Resources.Requests = corev1.ResourceList{"cpu": resource.MustParse("1")}
	b.Spec.Containers[0].Args = []string{}
	if errs := admission.ValidatePodUpdate(b, a); len(errs) > 0 {
		t.Error(errs)
	}
}

func TestPodStatus(t *testing.T) {
	p := podOf(t, small)
	admission.BindPod(p, "n1", metav1.Unix(100, 0))
	p.Status.QOSClass = corev1.PodQOSBurstable
	reported := corev1.PodStatus{Phase: corev1.PodFailed, QOSClass: "Mine", Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionFalse}}}
	admission.PreparePodStatus(p, reported)
	if p.Status.QOSClass != corev1.PodQOSBurstable || p.Status.Phase != corev1.PodFailed {
		t.Errorf("got %+v", p.Status)
	}
	if len(p.Status.Conditions) != 2 || p.Status.Conditions[0].Type != corev1.PodScheduled {
		t.Errorf("the scheduler's condition is gone: %v", p.Status.Conditions)
	}
	next := p.DeepCopy()
	next.Status.Phase = corev1.PodRunning
	if errs := admission.ValidatePodStatus(next, p); len(errs) != 1 || errs[0].Field != "status.phase" {
		t.Errorf("a failed pod may run again: %v", errs)
	}
}

func TestSetPodConditionKeepsTheTimeOfTheLastTransition(t *testing.T) {
	var s corev1.PodStatus
	set := func(status corev1.ConditionStatus, message string, at int64) corev1.PodCondition {
		admission.SetPodCondition(&s, corev1.PodCondition{Type: corev1.PodScheduled, Status: status, Message: message}, metav1.Unix(at, 0))
		return s.Conditions[0]
	}
	set(corev1.ConditionFalse, "a", 1)
	if c := set(corev1.ConditionFalse, "b", 2); c.Message != "b" || c.LastTransitionTime.Unix() != 1 {
		t.Errorf("got %v", c)
	}
	if c := set(corev1.ConditionTrue, "", 3); c.LastTransitionTime.Unix() != 3 || len(s.Conditions) != 1 {
		t.Errorf("got %v", s.Conditions)
	}
}

func TestBinding(t *testing.T) {
	old := podOf(t, small)
	bound := old.DeepCopy()
	admission.BindPod(bound, "n1", metav1.Now())
	if errs := admission.ValidateBinding(bound, old); len(errs) > 0 {
		t.Error(errs)
	}
	if errs := admission.ValidateBinding(bound, bound); len(errs) > 0 {
		t.Errorf("the same again: %v", errs)
	}
	other := bound.DeepCopy()
	other.Spec.NodeName = "n2"
	if errs := admission.ValidateBinding(other, bound); len(errs) != 1 || !strings.Contains(errs[0].Detail, `already assigned to node "n1"`) {
		t.Errorf("a pod may move: %v", errs)
	}
	now := metav1.Now()
	old.DeletionTimestamp = &now
	if errs := admission.ValidateBinding(bound, old); len(errs) != 1 {
		t.Errorf("a pod that ends may be bound: %v", errs)
	}
}

// Whatever a client sends, defaulting, preparing and validating must neither
// panic nor let an invalid quantity or a negative one through.
func FuzzPod(f *testing.F) {
	f.Add([]byte(`{"metadata":{"name":"p"},"spec":{"containers":[{"name":"c","image":"i","resources":{"limits":{"cpu":"1e3"},"requests":{"cpu":"-5"}}}]}}`))
	f.Add([]byte(`{"metadata":{"annotations":{"edge.bramble.dev/failover":"x"}},"spec":{"volumes":[{"name":"v","emptyDir":{"sizeLimit":"9Ei"}}]}}`))
	f.Add([]byte(`{"spec":{"affinity":{},"initContainers":[{}],"tolerations":[{"tolerationSeconds":-1}]}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		p := &corev1.Pod{}
		if json.Unmarshal(data, p) != nil {
			return
		}
		admission.DefaultPod(p)
		admission.PreparePod(p)
		errs := admission.ValidatePod(p)
		admission.PodWarnings(p)
		admission.ValidatePodUpdate(p, p)
		if len(errs) > 0 {
			return
		}
		for _, c := range p.Spec.Containers {
			for name, q := range c.Resources.Requests {
				if limit, ok := c.Resources.Limits[name]; q.Sign() < 0 || ok && q.Cmp(limit) > 0 {
					t.Errorf("requests of %s %s passed", q.String(), name)
				}
			}
		}
	})
}
