package ltx

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/pierrec/lz4/v4"
)

// frameHeaderSize is the size of what precedes the compressed page in a frame:
// the page header and the size of the compressed page.
const frameHeaderSize = PageHeaderSize + 4

// flagSize in a page header says that a size follows it.
const flagSize = 1

// maxFrame is the size that no frame of a page of pageSize bytes exceeds.
func maxFrame(pageSize uint32) int {
	return frameHeaderSize + lz4.CompressBlockBound(int(pageSize))
}

// Encoder writes one file, page by page. It is for one goroutine. What it has
// written is a file only once Close has returned without error; an Encoder
// that is given up needs no Close.
type Encoder struct {
	w       *bufio.Writer
	header  Header
	trailer Trailer
	sum     fileSum
	order   pageOrder
	index   indexBuffer
	packer  packer
	frame   []byte
	n       int64
	err     error // of a write; nothing can follow it
	closed  bool
}

// NewEncoder writes the header and returns an encoder for the pages. It sets
// h.Version; everything else in h must be valid.
func NewEncoder(w io.Writer, h Header) (*Encoder, error) {
	h.Version = Version
	if err := h.Validate(); err != nil {
		return nil, fmt.Errorf("ltx header: %w", err)
	}
	b, err := h.MarshalBinary()
	if err != nil {
		return nil, fmt.Errorf("ltx header: %w", err)
	}
	size := maxFrame(h.PageSize)
	e := &Encoder{
		w:      bufio.NewWriterSize(w, bufferSize(h.PageSize)),
		header: h,
		sum:    newFileSum(h.PageSize),
		order:  newPageOrder(h),
		frame:  make([]byte, size),
	}
	e.sum.write(b)
	if err := e.write(b); err != nil {
		return nil, err
	}
	return e, nil
}

// N returns the number of bytes written; after Close it is the file's size.
func (e *Encoder) N() int64 { return e.n }

// Header returns the header as it was written.
func (e *Encoder) Header() Header { return e.header }

// WritePage compresses and writes one page and returns its checksum, as
// ChecksumPage does. Pages must ascend; a snapshot needs all of them. After a
// page that was refused the encoder goes on as if it had not been offered.
func (e *Encoder) WritePage(pgno uint32, data []byte) (Checksum, error) {
	if err := e.check(pgno, len(data)); err != nil {
		return 0, err
	}
	f := e.packer.frame(e.frame, pgno, data, e.sum.shift)
	return f.Sum, e.append(pgno, f.Data, f.raw, f.Sum)
}

// WriteFrame copies a frame that a Decoder or DecodeFrame returned. One in the
// old form, without a size, is compressed anew.
func (e *Encoder) WriteFrame(f Frame) error {
	if f.old {
		_, err := e.WritePage(f.Pgno, f.Page)
		return err
	}
	if len(f.Data) < frameHeaderSize || f.Sum == 0 {
		return fmt.Errorf("frame of page %d was not decoded", f.Pgno)
	}
	if err := e.check(f.Pgno, len(f.Page)); err != nil {
		return err
	}
	return e.append(f.Pgno, f.Data, f.raw, f.Sum)
}

// check says whether a page may be written now.
func (e *Encoder) check(pgno uint32, size int) error {
	if e.err != nil {
		return e.err
	}
	if e.closed {
		return errors.New("ltx encoder is closed")
	}
	if size != int(e.header.PageSize) {
		return fmt.Errorf("page %d has %d bytes, want %d", pgno, size, e.header.PageSize)
	}
	return e.order.check(pgno)
}

// append writes a frame that was checked.
func (e *Encoder) append(pgno uint32, frame []byte, raw uint64, sum Checksum) error {
	e.index.append(Entry{Pgno: pgno, Offset: e.n, Size: int64(len(frame))})
	e.sum.frameHeader(frame)
	e.sum.page(raw)
	e.order.add(pgno, sum)
	return e.write(frame)
}

// Close writes the index and the trailer. postApply is the checksum of the
// database after the file: 0 with FlagNoChecksum, else with ChecksumFlag set;
// for a snapshot it must be that of the pages written (ErrChecksum). A refused
// checksum leaves the encoder as it was. Close does not close the writer, and
// once it has succeeded it only returns the trailer again.
func (e *Encoder) Close(postApply Checksum) (Trailer, error) {
	if e.closed || e.err != nil {
		return e.trailer, e.err
	}
	if err := e.order.complete(); err != nil {
		return Trailer{}, fmt.Errorf("close ltx file: %w", err)
	}
	if err := checkPostApply(e.header, postApply); err != nil {
		return Trailer{}, fmt.Errorf("close ltx file: %w", err)
	}
	if err := e.order.checkSum(postApply); err != nil {
		return Trailer{}, fmt.Errorf("close ltx file: %w", err)
	}
	if err := e.finish(postApply); err != nil {
		return Trailer{}, err
	}
	e.closed = true
	return e.trailer, nil
}

// finish writes all that follows the pages.
func (e *Encoder) finish(postApply Checksum) error {
	tail := make([]byte, PageHeaderSize, PageHeaderSize+1+8+TrailerSize)
	if err := e.writeSummed(tail); err != nil {
		return err
	}
	for _, chunk := range e.index.chunks {
		if err := e.writeSummed(chunk); err != nil {
			return err
		}
	}
	tail = append(tail[:0], 0)
	tail = binary.BigEndian.AppendUint64(tail, uint64(e.index.size+1))
	tail = binary.BigEndian.AppendUint64(tail, uint64(postApply))
	if err := e.writeSummed(tail); err != nil {
		return err
	}
	e.trailer = Trailer{PostApplyChecksum: postApply, FileChecksum: e.sum.sum()}
	tail = binary.BigEndian.AppendUint64(tail[:0], uint64(e.trailer.FileChecksum))
	if err := e.write(tail); err != nil {
		return err
	}
	if err := e.w.Flush(); err != nil {
		e.err = fmt.Errorf("write ltx file: %w", err)
	}
	return e.err
}

func (e *Encoder) writeSummed(b []byte) error {
	e.sum.write(b)
	return e.write(b)
}

func (e *Encoder) write(b []byte) error {
	if _, err := e.w.Write(b); err != nil {
		e.err = fmt.Errorf("write ltx file: %w", err)
		return e.err
	}
	e.n += int64(len(b))
	return nil
}

// bufferSize is what the readers and writers of a file buffer: some frames.
func bufferSize(pageSize uint32) int {
	const least = 16 << 10
	return max(least, 2*int(pageSize))
}
