package doctor

import (
	"cmp"
	"fmt"
	"slices"
)

// Level is how much a finding matters.
type Level int

// The levels. Fatal is what stops the node; a Warning is what it does worse for; a
// Note is good to know. Unknown is what could not be told, and why.
const (
	Fine Level = iota
	Unknown
	Note
	Warning
	Fatal
)

// String is the level in a word, as JSON has it.
func (l Level) String() string { return [...]string{"fine", "unknown", "note", "warning", "fatal"}[l] }

// MarshalText writes the word.
func (l Level) MarshalText() ([]byte, error) { return []byte(l.String()), nil }

// Finding is what one check came to.
type Finding struct {
	Check   string `json:"check"` // in CamelCase, named for what is wrong if it is, as conditions are
	Level   Level  `json:"level"`
	Message string `json:"message"`       // one line
	Fix     string `json:"fix,omitempty"` // the one line that changes it; "" if there is none
}

// conditions are the conditions of a Node that say what a check of another name says.
var conditions = map[string]string{
	checkUnified:    limitsCondition,
	checkMemory:     limitsCondition,
	checkPodman:     "Ready",
	checkRuntimeDir: "Ready",
}

const limitsCondition = "ResourceLimitsUnenforced"

// Condition is the type of the Node's condition that the finding's matter has.
func (f Finding) Condition() string { return cmp.Or(conditions[f.Check], f.Check) }

// Stops says whether one of the findings stops the node.
func Stops(all []Finding) bool {
	return slices.ContainsFunc(all, func(f Finding) bool { return f.Level == Fatal })
}

// Diagnose makes findings of facts, the worst first. A check has one finding at most,
// and none where the board has nothing of its kind. It is pure.
func Diagnose(f Facts) (all []Finding) {
	for _, check := range []func(Facts) []Finding{
		checkUser, checkSubordinate, checkIDMap, checkNamespaces,
		checkCgroups, checkPodmanRuns, checkPrograms, checkModules,
		checkSession, checkStateDir, checkDisks, checkLatency, checkClock,
		checkSupply, checkHeat, checkFirmware, checkDevices,
		checkPressure, checkBuild, checkSwap, checkPorts, checkServers,
	} {
		all = append(all, check(f)...)
	}
	slices.SortStableFunc(all, func(a, b Finding) int { return cmp.Compare(b.Level, a.Level) })
	return all
}

func fine(check, format string, args ...any) Finding {
	return Finding{Check: check, Level: Fine, Message: fmt.Sprintf(format, args...)}
}

func unknown(check, format string, args ...any) Finding {
	return Finding{Check: check, Level: Unknown, Message: fmt.Sprintf(format, args...)}
}

func note(check, format string, args ...any) Finding {
	return Finding{Check: check, Level: Note, Message: fmt.Sprintf(format, args...)}
}

func warning(check, format string, args ...any) Finding {
	return Finding{Check: check, Level: Warning, Message: fmt.Sprintf(format, args...)}
}

func fatal(check, format string, args ...any) Finding {
	return Finding{Check: check, Level: Fatal, Message: fmt.Sprintf(format, args...)}
}

// by is the finding with the line that changes it.
func (f Finding) by(format string, args ...any) Finding {
	f.Fix = fmt.Sprintf(format, args...)
	return f
}
