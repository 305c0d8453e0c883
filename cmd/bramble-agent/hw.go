package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"bramble.dev/bramble/cmd/settings"
	"bramble.dev/bramble/hw"
)

// newHw is a look at what the board says of itself, without a cluster.
func newHw() *cobra.Command {
	var root string
	var asJSON, watch bool
	c := &cobra.Command{
		Use:   "hw",
		Short: "Print what this board says about itself",
		Long: "Print what this board says about itself: heat, throttling, supply, storage, links and devices.\n\n" +
			"It reads and never writes, needs no root and no cluster. What a board does not have is not\n" +
			"printed; with --json it is null, and each reading has its source and its time in seconds.",
		Example: "  bramble-agent hw\n  bramble-agent hw --watch\n  bramble-agent hw --json | jq .thermal.soc",
		Args:    cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := checkRoot(root); err != nil {
				return err
			}
			board := hw.Open(hw.Config{Root: root})
			defer board.Close()
			return showBoard(c.Context(), c.OutOrStdout(), board, asJSON, watch)
		},
	}
	c.Flags().StringVar(&root, "hw-root", "", "a recorded board: a folder with its proc, sys and dev, and the firmware's answers in vcgencmd")
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	c.Flags().BoolVarP(&watch, "watch", "w", false, "print again whenever sensors are read, until interrupted")
	return c
}

// busyAfter is how long after the first sample the second is taken: how busy the
// cores are is known between two.
const busyAfter = 300 * time.Millisecond

// showBoard prints what board says, once or until ctx ends.
func showBoard(ctx context.Context, w io.Writer, board *hw.Board, asJSON, watch bool) error {
	board.Sample(ctx)
	if !pause(ctx, busyAfter) {
		return nil
	}
	for {
		if err := printBoard(w, board.Sample(ctx), asJSON); err != nil || !watch {
			return err
		}
		if !pause(ctx, hw.Fast) {
			return nil
		}
		if !asJSON {
			_, _ = fmt.Fprint(w, "\x1b[H\x1b[2J") // the screen is cleared
		}
	}
}

func printBoard(w io.Writer, s hw.Snapshot, asJSON bool) error {
	if !asJSON {
		return printSnapshot(w, s)
	}
	encoder := json.NewEncoder(w)
	encoder.SetIndent("", "  ")
	return encoder.Encode(s)
}

// pause waits, and says whether ctx still runs.
func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}

// checkRoot refuses a recorded board that has nothing to read.
func checkRoot(root string) error {
	if root == "" || isDir(root, "proc") || isDir(root, "sys") || isDir(root, "vcgencmd") {
		return nil
	}
	return settings.Hint(fmt.Errorf("--hw-root: %s has neither proc nor sys", root),
		"it is the folder that has copies of a board's /proc and /sys; hw/testdata/cases/*/root in the source are some")
}
