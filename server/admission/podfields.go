package admission

import "strings"

// This table says of every field of a pod's spec what Bramble does with it.
// It is the only place that says so: validation refuses and warns by it, and a
// test walks the types of k8s.io/api and fails for a field that it does not
// name. To support a field, change its line here and do what it asks.
//
// A field is refused if ignoring it would weaken isolation, the safety of
// data, placement or ordering; else a pod with it is admitted with a warning.

type verdict uint8

const (
	honoured verdict = iota + 1 // with all that is in it
	descend                     // what is in it has lines of its own
	warned                      // admitted, ignored, and the client is told
	refused                     // not admitted
)

// fieldRule is what becomes of a field that is set. But values that equal
// one of harmless ask for nothing that does not happen anyway.
type fieldRule struct {
	verdict  verdict
	words    string
	harmless []any
}

func no(words string, harmless ...any) fieldRule { return fieldRule{refused, words, harmless} }
func warn(words string, harmless ...any) fieldRule {
	return fieldRule{warned, words, harmless}
}

const (
	noTCPHook  = "hooks by TCP do nothing in Kubernetes either; use exec or httpGet"
	noSecurity = "not supported yet, and running without it would be less isolated than asked; remove it"
	noVolume   = "this kind of volume is not supported; use emptyDir, configMap, secret, downwardAPI, projected or hostPath"
	noHost     = "not supported yet; remove it"
	noClaims   = "dynamic resource allocation is not supported; remove it"
)

// ruleOf is the line for a field. What holds for containers holds for init
// containers too, unless they have a line of their own.
func ruleOf(key string) (fieldRule, bool) {
	rule, known := podFields[key]
	if rest, of := strings.CutPrefix(key, "initContainers[]."); !known && of {
		rule, known = podFields["containers[]."+rest]
	}
	return rule, known
}

