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

// progress shows how far a restore is: a bar on a terminal, a line now and
// then elsewhere.
type progress struct {
	out  io.Writer
	bar  *progressbar.ProgressBar // nil: lines
	last time.Time
}

func newProgress(out io.Writer) *progress {
	p := &progress{out: out, last: time.Now()}
	if f, ok := out.(*os.File); ok && isatty.IsTerminal(f.Fd()) {
		p.bar = progressbar.NewOptions64(0,
			progressbar.OptionSetWriter(out), progressbar.OptionShowBytes(true),
			progressbar.OptionSetDescription("restoring"), progressbar.OptionThrottle(100*time.Millisecond),
			progressbar.OptionClearOnFinish())
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
		_, _ = fmt.Fprintf(p.out, "restored %s of %s\n", humanize.IBytes(uint64(done)), humanize.IBytes(uint64(total)))
	}
}

func (p *progress) end() {
	if p.bar != nil {
		_ = p.bar.Finish()
	}
}
