package main

import (
	"fmt"
	"io"
	"math"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	cmdutil "k8s.io/kubectl/pkg/cmd/util"
	"k8s.io/kubectl/pkg/util/completion"

	"bramble.dev/bramble/server/api"
)

func newHw(flags *genericclioptions.ConfigFlags, streams genericiooptions.IOStreams) *cobra.Command {
	return &cobra.Command{
		Use:   "hw [NODE]",
		Short: "Say what the nodes' boards say about themselves",
		Long: "Say what the nodes' boards say about themselves: all of them in a table, or one in full.\n\n" +
			"A node reports what changes. What its board cannot tell is left out, or a dash.",
		Example: "  edgectl hw\n  edgectl hw attic",
		Args:    cobra.MaximumNArgs(1),

		ValidArgsFunction: completion.ResourceNameCompletionFunc(cmdutil.NewFactory(flags), "node"),
		Run: func(c *cobra.Command, args []string) {
			const path = "/apis/" + api.Group + "/" + api.Version + "/nodehardwares"
			if len(args) == 1 {
				var h api.NodeHardware
				if err := call(c.Context(), flags, path+"/"+args[0], nil, &h); err != nil {
					fail(streams, fmt.Errorf("cannot read the hardware of node %s: %w", args[0], err),
						hintFor(err, "it reports some seconds after it has joined; see the nodes there are: edgectl get nodes"))
				}
				_ = printBoard(streams.Out, &h)
				var past api.NodeHardwareHistory // an older server has none
				if err := call(c.Context(), flags, "/apis/"+api.Group+"/"+api.Version+"/nodehardwarehistories/"+args[0], nil, &past); err == nil {
					fmt.Fprint(streams.Out, spark(past.Samples))
				}
				return
			}
			var all api.NodeHardwareList
			if err := call(c.Context(), flags, path, nil, &all); err != nil {
				fail(streams, fmt.Errorf("cannot read the nodes' hardware: %w", err), hintFor(err, ""))
			}
			if len(all.Items) == 0 {
				fmt.Fprintln(streams.ErrOut, "No node has reported its board.")
				return
			}
			_ = printFleet(streams.Out, all.Items)
		},
	}
}

// bars are the heights of a sparkline.
var bars = []rune("▁▂▃▄▅▆▇█")

// spark draws the temperature of the last hour, a sign a minute; "" if none is known.
// What was not known has a space.
func spark(samples []api.HardwareSample) string {
	const minutes = 60
	low, high := int64(math.MaxInt64), int64(math.MinInt64)
	for _, s := range samples {
		if s.SoCTemperatureMilliC != nil {
			low, high = min(low, *s.SoCTemperatureMilliC), max(high, *s.SoCTemperatureMilliC)
		}
	}
	if high < low {
		return ""
	}
	line := make([]rune, minutes)
	for i := range line {
		line[i] = ' '
		age := int64(minutes-1-i) * 60
		for _, s := range samples { // the oldest first: the last one before then holds
			if s.AgeSeconds >= age && s.SoCTemperatureMilliC != nil {
				line[i] = bars[(*s.SoCTemperatureMilliC-low)*int64(len(bars)-1)/max(high-low, 1)]
			} else if s.AgeSeconds >= age {
				line[i] = ' '
			}
		}
	}
	return fmt.Sprintf("\nSoC in the last hour, %s to %s:\n%s\n", degrees(&low), degrees(&high), string(line))
}

// printFleet writes a line for each board.
func printFleet(w io.Writer, boards []api.NodeHardware) error {
	tw := tabwriter.NewWriter(w, 0, 8, 3, ' ', 0)
	fmt.Fprintln(tw, "NODE\tSOC\tSUPPLY\tMEMORY FREE\tSTORAGE FREE\tLINK\tWRONG\tBOARD")
	for i := range boards {
		s := &boards[i].Status
		fmt.Fprintf(tw, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", boards[i].Name,
			degrees(s.SoCTemperatureMilliC), supply(s), percentOf(s.MemoryAvailableBytes, s.MemoryBytes),
			percentOf(s.StorageAvailableBytes, s.StorageBytes), link(s), orDash(strings.Join(s.Wrong(), ",")), orDash(s.Model))
	}
	return tw.Flush()
}

