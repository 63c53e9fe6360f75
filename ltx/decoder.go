package ltx

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"iter"
)

// Every error about the content of a file wraps one of these; the reader's own
// errors do not.
var (
	ErrCorrupt  = errors.New("ltx file is corrupt")
	ErrChecksum = errors.New("ltx checksum mismatch")
)

// corrupt returns an error that wraps ErrCorrupt.
func corrupt(format string, args ...any) error {
	return fmt.Errorf("%w: %w", ErrCorrupt, fmt.Errorf(format, args...))
}

// Page is one page of a file. Data is valid until the next page.
type Page struct {
	Pgno uint32
	Data []byte
	Sum  Checksum // ChecksumPage of it
}

// Decoder reads one file from start to end. It is for one goroutine. Nothing
// it returns is proven before Close has returned without error.
type Decoder struct {
	r       *bufio.Reader
	header  Header
	trailer Trailer
	sum     fileSum
	order   pageOrder
	frames  frameHash
	offset  int64 // bytes read
	page    []byte
	ended   bool // the end of the pages was read
	closed  bool
	err     error // nothing can follow it
}

// NewDecoder reads the header of a file.
func NewDecoder(r io.Reader) (*Decoder, error) {
	b := make([]byte, HeaderSize)
	if n, err := io.ReadFull(r, b); err != nil {
		if n > 0 && errors.Is(err, io.ErrUnexpectedEOF) {
			err = io.EOF // what ReadFull makes of the end of the input
		}
		return nil, fmt.Errorf("read ltx header: %w", early(err))
	}
	h, err := ReadHeader(b)
	if err != nil {
		return nil, err
	}
	d := &Decoder{
		r:      bufio.NewReaderSize(r, bufferSize(h.PageSize)),
		header: h,
		sum:    newFileSum(h.PageSize),
		order:  newPageOrder(h),
		offset: HeaderSize,
		page:   make([]byte, h.PageSize),
	}
	d.sum.write(b)
	return d, nil
}

// Header returns the header of the file.
func (d *Decoder) Header() Header { return d.header }

// N returns the number of bytes read; after Close it is the file's size.
func (d *Decoder) N() int64 { return d.offset }

// Pages yields the pages that were not yet read. An error ends it.
func (d *Decoder) Pages() iter.Seq2[Page, error] {
	return func(yield func(Page, error) bool) {
		for {
			f, err := d.next()
			if errors.Is(err, io.EOF) || !yield(Page{Pgno: f.Pgno, Data: f.Page, Sum: f.Sum}, err) || err != nil {
				return
			}
		}
	}
}

// Frames is Pages for a caller that copies the compressed form.
func (d *Decoder) Frames() iter.Seq2[Frame, error] {
	return func(yield func(Frame, error) bool) {
		for {
			f, err := d.next()
			if errors.Is(err, io.EOF) || !yield(f, err) || err != nil {
				return
			}
		}
	}
}

// next returns the next page, or io.EOF itself at the end of the pages.
func (d *Decoder) next() (Frame, error) {
	if d.err != nil {
		return Frame{}, d.err
	}
	if d.ended {
		return Frame{}, io.EOF
	}
	f, err := d.read()
	if err != nil {
		d.err = fmt.Errorf("read ltx page after %d: %w", d.order.prev, err)
		return Frame{}, d.err
	}
	if d.ended {
		return Frame{}, io.EOF
	}
	return f, nil
}

// read reads one frame, or the end of the pages.
func (d *Decoder) read() (Frame, error) {
	b, err := d.peek(frameHeaderSize)
	if err != nil {
		return Frame{}, err
	}
	if [PageHeaderSize]byte(b) == [PageHeaderSize]byte{} {
		d.ended = true
		d.sum.write(b[:PageHeaderSize])
		if err := d.discard(PageHeaderSize); err != nil {
			return Frame{}, err
		}
		return Frame{}, wrapCorrupt(d.order.complete())
	}
	f := Frame{Data: b, Page: d.page}
	if err := f.readHeader(); err != nil {
		return Frame{}, err
	}
	if err := d.order.check(f.Pgno); err != nil {
		return Frame{}, wrapCorrupt(err)
	}
	if err := d.unpack(&f); err != nil {
		return Frame{}, err
	}
	f.raw = crcUpdate(0, f.Page)
	f.Sum = d.sum.shift.page(f.Pgno, f.raw)
	d.sum.page(f.raw)
	d.order.add(f.Pgno, f.Sum)
	d.frames = d.frames.add(f.Pgno, len(f.Data))
	return f, d.discard(len(f.Data))
}

// unpack sets Data of f to the whole frame and Page to what it holds, and adds
// the frame's header to the checksum.
func (d *Decoder) unpack(f *Frame) error {
	if f.old {
		return d.unpackOld(f)
	}
	size := binary.BigEndian.Uint32(f.Data[PageHeaderSize:])
	if size > uint32(maxFrame(d.header.PageSize)-frameHeaderSize) {
		return corrupt("page %d says %d compressed bytes", f.Pgno, size)
	}
	b, err := d.peek(frameHeaderSize + int(size))
	if err != nil {
		return err
	}
	f.Data = b
	d.sum.frameHeader(b)
	return f.unpack()
}

func (d *Decoder) unpackOld(f *Frame) error {
	peek := func(n int) ([]byte, error) {
		b, err := d.peek(PageHeaderSize + n)
		if err != nil {
			return nil, err
		}
		return b[PageHeaderSize:], nil
	}
	size, err := oldFrameSize(peek, d.header.PageSize)
	if err != nil {
		return err
	}
	if f.Data, err = d.peek(PageHeaderSize + size); err != nil {
		return err
	}
	d.sum.write(f.Data[:PageHeaderSize])
	return unpackOld(f.Data[PageHeaderSize:], f.Page)
}

// peek shows the next n bytes.
func (d *Decoder) peek(n int) ([]byte, error) {
	b, err := d.r.Peek(n)
	if err != nil {
		return nil, early(err)
	}
	return b, nil
}

// discard skips n bytes that peek has shown.
func (d *Decoder) discard(n int) error {
	d.offset += int64(n)
	_, err := d.r.Discard(n)
	return err
}

// early turns the end of the input into ErrCorrupt. A reader's own
// io.ErrUnexpectedEOF is a connection that broke off, so it passes through.
func early(err error) error {
	if errors.Is(err, io.EOF) {
		return corrupt("file ends early")
	}
	return err
}

// wrapCorrupt makes err wrap ErrCorrupt.
func wrapCorrupt(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%w: %w", ErrCorrupt, err)
}
