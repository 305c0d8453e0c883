// Package container has the types in which the node agent's parts speak of
// pods and containers as the container engine sees them: what is to be made
// (Spec) and what there is (Pod, State). It is a leaf without I/O; the runtime
// fills the types, the pod workers decide by them.
package container

import "time"

// PodSpec is the engine's share of a pod: a group of containers with shared
// IPC and UTS namespaces, held by an infra container. It has no network of its
// own; containers join the pod's network namespace by path.
type PodSpec struct {
	UID, Namespace, Name string
	Hostname             string
	SharePID             bool // its containers see each other's processes
}

// Spec is one container to be made. Names follow the Kubernetes container.
type Spec struct {
	PodUID, PodNamespace, PodName string
	Name                          string
	Restarts                      int    // how often it was restarted before: part of its engine name and a label
	Image                         string // as the pod names it
	ImageID                       string // what it resolved to: the container is made from this
	Command, Args                 []string
	Env                           []Env
	WorkingDir                    string
	Stdin, StdinOnce, TTY         bool
	NetNS                         string // path of the network namespace; empty: none (its own, empty)
	DNSServers, DNSSearches       []string
	DNSOptions                    []string
	Hosts                         string // path on the node of the /etc/hosts to mount
	Mounts                        []Mount
	Devices                       []Device // kept as a label: tells what is taken
	TerminationMessagePath        string
	MemoryLimitBytes              int64  // 0: none
	CPUQuotaMilli                 int64  // 0: none
	CPUSharesMilli                int64  // requests; 0: none
	Hash                          string // of the pod's container, kept as a label: tells a changed container
	Sandbox                       string // of the pod's life since boot, kept as a label: tells what a reboot has ended
	MessageFromLog                bool   // an empty termination message of a failed container is taken from its log
	StopSignal                    string // "SIGUSR1"; empty: the image's
	HostNetwork                   bool   // the node's own network namespace
	Security                      Security
}

// Security is what a container's processes may do. The zero value is the engine's
// defaults.
type Security struct {
	User            string   // "uid" or "uid:gid", names too; empty: the image's
	Groups          []int64  // supplementary
	CapAdd, CapDrop []string // without the prefix CAP_; "ALL" drops all
	ReadOnlyRoot    bool
	NoNewPrivileges bool
	Unconfined      bool // without the engine's seccomp profile
}

// Env is one environment variable, its value already expanded.
type Env struct{ Name, Value string }

// Mount is a bind mount of a directory or file of the node.
type Mount struct {
	Source, Target string
	ReadOnly       bool
	SubPath        string // only this part of Source; package volume makes a mount of it
	SubPathExpr    string // likewise, with $(NAME) of the container's variables
	Fixed          bool   // nothing can be made in Source
	TmpfsBytes     int64  // > 0: a tmpfs of this size instead of Source; -1: a tmpfs without a size
	Tmpfs          bool
}

// Device is a device of the node that a container is given.
type Device struct {
	Resource string // as which the pod asked for it
	Key      string // names it as long as the node can tell it from others, wherever it is
	Class    string
	Number   string // of its first node: major and minor
	Nodes    []Node
}

// Node is a device's file on the node and in the container.
type Node struct{ Source, Target string }

// Phase is where a container stands in the engine.
type Phase string

// The engine's phases of a container.
const (
	Created Phase = "created"
	Running Phase = "running"
	Exited  Phase = "exited"
)

// State is one container as the engine has it.
type State struct {
	ID                 string
	PodUID             string
	Name               string // the Kubernetes container's name
	Restarts           int
	Phase              Phase
	Image, ImageID     string
	Hash               string
	Sandbox            string
	Devices            []Device
	CreatedAt          time.Time
	StartedAt          time.Time
	FinishedAt         time.Time
	ExitCode           int
	OOMKilled          bool
	Error              string // why the engine could not start it
	TerminationMessage string
	PID                int
}

// Pod is one pod as the engine has it, with all its containers, also those of
// earlier restarts.
type Pod struct {
	ID, UID, Namespace, Name string
	Running                  bool // its infra container runs
	Containers               []State
}

// Image is what a reference resolves to on this node.
type Image struct {
	ID, Digest   string
	Architecture string
	User         string
}

// Credential is what a registry is shown for a pull. It must not be logged.
type Credential struct{ Username, Password, IdentityToken string }

// StoredImage is an image that the node has: all its names, with tags and with
// digests, and its size.
type StoredImage struct {
	Tags, Digests []string
	SizeBytes     int64
}

// ImagesChanged is what an Event says of the node's images, which are no pod's.
const ImagesChanged = "images changed"

// Event says that something of a pod changed in the engine; what, the reader
// looks up.
type Event struct{ PodUID, ContainerID, What string }
