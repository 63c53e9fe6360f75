//go:build bench

package bench_test

import (
	"fmt"
	"os"
	"text/tabwriter"
)

// row is one figure of both tools. Where more is better, ratio is ours to
// theirs, else theirs to ours: above 1 is a gain.
type row struct {
	name, unit string
	figures    [2]float64
	more       bool
	aim        string
}

func (r row) ratio() float64 {
	if r.more {
		return r.figures[0] / r.figures[1]
	}
	return r.figures[1] / r.figures[0]
}

// printTable writes the figures of both tools side by side.
func printTable(title string, rows []row) {
	fmt.Printf("\n%s\n", title)
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "measure\ttidemark\tlitestream\tgain\taim\t")
	for _, r := range rows {
		gain := "-"
		if r.figures[0] != 0 && r.figures[1] != 0 {
			gain = fmt.Sprintf("%.1f x", r.ratio())
		}
		fmt.Fprintf(w, "%s\t%s %s\t%s %s\t%s\t%s\t\n", r.name, show(r.figures[0]), r.unit, show(r.figures[1]), r.unit, gain, r.aim)
	}
	w.Flush()
}

// show writes three digits, or the whole number where there are more.
func show(f float64) string {
	if f >= 100 {
		return fmt.Sprintf("%.0f", f)
	}
	return fmt.Sprintf("%.3g", f)
}
