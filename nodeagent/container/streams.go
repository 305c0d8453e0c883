package container

import "io"

// Streams are a client's ends of a command in a container, or of the container
// itself. What was not asked for is nil.
type Streams struct {
	Stdin          io.Reader // its end is the input's end
	Stdout, Stderr io.Writer // with TTY all output goes to Stdout
	TTY            bool
	Resize         <-chan Size // of the client's window; closed when there is no more to come
}

// Size is a window's, in characters.
type Size struct{ Width, Height uint16 }
