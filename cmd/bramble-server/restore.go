package main

import (
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"bramble.dev/bramble/cmd/settings"
	"bramble.dev/bramble/server"
)

func newRestore() *cobra.Command {
	replace := false
	c := &cobra.Command{
		Use:   "restore FILE",
		Short: "Put a backup (edgectl backup) into the data directory of a server that does not run",
		Long: "Put a backup (edgectl backup) into the data directory of a server that does not run.\n\n" +
			"Nodes keep all that they run until \"edgectl restore --confirm\"; clients list anew.",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return settings.Hint(fmt.Errorf("restore needs one FILE, and got %d", len(args)), "name the file that edgectl backup wrote: bramble-server restore FILE --data-dir DIRECTORY")
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error {
			cfg, err := readSettings(c.Flags())
			if err != nil {
				return err
			}
			f, err := os.Open(args[0])
			if err != nil {
				return settings.Hint(fmt.Errorf("cannot read the backup: %w", err), "name the file that edgectl backup wrote")
			}
			defer f.Close()
			info, err := server.Restore(c.Context(), cfg.server.DataDir, f, replace)
			if errors.Is(err, server.ErrDataThere) {
				return settings.Hint(err, "give --replace to set it aside, or another --data-dir")
			}
			if err != nil {
				return hint(err)
			}
			_, err = fmt.Fprintf(c.OutOrStdout(), "restored the backup of %s: start bramble-server, look at what runs, and then: edgectl restore --confirm\n", info.Taken)
			return err
		},
	}
	addFlags(c.Flags())
	c.Flags().BoolVar(&replace, "replace", false, "set aside the cluster that is in the data directory")
	return c
}