// printBoard writes all that one board says.
func printBoard(w io.Writer, h *api.NodeHardware) error {
	tw := tabwriter.NewWriter(w, 0, 8, 3, ' ', 0)
	s := &h.Status
	line := func(name, value string) {
		if value != "-" && value != "" {
			fmt.Fprintf(tw, "%s\t%s\n", name, value)
		}
	}
	line("Node", h.Name)
	line("Board", s.Model)
	line("Architecture", s.Architecture)
	if s.PageSizeBytes > 0 {
		line("Pages", fmt.Sprintf("%d KiB", s.PageSizeBytes/1024))
	}
	if s.SoCTemperatureMilliC != nil && s.SoCTemperatureSoftMilliC != nil && s.SoCTemperatureRiseMilliC != nil {
		line("SoC", fmt.Sprintf("%s, slows down at %s, %+.1f °C a minute", degrees(s.SoCTemperatureMilliC), degrees(s.SoCTemperatureSoftMilliC), float64(*s.SoCTemperatureRiseMilliC)/1000))
	}
	line("Supply", supply(s))
	line("Memory", sizeOf(s.MemoryAvailableBytes, s.MemoryBytes))
	line("Storage", sizeOf(s.StorageAvailableBytes, s.StorageBytes))
	if s.StorageUsedLifePercent != nil {
		line("Storage's life", fmt.Sprintf("at most %d %% used", *s.StorageUsedLifePercent))
	}
	if s.StorageErrors != nil && *s.StorageErrors > 0 {
		line("Storage's errors", fmt.Sprint(*s.StorageErrors))
	}
	line("Link", link(s))
	line("Reported", s.ObservedAt.Time.Format("2006-01-02 15:04:05 MST")+" by the node's clock")
	for _, c := range s.Conditions {
		if c.Status == metav1.ConditionTrue {
			line(c.Type, c.Message)
		}
	}
	return tw.Flush()
}

func orDash(text string) string {
	if text == "" {
		return "-"
	}
	return text
}

func degrees(milli *int64) string {
	if milli == nil {
		return "-"
	}
	return fmt.Sprintf("%.1f °C", float64(*milli)/1000)
}

// supply is what feeds the board, and whether it holds.
func supply(s *api.NodeHardwareStatus) string {
	var all []string
	if s.SupplyMicroV != nil {
		all = append(all, fmt.Sprintf("%.2f V", float64(*s.SupplyMicroV)/1e6))
	}
	switch {
	case s.UnderVoltage != nil && *s.UnderVoltage:
		all = append(all, "too low")
	case s.UnderVoltageEvents != nil && *s.UnderVoltageEvents > 0:
		all = append(all, fmt.Sprintf("too low %d times in an hour", *s.UnderVoltageEvents))
	case s.UnderVoltageSinceBoot != nil && *s.UnderVoltageSinceBoot:
		all = append(all, "was too low since the boot")
	case s.UnderVoltage != nil:
		all = append(all, "good")
	}
	if s.OnBattery != nil {
		from := "mains"
		if *s.OnBattery {
			from = "battery"
		}
		if s.BatteryPercent != nil {
			from += fmt.Sprintf(" (%d %%)", *s.BatteryPercent)
		}
		all = append(all, from)
	}
	return orDash(strings.Join(all, ", "))
}

func percentOf(part, all *int64) string {
	if part == nil || all == nil || *all == 0 {
		return "-"
	}
	return fmt.Sprintf("%d %%", 100**part / *all)
}

func sizeOf(part, all *int64) string {
	if part == nil || all == nil {
		return "-"
	}
	return fmt.Sprintf("%.1f of %.1f GiB free", float64(*part)/(1<<30), float64(*all)/(1<<30))
}

func link(s *api.NodeHardwareStatus) string {
	switch {
	case s.LinkSpeedMbit != nil:
		return fmt.Sprintf("%d Mbit/s", *s.LinkSpeedMbit)
	case s.WirelessSignalDBm != nil:
		return fmt.Sprintf("wireless, %d dBm", *s.WirelessSignalDBm)
	}
	return "-"
}
