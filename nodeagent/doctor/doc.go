// Package doctor tells what keeps a board from being a good node, and for each thing
// the one line that changes it: a command, or a line of a file.
//
// Look gathers facts and does all I/O; Diagnose makes findings of them and does none.
// Nothing is changed here. `bramble-agent doctor` prints the findings, and the agent
// reports those that are serious as conditions of its Node.
package doctor
