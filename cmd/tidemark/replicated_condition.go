package main

import (
	"errors"
	"time"

	"github.com/tidemark-io/tidemark/capture"
	"github.com/tidemark-io/tidemark/ltx"
)

// condition says whether a database can be left for others. Those after drained
// mean that it does not get on.
type condition int

const (
	opening condition = iota // not known yet
	busy                     // there is something to capture or to upload
	paced                    // what waits for upload may not go yet
	quiet                    // everything that is captured is on the replica
	drained                  // the same, and nothing is left to capture: it is finished
	away                     // uploads fail
	tipless                  // the replica cannot be asked
	broken                   // the database or its state cannot be used
	lost                     // it is over: the end of a context, or fenced
)

// condition is that of the database now. One that was written to while it is
// open is busy until it has been calm. The error says why it is away, tipless
// or broken.
func (d *replicated) condition(active bool) (condition, error) {
	d.mu.Lock()
	p, err := d.parts, d.err
	d.mu.Unlock()
	if p == nil || err != nil {
		if err == nil {
			return opening, nil
		}
		return broken, err
	}
	captured, uploaded := p.capturer.Status(), p.uploader.Status()
	files, _ := p.capturer.Spool().Size()
	switch {
	case uploaded.LastError != nil:
		return away, uploaded.LastError
	case captured.LastError != "" && d.from.tipFails.Load():
		return tipless, errors.New(captured.LastError)
	case captured.LastError != "":
		return broken, errors.New(captured.LastError)
	case files > 0 && !uploaded.Pending && time.Until(p.source.notBefore()) > 0:
		return paced, nil
	case files > 0 && !uploaded.Pending && captured.State == capture.StateWaiting && !hasContent(d.cfg.Path):
		return paced, nil // nobody knows what they follow
	case files > 0, uploaded.Pending:
		return busy, nil
	case captured.State == capture.StateWaiting && hasContent(d.cfg.Path):
		return opening, nil
	case active && time.Since(captured.CapturedAt) < calm:
		return busy, nil
	}
	return quiet, nil
}

// tried tells whether the database was opened, or an attempt to do so failed.
func (d *replicated) tried() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.parts != nil || d.err != nil
}

// idleFor is how long nothing was captured and all has been on the replica; 0
// if it is not.
func (d *replicated) idleFor() time.Duration {
	if c, _ := d.condition(true); c != quiet {
		return 0
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	return time.Since(d.parts.capturer.Status().CapturedAt)
}

// uploaded is the newest position that is known to be on the replica.
func (d *replicated) uploaded(p *parts) ltx.Pos {
	there := p.uploader.Status().Pos
	if tip := d.remote.lastTip().Pos; tip.TXID > there.TXID {
		there = tip
	}
	return there
}

// stopCapturing lets what is captured be uploaded and captures no more.
func (d *replicated) stopCapturing() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.stopCapture()
}

// noteClosed says that the parts are closed, if so.
func (d *replicated) noteClosed(closed bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.parts.closed = d.parts.closed || closed
}
