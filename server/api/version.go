package api

// BuildVersion is this build's version, set by the linker
// (-X bramble.dev/bramble/server/api.BuildVersion=...) from the git tag.
// BuildDate is the time of its commit in RFC 3339: the earliest time that a
// machine that runs it can take for now.
var (
	BuildVersion = "0.1.0-dev"
	BuildDate    = "2026-12-01T00:00:00Z"
)
