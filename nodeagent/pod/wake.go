package pod

import "time"

// Wake returns when to look at the pod again though nothing happens; zero:
// there is nothing to wait for. It is pure.
func Wake(d Desired, o Observed) time.Time {
	var wake time.Time
	earlier := func(t time.Time) {
		if t.After(o.Now) && (wake.IsZero() || t.Before(wake)) {
			wake = t
		}
	}
	if o.Gone {
		return wake
	}
	if d.leaving() {
		earlier(o.Retries[""].Until)
		return wake
	}
	if finished(d, o) {
		return wake
	}
	earlier(o.Deadline)
	for _, r := range o.Retries {
		earlier(r.Until)
		if r.Reason == ReasonErrImagePull {
			earlier(r.Since.Add(freshFor))
		}
	}
	return wake
}
