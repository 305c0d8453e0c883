package scheduler

import (
	"time"

	"bramble.dev/bramble/server/api"
)

// Explain is a decision as people read it.
func (f Profile) Explain(d *Decision) api.PlacementStatus { return f.explain(d, "", time.Time{}) }
