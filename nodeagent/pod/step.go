package pod

import "fmt"

// Action is what a Step does.
type Action string

// The actions, in the order in which a pod's life needs them.
const (
	Attach          Action = "attach"     // the pod's network namespace
	Mount           Action = "mount"      // the pod's volumes
	CreatePod       Action = "create pod" // the engine's pod, running
	PullImage       Action = "pull image" // as the container's pull policy says
	CreateContainer Action = "create container"
	StartContainer  Action = "start container"
	PostStart       Action = "run postStart hook"
	StopContainer   Action = "stop container"
	RemoveContainer Action = "remove container"
	RemovePod       Action = "remove pod"
	Detach          Action = "detach"
	HaltPod         Action = "halt pod" // end its infra container
	Unmount         Action = "unmount"
	Forget          Action = "forget" // nothing is left on this node: tell the server
)

// Step is one thing to do for a pod. Steps are values: two equal steps do the
// same.
type Step struct {
	Action       Action
	Container    string // the Kubernetes container's name
	ID           string // the engine's, of an existing container
	Restarts     int    // CreateContainer: the new container's count
	GraceSeconds int64  // StopContainer
	Kept         bool   // PullImage: an image that is there will do, whatever the policy
	Why          string // StopContainer: the Killing event's message
}

func (s Step) String() string {
	if s.Container == "" {
		return string(s.Action)
	}
	return fmt.Sprintf("%s %s", s.Action, s.Container)
}

// surrounds reports whether a step makes what all containers need, by itself.
func (s Step) surrounds() bool {
	return s.Action == Attach || s.Action == Mount || s.Action == CreatePod
}

// interruptible reports whether a step may be broken off when what is desired
// changes: those that can take minutes.
func (s Step) interruptible() bool {
	return s.Action == StopContainer || s.Action == PullImage || s.Action == PostStart
}
