package probe

// HealthStatus is healthStatus.
var HealthStatus = healthStatus

// Age and StartTime are age and startTime.
var (
	Age       = age
	StartTime = startTime
)
