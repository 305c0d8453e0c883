package probe

// HealthStatus is healthStatus.
var HealthStatus = healthStatus
