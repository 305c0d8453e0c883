package nodeagent

import (
	"context"
	"time"
)

// mendEvery is how often a record that the disk refused is tried again.
const mendEvery = 10 * time.Second

// mendRecord writes, until ctx ends, what the disk refused before. While all is
// written it only looks at a map.
func (a *Agent) mendRecord(ctx context.Context) error {
	ticker := time.NewTicker(mendEvery)
	defer ticker.Stop()
	refused := false
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-ticker.C:
		}
		err := a.record.Mend()
		switch {
		case err != nil && !refused:
			a.log.Error("the record of pods cannot be written: the pods run, but would not come back after a power cut (make room on the disk)", "err", err)
		case err == nil && refused:
			a.log.Info("the record of pods is written again")
		}
		refused = err != nil
	}
}
