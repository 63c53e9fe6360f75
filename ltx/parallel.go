package ltx

import (
	"fmt"
	"sync"
)

// parallelBatch is the size of the pages that a goroutine compresses in one go.
const parallelBatch = 256 << 10

// ParallelEncoder writes pages to an Encoder and has other goroutines compress
// them: the file is the same, byte for byte. It is for one goroutine, and the
// Encoder is its own until Wait returns. What it holds in memory is some
// batches of pages, and less where there are fewer pages.
type ParallelEncoder struct {
	enc     *Encoder
	written func(pgno uint32, sum Checksum) error
	filling *batch
	free    chan *batch // nil: one that was not made yet
	todo    chan *batch // to be compressed, by whoever is first
	order   chan *batch // the same, in the order of the file
	failed  chan struct{}
	err     error // valid once failed is closed
	running sync.WaitGroup
}

// batch is some pages on their way.
type batch struct {
	pgnos  []uint32
	pages  []byte
	data   []byte // has room for the frames
	frames []Frame
	packed chan struct{} // capacity 1
}

func newBatch(h Header) *batch {
	n := int(min(parallelBatch/h.PageSize, max(h.Commit, 1)))
	return &batch{
		pgnos: make([]uint32, 0, n), pages: make([]byte, 0, n*int(h.PageSize)),
		data: make([]byte, n*maxFrame(h.PageSize)), frames: make([]Frame, 0, n), packed: make(chan struct{}, 1),
	}
}

// NewParallelEncoder starts as many goroutines as workers says, and one that
// writes. They end with Wait, which has to be called. The function is called
// for each page that was written, in order and by one goroutine; an error of
// it ends the writing.
func NewParallelEncoder(enc *Encoder, workers int, written func(pgno uint32, sum Checksum) error) *ParallelEncoder {
	most := workers + 2 // one is being filled, one written
	p := &ParallelEncoder{
		enc: enc, written: written,
		free: make(chan *batch, most), todo: make(chan *batch, most), order: make(chan *batch, most),
		failed: make(chan struct{}),
	}
	for range most {
		p.free <- nil
	}
	for range workers {
		p.running.Go(p.compress)
	}
	p.running.Go(p.write)
	return p
}

// WritePage takes over a copy of a page. One of another size is refused; any
// other error may be that of an earlier page, and no page can follow it.
func (p *ParallelEncoder) WritePage(pgno uint32, data []byte) error {
	if len(data) != int(p.enc.header.PageSize) {
		return fmt.Errorf("page %d has %d bytes, want %d", pgno, len(data), p.enc.header.PageSize)
	}
	if p.filling == nil {
		if err := p.begin(); err != nil {
			return err
		}
	}
	b := p.filling
	b.pgnos, b.pages = append(b.pgnos, pgno), append(b.pages, data...)
	if len(b.pgnos) == cap(b.pgnos) {
		p.send()
	}
	return nil
}

// Wait returns when all pages are written, or with the error that kept one
// from it. The file is still to be closed.
func (p *ParallelEncoder) Wait() error {
	if p.filling != nil {
		p.send()
	}
	close(p.todo)
	close(p.order)
	p.running.Wait()
	return p.err
}

// begin finds a batch to fill. Each comes back, also after an error.
func (p *ParallelEncoder) begin() error {
	b := <-p.free
	if b == nil {
		b = newBatch(p.enc.header)
	}
	select {
	case <-p.failed:
		p.free <- b
		return p.err
	default:
		p.filling = b
		return nil
	}
}

// send never waits: the channels have room for all batches there are.
func (p *ParallelEncoder) send() {
	p.todo <- p.filling
	p.order <- p.filling
	p.filling = nil
}

func (p *ParallelEncoder) compress() {
	var pk packer
	for b := range p.todo {
		b.pack(&pk, p.enc.header.PageSize)
		b.packed <- struct{}{}
	}
}

// pack makes the frames of b's pages.
func (b *batch) pack(p *packer, pageSize uint32) {
	size, most := int(pageSize), maxFrame(pageSize)
	shift, data := newPageShift(pageSize), b.data
	b.frames = b.frames[:0]
	for i, pgno := range b.pgnos {
		f := p.frame(data[:most], pgno, b.pages[i*size:(i+1)*size], shift)
		b.frames, data = append(b.frames, f), data[len(f.Data):]
	}
}

// write writes the batches. After an error it goes on taking them, as nothing
// may wait for it for ever.
func (p *ParallelEncoder) write() {
	for b := range p.order {
		<-b.packed
		if p.err == nil {
			if p.err = p.frames(b.frames); p.err != nil {
				close(p.failed)
			}
		}
		b.pgnos, b.pages = b.pgnos[:0], b.pages[:0]
		p.free <- b
	}
}

func (p *ParallelEncoder) frames(frames []Frame) error {
	for _, f := range frames {
		if err := p.enc.WriteFrame(f); err != nil {
			return err
		}
		if err := p.written(f.Pgno, f.Sum); err != nil {
			return err
		}
	}
	return nil
}
