package ltx

import (
	"encoding/binary"
	"errors"

	"github.com/pierrec/lz4/v4"
)

// Frame is one page of a file together with its compressed form. The buffers
// belong to whoever returned it.
type Frame struct {
	Pgno uint32
	Data []byte   // the whole frame: page header, size, compressed page
	Page []byte   // the page
	Sum  Checksum // ChecksumPage of it

	raw uint64 // remainder of the page
	old bool   // LZ4 frame without a size
}

// frame makes the frame of a page in dst, which has maxFrame bytes.
func (p *packer) frame(dst []byte, pgno uint32, page []byte, shift pageShift) Frame {
	n := p.pack(dst[frameHeaderSize:], page)
	binary.BigEndian.PutUint32(dst, pgno)
	binary.BigEndian.PutUint16(dst[4:], flagSize)
	binary.BigEndian.PutUint32(dst[PageHeaderSize:], uint32(n))
	raw := crcUpdate(0, page)
	return Frame{Pgno: pgno, Data: dst[:frameHeaderSize+n], Page: page, Sum: shift.page(pgno, raw), raw: raw}
}

// DecodeFrame decodes and checks one frame, which must fill b, as the index
// of a file names it. buf, of pageSize bytes, receives the page. Nothing in a
// frame guards it against damage that decompresses: the sum of all of them
// does. Errors wrap ErrCorrupt.
func DecodeFrame(b []byte, pageSize uint32, buf []byte) (Frame, error) {
	if !ValidPageSize(pageSize) || len(buf) < int(pageSize) {
		return Frame{}, errors.New("decode frame: page size is invalid or the buffer is smaller")
	}
	if len(b) < PageHeaderSize {
		return Frame{}, corrupt("frame of %d bytes", len(b))
	}
	f := Frame{Data: b, Page: buf[:pageSize]}
	if err := f.readHeader(); err != nil {
		return Frame{}, err
	}
	if f.old {
		size, err := oldFrameSize(peekBytes(b[PageHeaderSize:]), pageSize)
		if err != nil {
			return Frame{}, err
		}
		if PageHeaderSize+size != len(b) {
			return Frame{}, corrupt("frame of page %d has %d bytes, want %d", f.Pgno, PageHeaderSize+size, len(b))
		}
		if err := unpackOld(b[PageHeaderSize:], f.Page); err != nil {
			return Frame{}, err
		}
	} else if err := f.unpack(); err != nil {
		return Frame{}, err
	}
	f.raw = crcUpdate(0, f.Page)
	f.Sum = newPageShift(pageSize).page(f.Pgno, f.raw)
	return f, nil
}

// readHeader reads the page header in Data.
func (f *Frame) readHeader() error {
	f.Pgno = binary.BigEndian.Uint32(f.Data)
	flags := binary.BigEndian.Uint16(f.Data[4:])
	f.old = flags&flagSize == 0
	if f.Pgno == 0 || flags&^flagSize != 0 {
		return corrupt("page header %x", f.Data[:PageHeaderSize])
	}
	return nil
}

// unpack decompresses Data, a frame with a size, to Page.
func (f *Frame) unpack() error {
	if len(f.Data) < frameHeaderSize {
		return corrupt("frame of %d bytes", len(f.Data))
	}
	size := binary.BigEndian.Uint32(f.Data[PageHeaderSize:])
	if uint64(size) != uint64(len(f.Data)-frameHeaderSize) {
		return corrupt("frame of page %d says %d bytes, has %d", f.Pgno, size, len(f.Data)-frameHeaderSize)
	}
	n, err := lz4.UncompressBlock(f.Data[frameHeaderSize:], f.Page)
	if err != nil {
		return corrupt("decompress page %d: %w", f.Pgno, err)
	}
	if n != len(f.Page) {
		return corrupt("page %d has %d bytes, want %d", f.Pgno, n, len(f.Page))
	}
	return nil
}
