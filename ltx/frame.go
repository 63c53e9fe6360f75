package ltx

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"

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
		if err := unpackOld(lz4.NewReader(nil), b[PageHeaderSize:], f.Page); err != nil {
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

// peeker looks ahead in a stream; the slice is valid until the next call.
type peeker func(n int) ([]byte, error)

// peekBytes looks ahead in a slice.
func peekBytes(b []byte) peeker {
	return func(n int) ([]byte, error) {
		if n > len(b) {
			return nil, corrupt("frame ends early")
		}
		return b[:n], nil
	}
}

// Parts of the header of an LZ4 frame, the form of pages without a size.
const (
	lz4Magic           = 0x184D2204
	lz4HasDict         = 1 << 0
	lz4HasContentSum   = 1 << 2
	lz4HasContentSize  = 1 << 3
	lz4HasBlockSum     = 1 << 4
	lz4Stored          = 1 << 31
	lz4LeastHeaderSize = 7
)

// oldFrameSize returns the size of the LZ4 frame that peek shows.
func oldFrameSize(peek peeker, pageSize uint32) (int, error) {
	b, err := peek(lz4LeastHeaderSize)
	if err != nil {
		return 0, err
	}
	flags := b[4]
	if binary.LittleEndian.Uint32(b) != lz4Magic || flags&lz4HasDict != 0 {
		return 0, corrupt("no LZ4 frame")
	}
	size, blockExtra := lz4LeastHeaderSize, 0
	if flags&lz4HasContentSize != 0 {
		size += 8
	}
	if flags&lz4HasBlockSum != 0 {
		blockExtra = 4
	}
	for {
		b, err := peek(size + 4)
		if err != nil {
			return 0, err
		}
		block := binary.LittleEndian.Uint32(b[size:])
		size += 4
		if block == 0 {
			break
		}
		block &^= lz4Stored
		if block > uint32(maxFrame(pageSize)) || size+int(block) > maxFrame(pageSize) {
			return 0, corrupt("LZ4 frame is larger than a page can be")
		}
		size += int(block) + blockExtra
	}
	if flags&lz4HasContentSum != 0 {
		size += 4
	}
	_, err = peek(size)
	return size, err
}

// unpackOld decompresses an LZ4 frame that must fill page.
func unpackOld(zr *lz4.Reader, frame, page []byte) error {
	zr.Reset(bytes.NewReader(frame))
	if _, err := io.ReadFull(zr, page); err != nil {
		return corrupt("decompress LZ4 frame: %w", err)
	}
	var more [1]byte
	if n, err := zr.Read(more[:]); n != 0 || !errors.Is(err, io.EOF) {
		return corrupt("LZ4 frame does not end with the page")
	}
	return nil
}
