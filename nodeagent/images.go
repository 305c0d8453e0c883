package nodeagent

import (
	"context"
	"time"

	"bramble.dev/bramble/nodeagent/report"
)

// imagesPause is the least time between two looks at the images: a pod that is
// pulled for again and again costs no more.
const imagesPause = 10 * time.Second

// lookAtImages has the images listed soon. It does not block.
func (a *Agent) lookAtImages() {
	select {
	case a.imagesChanged <- struct{}{}:
	default:
	}
}

// watchImages keeps what the node's status says of its images: they are listed
// when Podman says that they changed, and when it is there again after it was not.
func (a *Agent) watchImages(ctx context.Context) error {
	pause := time.NewTimer(0)
	defer pause.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-a.imagesChanged:
		}
		stored, err := a.engine.Images(ctx)
		if err != nil {
			a.log.Debug("cannot look at the images", "err", err)
		} else {
			a.health.setImages(report.NodeImages(stored))
			a.node.Look()
		}
		pause.Reset(imagesPause)
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-pause.C:
		}
	}
}
