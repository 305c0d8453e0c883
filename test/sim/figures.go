package main

import (
	"errors"
	"fmt"
	"strings"
)

// figures are all that the page shows.
type figures struct {
	compared []*trial // of every scenario, under every policy in turn
	weighed  []*trial // of the mixed fleet, under every weight in turn
}

// weights are those of Thermal that are tried.
var weights = []int64{1, 2, 3, 4}

// campaign runs all of it.
func campaign() figures {
	var ways []policy
	for _, w := range weights {
		ways = append(ways, weighing(w))
	}
	f := figures{trials(scenarios(), policies()), trials(conditions(mixed()), ways)}
	perform(append(append([]*trial(nil), f.compared...), f.weighed...))
	return f
}

// row is a scenario with the trials of it.
type row []*trial

func rows(all []*trial, wide int) (out []row) {
	for i := 0; i < len(all); i += wide {
		out = append(out, all[i:i+wide])
	}
	return out
}

// cell is a metric of all trials of a row.
func (r row) cell(of metric, format string) string {
	var parts []string
	for _, t := range r {
		parts = append(parts, fmt.Sprintf(format, t.mean(of)))
	}
	return strings.Join(parts, " / ")
}

// markdown is the tables.
func (f figures) markdown() string {
	var b strings.Builder
	b.WriteString("| fleet | ambient, load | throttled node-time % | work lost % | mean wait s | p95 wait s | peak °C | Hot turns an hour |\n|---|---|---|---|---|---|---|---|\n")
	for _, r := range rows(f.compared, len(policies())) {
		s := r[0].scenario
		fmt.Fprintf(&b, "| %s | %.0f °C, %.2f | %s | %s | %s | %s | %s | %s |\n", s.fleet.name, s.ambient, s.load,
			r.cell(throttled, "%.2f"), r.cell(lostWork, "%.2f"), r.cell(wait, "%.1f"), r.cell(waitP95, "%.0f"), r.cell(peak, "%.1f"), r.cell(flips, "%.1f"))
	}
	b.WriteString("\nThe mixed fleet by the weight of the score Thermal (1 / 2 / 3 / 4):\n\n" +
		"| ambient, load | throttled node-time % | work lost % | mean wait s | p95 wait s |\n|---|---|---|---|---|\n")
	for _, r := range rows(f.weighed, len(weights)) {
		s := r[0].scenario
		fmt.Fprintf(&b, "| %.0f °C, %.2f | %s | %s | %s | %s |\n", s.ambient, s.load,
			r.cell(throttled, "%.2f"), r.cell(lostWork, "%.2f"), r.cell(wait, "%.1f"), r.cell(waitP95, "%.0f"))
	}
	return b.String()
}

// Between these lines of the page the figures are.
const (
	figuresBegin = "<!-- made by make sim -->\n"
	figuresEnd   = "<!-- until here -->\n"
)

// splice puts figures into the page, where there were others.
func splice(page, figures string) (string, error) {
	head, rest, begins := strings.Cut(page, figuresBegin)
	_, tail, ends := strings.Cut(rest, figuresEnd)
	if !begins || !ends {
		return "", errors.New("it has no place for figures")
	}
	return head + figuresBegin + figures + figuresEnd + tail, nil
}
