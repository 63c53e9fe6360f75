//go:build bench

package bench_test

import (
	"fmt"
	"strings"
	"testing"
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

// printTable writes the figures of both tools side by side to the standard
// output, which test logs would put a file name before.
func printTable(t *testing.T, title string, rows []row) {
	t.Helper()
	var text strings.Builder
	w := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	line := func(format string, args ...any) {
		if _, err := fmt.Fprintf(w, format+"\n", args...); err != nil {
			t.Fatal(err)
		}
	}
	line("measure\ttidemark\tlitestream\tgain\taim\t")
	for _, r := range rows {
		gain := "-"
		if r.figures[0] > 0 && r.figures[1] > 0 && r.unit != "%" {
			gain = fmt.Sprintf("%.1f x", r.ratio())
		}
		line("%s\t%s %s\t%s %s\t%s\t%s\t", r.name, show(r.figures[0]), r.unit, show(r.figures[1]), r.unit, gain, r.aim)
	}
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	fmt.Printf("\n%s\n%s", title, text.String())
}

// show writes three digits, or the whole number where there are more.
func show(f float64) string {
	if f >= 100 {
		return fmt.Sprintf("%.0f", f)
	}
	return fmt.Sprintf("%.3g", f)
}
