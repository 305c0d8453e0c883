package main

import (
	"fmt"
	"math"
	"strings"
)

// The plot's measures, in its own units.
const (
	plotWidth  = 720
	plotHeight = 360
	left       = 60
	right      = 20
	top        = 60
	bottom     = 50
	barWidth   = 36
)

// A colour for each policy, that are told apart also without colours, by their lightness.
var colours = []string{"#9a9a9a", "#e6a817", "#1b6a8c"}

// plot is an SVG of the mixed fleet's throttled node-time: bars are means over seeds,
// lines go from the least to the most.
func (f figures) plot() string {
	var shown []row
	most := 0.
	for _, r := range rows(f.compared, len(policies())) {
		if r[0].scenario.fleet.name != mixed().name {
			continue
		}
		shown = append(shown, r)
		for _, t := range r {
			_, high := t.span(throttled)
			most = max(most, high)
		}
	}
	step := 5.
	most = math.Ceil(most/step) * step
	y := func(v float64) float64 { return plotHeight - bottom - v/most*(plotHeight-top-bottom) }

	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" font-family="sans-serif" font-size="13">`+"\n", plotWidth, plotHeight)
	fmt.Fprintf(&b, `<rect width="%d" height="%d" fill="#fff"/>`+"\n", plotWidth, plotHeight)
	text(&b, left, 22, "start", "Simulated: throttled node-time in %, 12 mixed boards")
	for v := 0.; v <= most; v += step {
		fmt.Fprintf(&b, `<path d="M%d %.1fH%d" stroke="#ddd"/>`+"\n", left, y(v), plotWidth-right)
		text(&b, left-8, y(v)+4, "end", fmt.Sprintf("%.0f", v))
	}
	for i, p := range policies() {
		x := float64(left + i*110)
		fmt.Fprintf(&b, `<rect x="%.1f" y="34" width="12" height="12" fill="%s"/>`+"\n", x, colours[i])
		text(&b, x+18, 45, "start", p.name)
	}
	group := float64(plotWidth-left-right) / float64(len(shown))
	for i, r := range shown {
		middle := left + (float64(i)+0.5)*group
		for j, t := range r {
			x := middle + (float64(j)-float64(len(r))/2)*barWidth
			bar(&b, x, y, t, colours[j])
		}
		text(&b, middle, plotHeight-bottom+20, "middle", fmt.Sprintf("%.0f °C, load %.2f", r[0].scenario.ambient, r[0].scenario.load))
	}
	b.WriteString("</svg>\n")
	return b.String()
}

func bar(b *strings.Builder, x float64, y func(float64) float64, t *trial, colour string) {
	mean := t.mean(throttled)
	least, most := t.span(throttled)
	fmt.Fprintf(b, `<rect x="%.1f" y="%.1f" width="%d" height="%.1f" fill="%s"/>`+"\n", x+2, y(mean), barWidth-4, y(0)-y(mean), colour)
	fmt.Fprintf(b, `<path d="M%.1f %.1fV%.1f" stroke="#000"/>`+"\n", x+barWidth/2, y(least), y(most))
	text(b, x+barWidth/2, y(most)-5, "middle", fmt.Sprintf("%.1f", mean))
}

func text(b *strings.Builder, x, y float64, anchor, words string) {
	fmt.Fprintf(b, `<text x="%.1f" y="%.1f" text-anchor="%s">%s</text>`+"\n", x, y, anchor, words)
}
