package probe

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	corev1 "k8s.io/api/core/v1"

	"bramble.dev/bramble/nodeagent/container"
)

// Hook runs a lifecycle hook of a running container until it is done or ctx
// ends. The error of a hook that failed says how.
func (p *Probers) Hook(ctx context.Context, t container.Target, hook *corev1.LifecycleHandler) error {
	switch {
	case hook.Exec != nil:
		output, code, err := p.cfg.Exec(ctx, t, hook.Exec.Command, maxOutput)
		if err == nil && code != 0 {
			err = fmt.Errorf("the command ended with exit code %d: %s", code, output)
		}
		return err
	case hook.HTTPGet != nil:
		req, err := request(ctx, t, hook.HTTPGet)
		if err != nil {
			return err
		}
		res, err := p.client().Do(req)
		if err != nil {
			return err
		}
		defer res.Body.Close()
		_, _ = io.Copy(io.Discard, io.LimitReader(res.Body, maxOutput)) // any answer is one, as for the kubelet
		return nil
	case hook.Sleep != nil:
		timer := time.NewTimer(time.Duration(hook.Sleep.Seconds) * time.Second)
		defer timer.Stop()
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-timer.C:
			return nil
		}
	}
	return errors.New("this kind of lifecycle hook is not supported")
}
