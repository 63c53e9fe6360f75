package main

import (
	"fmt"
	"io"
	"os"
	"time"

	"github.com/dustin/go-humanize"
	"github.com/mattn/go-isatty"
	"github.com/schollz/progressbar/v3"
)

// progressPause is the time between two plain lines.
const progressPause = 5 * time.Second

// progress shows how far something is, its rate and the time that is left: a
// bar on a terminal, a line now and then elsewhere.
type progress struct {
	out   io.Writer
	verb  string
	bar   *progressbar.ProgressBar // nil: lines
	start time.Time
	last  time.Time
}

// newProgress takes what is done, as in "restoring".
func newProgress(out io.Writer, verb string) *progress {
	now := time.Now()
	p := &progress{out: out, verb: verb, start: now, last: now}
	if f, ok := out.(*os.File); ok && isatty.IsTerminal(f.Fd()) {
		p.bar = progressbar.NewOptions64(0,
			progressbar.OptionSetWriter(out), progressbar.OptionShowBytes(true), progressbar.OptionShowTotalBytes(true),
			progressbar.OptionSetDescription(verb), progressbar.OptionThrottle(100*time.Millisecond),
			progressbar.OptionSetPredictTime(true), progressbar.OptionClearOnFinish())
	}
	return p
}

// update takes the bytes done and those to do in all.
func (p *progress) update(done, total int64) {
	if p.bar != nil {
		p.bar.ChangeMax64(total)
		_ = p.bar.Set64(done) // a bar that cannot be drawn stops nothing
		return
	}
	if now := time.Now(); now.Sub(p.last) >= progressPause {
		p.last = now
		_, _ = fmt.Fprintln(p.out, progressLine(p.verb, done, total, now.Sub(p.start)))
	}
}

// progressLine says how far it is after some time.
func progressLine(verb string, done, total int64, took time.Duration) string {
	line := fmt.Sprintf("%s: %s of %s", verb, humanize.IBytes(uint64(done)), humanize.IBytes(uint64(total)))
	if done <= 0 || took <= 0 {
		return line
	}
	rate := float64(done) / took.Seconds()
	left := time.Duration(float64(total-done) / rate * float64(time.Second))
	return fmt.Sprintf("%s, %s/s, %s left", line, humanize.IBytes(uint64(rate)), left.Round(time.Second))
}

func (p *progress) end() {
	if p.bar != nil {
		_ = p.bar.Finish()
	}
}
