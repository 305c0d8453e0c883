package pod

// The kubelet's reasons for a container that waits.
const (
	ReasonContainerCreating    = "ContainerCreating"
	ReasonPodInitializing      = "PodInitializing"
	ReasonErrImagePull         = "ErrImagePull"
	ReasonImagePullBackOff     = "ImagePullBackOff"
	ReasonErrImageNeverPull    = "ErrImageNeverPull"
	ReasonInvalidImageName     = "InvalidImageName"
	ReasonCreateConfigError    = "CreateContainerConfigError"
	ReasonCreateContainerError = "CreateContainerError"
	ReasonRunContainerError    = "RunContainerError"
	ReasonCrashLoopBackOff     = "CrashLoopBackOff"
)

// The kubelet's reasons for a container that ended, and for a pod.
const (
	ReasonCompleted        = "Completed"
	ReasonError            = "Error"
	ReasonOOMKilled        = "OOMKilled"
	ReasonStartError       = "StartError"
	ReasonStatusUnknown    = "ContainerStatusUnknown"
	ReasonDeadlineExceeded = "DeadlineExceeded"
)

// Failure is why a step could not be done, in the kubelet's words: Reason is
// what the container's status says, Event the event's reason.
type Failure struct {
	Reason, Event string
	Err           error
}

func (f *Failure) Error() string { return f.Err.Error() }
func (f *Failure) Unwrap() error { return f.Err }
