package ltx

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// VerifyFile reads a whole file and checks everything that can be checked by
// the file alone, which is what Decoder.Close does.
func VerifyFile(r io.Reader) (Header, Trailer, error) {
	d, err := NewDecoder(r)
	if err != nil {
		return Header{}, Trailer{}, err
	}
	t, err := d.Close()
	if err != nil {
		return Header{}, Trailer{}, err
	}
	return d.header, t, nil
}

// Close reads what is left of the file and checks it: the index names exactly
// the frames, the file's checksum is right, the pages of a snapshot sum up to
// the post-apply checksum, and nothing follows. It does not close the reader.
func (d *Decoder) Close() (Trailer, error) {
	if d.closed || d.err != nil {
		return d.trailer, d.err
	}
	for !d.ended {
		if _, err := d.next(); err != nil && !errors.Is(err, io.EOF) {
			return Trailer{}, err
		}
	}
	t, err := d.finish()
	if err != nil {
		d.err = fmt.Errorf("close ltx file: %w", err)
		return Trailer{}, d.err
	}
	d.trailer, d.closed = t, true
	return t, nil
}

// finish reads all that follows the pages.
func (d *Decoder) finish() (Trailer, error) {
	if err := d.checkIndex(); err != nil {
		return Trailer{}, err
	}
	b, err := d.peek(TrailerSize)
	if err != nil {
		return Trailer{}, err
	}
	t, err := ReadTrailer(b)
	if err != nil {
		return Trailer{}, err
	}
	d.sum.write(b[:8])
	if err := d.discard(TrailerSize); err != nil {
		return Trailer{}, err
	}
	if sum := d.sum.sum(); sum != t.FileChecksum {
		return Trailer{}, fmt.Errorf("%w: file sums up to %s, trailer says %s", ErrChecksum, sum, t.FileChecksum)
	}
	if err := checkPostApply(d.header, t.PostApplyChecksum); err != nil {
		return Trailer{}, wrapCorrupt(err)
	}
	if err := d.order.checkSum(t.PostApplyChecksum); err != nil {
		return Trailer{}, err
	}
	if _, err := d.r.ReadByte(); err == nil {
		return Trailer{}, corrupt("bytes follow the trailer")
	} else if !errors.Is(err, io.EOF) {
		return Trailer{}, err
	}
	return t, nil
}

// checkIndex compares the index with the frames read.
func (d *Decoder) checkIndex() error {
	scan, end := newIndexScan(), d.offset-PageHeaderSize
	start := d.offset
	for {
		b, err := d.r.Peek(maxIndexRecord)
		if err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		e, n, err := scan.next(b)
		if err != nil {
			return err
		}
		d.sum.write(b[:n])
		if err := d.discard(n); err != nil {
			return err
		}
		if e.Pgno == 0 {
			break
		}
	}
	if scan.offset != end || scan.frames != d.frames {
		return corrupt("index does not name the pages of the file")
	}
	size := d.offset - start
	b, err := d.peek(8)
	if err != nil {
		return err
	}
	if got := binary.BigEndian.Uint64(b); got != uint64(size) {
		return corrupt("index says it has %d bytes, has %d", got, size)
	}
	d.sum.write(b)
	return d.discard(8)
}