// podFields is keyed by the field's path below spec, with [] for any index.
var podFields = map[string]fieldRule{
	"volumes":                                  {verdict: descend},
	"initContainers":                           {verdict: descend},
	"containers":                               {verdict: descend},
	"ephemeralContainers":                      no("ephemeral containers are not supported yet"),
	"restartPolicy":                            {verdict: honoured},
	"terminationGracePeriodSeconds":            {verdict: honoured},
	"activeDeadlineSeconds":                    {verdict: honoured},
	"dnsPolicy":                                {verdict: honoured},
	"dnsConfig":                                {verdict: honoured},
	"nodeSelector":                             {verdict: honoured},
	"serviceAccountName":                       warn("the account must exist, but no token of it is mounted into the pod yet", "default"),
	"serviceAccount":                           {verdict: honoured}, // the old name, kept equal to serviceAccountName
	"automountServiceAccountToken":             warn("no token is mounted into the pod yet", false),
	"nodeName":                                 {verdict: honoured},
	"hostNetwork":                              {verdict: honoured},
	"hostPID":                                  no(noHost),
	"hostIPC":                                  no(noHost),
	"shareProcessNamespace":                    {verdict: honoured},
	"securityContext":                          {verdict: descend},
	"imagePullSecrets":                         {verdict: honoured},
	"hostname":                                 {verdict: honoured},
	"subdomain":                                warn("there is no DNS name for it yet"),
	"affinity":                                 {verdict: descend},
	"affinity.nodeAffinity":                    {verdict: honoured},
	"affinity.podAffinity":                     {verdict: honoured},
	"affinity.podAntiAffinity":                 {verdict: honoured},
	"schedulerName":                            {verdict: honoured}, // our scheduler leaves the others' pods alone
	"tolerations":                              {verdict: honoured},
	"hostAliases":                              {verdict: honoured},
	"priorityClassName":                        {verdict: honoured},
	"priority":                                 {verdict: honoured},
	"readinessGates":                           {verdict: honoured},
	"runtimeClassName":                         no(noSecurity, ""),
	"enableServiceLinks":                       {verdict: honoured}, // there are no Services to link yet
	"preemptionPolicy":                         {verdict: honoured},
	"overhead":                                 no("runtime classes are not supported; remove it"),
	"topologySpreadConstraints":                {verdict: honoured},
	"setHostnameAsFQDN":                        warn("there is no DNS domain for it yet", false),
	"os":                                       {verdict: honoured}, // validation wants linux
	"hostUsers":                                no("not supported: containers run in the node user's own user namespace; remove it", true),
	"schedulingGates":                          {verdict: honoured},
	"resourceClaims":                           no(noClaims),
	"resources":                                no("resources of a whole pod are not supported; set them for each container"),
	"hostnameOverride":                         warn("not supported; set hostname instead"),
	"schedulingGroup":                          no("scheduling groups are not supported, and the pod would start without the others; remove it"),
	"evictionResponders":                       no("eviction responders are not supported, and an eviction would not wait for them; remove it"),
	"securityContext.seLinuxOptions":           no(noSecurity),
	"securityContext.windowsOptions":           no("there are no Windows nodes; remove it"),
	"securityContext.runAsUser":                {verdict: honoured},
	"securityContext.runAsGroup":               {verdict: honoured},
	"securityContext.runAsNonRoot":             {verdict: honoured},
	"securityContext.sysctls":                  no("not supported yet; remove it"),
	"securityContext.fsGroup":                  {verdict: honoured},
	"securityContext.seccompProfile":           {verdict: honoured},
	"securityContext.appArmorProfile":          no(noSecurity),
	"securityContext.supplementalGroups":       {verdict: honoured},
	"securityContext.supplementalGroupsPolicy": no(noSecurity, "Merge"),
	"securityContext.fsGroupChangePolicy":      {verdict: honoured},
	"securityContext.seLinuxChangePolicy":      no(noSecurity),

	"containers[].name":                             {verdict: honoured},
	"containers[].image":                            {verdict: honoured},
	"containers[].command":                          {verdict: honoured},
	"containers[].args":                             {verdict: honoured},
	"containers[].workingDir":                       {verdict: honoured},
	"containers[].ports":                            {verdict: descend},
	"containers[].ports[].name":                     {verdict: honoured},
	"containers[].ports[].containerPort":            {verdict: honoured},
	"containers[].ports[].protocol":                 {verdict: honoured},
	"containers[].ports[].hostPort":                 {verdict: honoured},
	"containers[].ports[].hostIP":                   {verdict: honoured},
	"containers[].envFrom":                          {verdict: honoured},
	"containers[].env":                              {verdict: descend},
	"containers[].env[].name":                       {verdict: honoured},
	"containers[].env[].value":                      {verdict: honoured},
	"containers[].env[].valueFrom":                  {verdict: descend},
	"containers[].env[].valueFrom.fieldRef":         {verdict: honoured},
	"containers[].env[].valueFrom.resourceFieldRef": {verdict: honoured},
	"containers[].env[].valueFrom.configMapKeyRef":  {verdict: honoured},
	"containers[].env[].valueFrom.secretKeyRef":     {verdict: honoured},
	"containers[].env[].valueFrom.fileKeyRef":       no("variables from files are not supported; use a ConfigMap or Secret"),
	"containers[].resources":                        {verdict: descend},
	"containers[].resources.limits":                 {verdict: honoured},
	"containers[].resources.requests":               {verdict: honoured},
	"containers[].resources.claims":                 no(noClaims),
	"containers[].resizePolicy":                     warn("resources of a running container can not be changed yet"),
	"containers[].restartPolicy":                    no("not supported yet; the pod's restartPolicy holds for all its containers"),
	"containers[].restartPolicyRules":               no("not supported; the pod's restartPolicy holds for all its containers"),
	"containers[].volumeMounts":                     {verdict: descend},
	"containers[].volumeMounts[].name":              {verdict: honoured},
	"containers[].volumeMounts[].readOnly":          {verdict: honoured},
	"containers[].volumeMounts[].mountPath":         {verdict: honoured},
	"containers[].volumeMounts[].subPath":           {verdict: honoured},
	"containers[].volumeMounts[].subPathExpr":       {verdict: honoured},
	"containers[].volumeMounts[].recursiveReadOnly": no(noSecurity, "Disabled"),
	"containers[].volumeMounts[].mountPropagation":  no("containers and the node share no mounts; remove it", "None"),
	"containers[].volumeMounts[].bindMountOptions":  no(noSecurity),
	"containers[].volumeDevices":                    no("block devices are not supported; remove it"),
	"containers[].livenessProbe":                    {verdict: honoured},
	"containers[].readinessProbe":                   {verdict: honoured},
	"containers[].startupProbe":                     {verdict: honoured},
	"containers[].lifecycle":                        {verdict: descend},
	"containers[].lifecycle.postStart":              {verdict: descend},
	"containers[].lifecycle.postStart.exec":         {verdict: honoured},
	"containers[].lifecycle.postStart.httpGet":      {verdict: honoured},
	"containers[].lifecycle.postStart.sleep":        {verdict: honoured},
	"containers[].lifecycle.postStart.tcpSocket":    no(noTCPHook),
	"containers[].lifecycle.preStop":                {verdict: descend},
	"containers[].lifecycle.preStop.exec":           {verdict: honoured},
	"containers[].lifecycle.preStop.httpGet":        {verdict: honoured},
	"containers[].lifecycle.preStop.sleep":          {verdict: honoured},
	"containers[].lifecycle.preStop.tcpSocket":      no(noTCPHook),
	"containers[].lifecycle.stopSignal":             {verdict: honoured},
	"containers[].terminationMessagePath":           {verdict: honoured},
	"containers[].terminationMessagePolicy":         {verdict: honoured},
	"containers[].imagePullPolicy":                  {verdict: honoured},
	"containers[].securityContext":                  {verdict: descend},
	"containers[].stdin":                            {verdict: honoured},
	"containers[].stdinOnce":                        {verdict: honoured},
	"containers[].tty":                              {verdict: honoured},

	"containers[].securityContext.capabilities":             {verdict: honoured},
	"containers[].securityContext.privileged":               no("privileged containers are not supported; remove it", false),
	"containers[].securityContext.seLinuxOptions":           no(noSecurity),
	"containers[].securityContext.windowsOptions":           no("there are no Windows nodes; remove it"),
	"containers[].securityContext.runAsUser":                {verdict: honoured},
	"containers[].securityContext.runAsGroup":               {verdict: honoured},
	"containers[].securityContext.runAsNonRoot":             {verdict: honoured},
	"containers[].securityContext.readOnlyRootFilesystem":   {verdict: honoured},
	"containers[].securityContext.allowPrivilegeEscalation": {verdict: honoured},
	"containers[].securityContext.procMount":                no(noSecurity, "Default"),
	"containers[].securityContext.seccompProfile":           {verdict: honoured},
	"containers[].securityContext.appArmorProfile":          no(noSecurity),

	"initContainers[].restartPolicy": {verdict: honoured}, // validation wants Always

	"volumes[].name":                                                     {verdict: honoured},
	"volumes[].emptyDir":                                                 {verdict: descend},
	"volumes[].emptyDir.medium":                                          {verdict: honoured},
	"volumes[].emptyDir.sizeLimit":                                       {verdict: honoured}, // validation wants medium Memory
	"volumes[].emptyDir.mode":                                            no("not supported; change the directory's mode in the container"),
	"volumes[].configMap":                                                {verdict: descend},
	"volumes[].configMap.name":                                           {verdict: honoured},
	"volumes[].configMap.items":                                          {verdict: descend},
	"volumes[].configMap.items[].key":                                    {verdict: honoured},
	"volumes[].configMap.items[].path":                                   {verdict: honoured},
	"volumes[].configMap.items[].mode":                                   {verdict: honoured},
	"volumes[].configMap.items[].user":                                   no(noSecurity),
	"volumes[].configMap.defaultMode":                                    {verdict: honoured},
	"volumes[].configMap.optional":                                       {verdict: honoured},
	"volumes[].configMap.defaultUser":                                    no(noSecurity),
	"volumes[].secret":                                                   {verdict: descend},
	"volumes[].secret.secretName":                                        {verdict: honoured},
	"volumes[].secret.items":                                             {verdict: descend},
	"volumes[].secret.items[].key":                                       {verdict: honoured},
	"volumes[].secret.items[].path":                                      {verdict: honoured},
	"volumes[].secret.items[].mode":                                      {verdict: honoured},
	"volumes[].secret.items[].user":                                      no(noSecurity),
	"volumes[].secret.defaultMode":                                       {verdict: honoured},
	"volumes[].secret.optional":                                          {verdict: honoured},
	"volumes[].secret.defaultUser":                                       no(noSecurity),
	"volumes[].hostPath":                                                 {verdict: honoured},
	"volumes[].downwardAPI":                                              {verdict: descend},
	"volumes[].downwardAPI.items":                                        {verdict: descend},
	"volumes[].downwardAPI.items[].path":                                 {verdict: honoured},
	"volumes[].downwardAPI.items[].fieldRef":                             {verdict: honoured},
	"volumes[].downwardAPI.items[].resourceFieldRef":                     {verdict: honoured},
	"volumes[].downwardAPI.items[].mode":                                 {verdict: honoured},
	"volumes[].downwardAPI.items[].user":                                 no(noSecurity),
	"volumes[].downwardAPI.defaultMode":                                  {verdict: honoured},
	"volumes[].downwardAPI.defaultUser":                                  no(noSecurity),
	"volumes[].projected":                                                {verdict: descend},
	"volumes[].projected.defaultMode":                                    {verdict: honoured},
	"volumes[].projected.defaultUser":                                    no(noSecurity),
	"volumes[].projected.sources":                                        {verdict: descend},
	"volumes[].projected.sources[].secret":                               {verdict: descend},
	"volumes[].projected.sources[].secret.name":                          {verdict: honoured},
	"volumes[].projected.sources[].secret.items":                         {verdict: descend},
	"volumes[].projected.sources[].secret.items[].key":                   {verdict: honoured},
	"volumes[].projected.sources[].secret.items[].path":                  {verdict: honoured},
	"volumes[].projected.sources[].secret.items[].mode":                  {verdict: honoured},
	"volumes[].projected.sources[].secret.items[].user":                  no(noSecurity),
	"volumes[].projected.sources[].secret.optional":                      {verdict: honoured},
	"volumes[].projected.sources[].configMap":                            {verdict: descend},
	"volumes[].projected.sources[].configMap.name":                       {verdict: honoured},
	"volumes[].projected.sources[].configMap.items":                      {verdict: descend},
	"volumes[].projected.sources[].configMap.items[].key":                {verdict: honoured},
	"volumes[].projected.sources[].configMap.items[].path":               {verdict: honoured},
	"volumes[].projected.sources[].configMap.items[].mode":               {verdict: honoured},
	"volumes[].projected.sources[].configMap.items[].user":               no(noSecurity),
	"volumes[].projected.sources[].configMap.optional":                   {verdict: honoured},
	"volumes[].projected.sources[].downwardAPI":                          {verdict: descend},
	"volumes[].projected.sources[].downwardAPI.items":                    {verdict: descend},
	"volumes[].projected.sources[].downwardAPI.items[].path":             {verdict: honoured},
	"volumes[].projected.sources[].downwardAPI.items[].fieldRef":         {verdict: honoured},
	"volumes[].projected.sources[].downwardAPI.items[].resourceFieldRef": {verdict: honoured},
	"volumes[].projected.sources[].downwardAPI.items[].mode":             {verdict: honoured},
	"volumes[].projected.sources[].downwardAPI.items[].user":             no(noSecurity),
	"volumes[].projected.sources[].serviceAccountToken":                  no("no token is mounted into pods yet; make one with kubectl create token and put it into a Secret"),
	"volumes[].projected.sources[].clusterTrustBundle":                   no(noVolume),
	"volumes[].projected.sources[].podCertificate":                       no(noVolume),
	"volumes[].persistentVolumeClaim":                                    no("persistent volumes are not supported yet, and data would be lost with the pod"),
	"volumes[].nfs":                                                      no("NFS volumes are not supported yet, and data would be lost with the pod"),
	"volumes[].ephemeral":                                                no("persistent volumes are not supported yet; use emptyDir"),
	"volumes[].gitRepo":                                                  no("not supported: Kubernetes removed it; clone in the container"),
	"volumes[].gcePersistentDisk":                                        no(noVolume),
	"volumes[].awsElasticBlockStore":                                     no(noVolume),
	"volumes[].iscsi":                                                    no(noVolume),
	"volumes[].glusterfs":                                                no(noVolume),
	"volumes[].rbd":                                                      no(noVolume),
	"volumes[].flexVolume":                                               no(noVolume),
	"volumes[].cinder":                                                   no(noVolume),
	"volumes[].cephfs":                                                   no(noVolume),
	"volumes[].flocker":                                                  no(noVolume),
	"volumes[].fc":                                                       no(noVolume),
	"volumes[].azureFile":                                                no(noVolume),
	"volumes[].vsphereVolume":                                            no(noVolume),
	"volumes[].quobyte":                                                  no(noVolume),
	"volumes[].azureDisk":                                                no(noVolume),
	"volumes[].photonPersistentDisk":                                     no(noVolume),
	"volumes[].portworxVolume":                                           no(noVolume),
	"volumes[].scaleIO":                                                  no(noVolume),
	"volumes[].storageos":                                                no(noVolume),
	"volumes[].csi":                                                      no(noVolume),
	"volumes[].image":                                                    no(noVolume),
}
