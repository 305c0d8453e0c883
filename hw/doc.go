// Package hw reads what a board says about itself: temperatures, throttling,
// supply, storage, links, clock and devices, from proc, sys and dev of Linux, the
// notes of udev and the firmware of a Raspberry Pi. It needs no root, runs no
// programs, opens no device that does something when it is opened, and writes
// nothing.
//
// A Board reads; a Snapshot is what was read last. Each sensor is one file of this
// package and of one shape. What a board does not have is ErrAbsent, which is
// normal; a sensor that fails or hangs hides no other one.
//
// The agent publishes snapshots, and the scheduler is told of them by the API: it
// does not use this package's Board.
package hw
