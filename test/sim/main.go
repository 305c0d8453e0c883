// Command sim simulates fleets of boards that get warm, with Bramble's scheduler and the
// agent's judgement as they are, and says what knowing of heat is good for. Nothing of it
// is measured: docs/simulation.md has the figures, and what they assume.
//
// A board is two poles of heat, the clock's steps of its firmware, and a sensor; pods come
// at random and use other than they ask for. Time is counted, not waited for, and the same
// seeds bring the same bytes. `make sim` writes the figures into docs.
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
)

func main() {
	into := flag.String("into", "", "the folder whose simulation.md and simulation.svg get the figures; else the tables are printed")
	flag.Usage = func() {
		fmt.Fprint(os.Stderr, "Simulates fleets of boards under Bramble's scheduler: go run ./test/sim [-into docs]\n\n")
		flag.PrintDefaults()
	}
	flag.Parse()
	debug.SetGCPercent(400) // it lives for half a minute
	if err := write(*into); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

func write(folder string) error {
	f := campaign()
	if folder == "" {
		_, err := fmt.Print(f.markdown())
		return err
	}
	page := filepath.Join(folder, "simulation.md")
	text, err := os.ReadFile(page)
	if err != nil {
		return fmt.Errorf("cannot read the page for the figures: %w", err)
	}
	out, err := splice(string(text), f.markdown())
	if err != nil {
		return fmt.Errorf("cannot write into %s: %w", page, err)
	}
	if err := os.WriteFile(page, []byte(out), 0o644); err != nil {
		return fmt.Errorf("cannot write the figures: %w", err)
	}
	if err := os.WriteFile(filepath.Join(folder, "simulation.svg"), []byte(f.plot()), 0o644); err != nil {
		return fmt.Errorf("cannot write the plot: %w", err)
	}
	return nil
}
