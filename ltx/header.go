package ltx

import "fmt"

// ReadHeader returns the header in the first HeaderSize bytes of a file.
// Errors wrap ErrCorrupt.
func ReadHeader(b []byte) (Header, error) {
	var h Header
	if err := h.UnmarshalBinary(b); err != nil {
		return Header{}, corrupt("header: %w", err)
	}
	if err := h.Validate(); err != nil {
		return Header{}, corrupt("header: %w", err)
	}
	return h, nil
}

// ReadTrailer returns the trailer in the last TrailerSize bytes of a file, or
// of a piece of it that reaches to its end. Errors wrap ErrCorrupt. Whether the
// trailer fits the header is not known here; Decoder.Close checks that.
func ReadTrailer(b []byte) (Trailer, error) {
	if len(b) < TrailerSize {
		return Trailer{}, corrupt("trailer: %d bytes, want %d", len(b), TrailerSize)
	}
	var t Trailer
	if err := t.UnmarshalBinary(b[len(b)-TrailerSize:]); err != nil {
		return Trailer{}, corrupt("trailer: %w", err)
	}
	if t.FileChecksum&ChecksumFlag == 0 {
		return Trailer{}, corrupt("trailer: file checksum %s lacks the flag bit", t.FileChecksum)
	}
	if t.PostApplyChecksum != 0 && t.PostApplyChecksum&ChecksumFlag == 0 {
		return Trailer{}, corrupt("trailer: post-apply checksum %s lacks the flag bit", t.PostApplyChecksum)
	}
	return t, nil
}

// checkPostApply says whether sum can stand in a file with header h.
func checkPostApply(h Header, sum Checksum) error {
	switch {
	case h.NoChecksum() && sum != 0:
		return fmt.Errorf("post-apply checksum %s in a file without checksums", sum)
	case h.NoChecksum():
		return nil
	case sum&ChecksumFlag == 0:
		return fmt.Errorf("post-apply checksum %s lacks the flag bit", sum)
	case h.Commit == 0 && sum != ChecksumFlag:
		return fmt.Errorf("post-apply checksum %s of an empty database, want %s", sum, ChecksumFlag)
	}
	return nil
}

// pageOrder holds the rule which pages a file may have: ascending, none beyond
// the commit, never the lock page; a snapshot has all of them.
type pageOrder struct {
	commit, lock, prev uint32
	snapshot           bool
	xor                Checksum // of the pages' checksums
}

func newPageOrder(h Header) pageOrder {
	return pageOrder{commit: h.Commit, lock: h.LockPgno(), snapshot: h.IsSnapshot()}
}

// check says whether pgno may come next.
func (o *pageOrder) check(pgno uint32) error {
	switch {
	case pgno == 0:
		return fmt.Errorf("page 0: pages count from 1")
	case pgno > o.commit:
		return fmt.Errorf("page %d is beyond the commit of %d pages", pgno, o.commit)
	case pgno == o.lock:
		return fmt.Errorf("page %d is the lock page", pgno)
	case o.snapshot && pgno != o.next():
		return fmt.Errorf("page %d in a snapshot, want page %d", pgno, o.next())
	case pgno <= o.prev:
		return fmt.Errorf("page %d after page %d", pgno, o.prev)
	}
	return nil
}

// next is the page after the previous one in a snapshot.
func (o *pageOrder) next() uint32 {
	if o.prev+1 == o.lock {
		return o.prev + 2
	}
	return o.prev + 1
}

// add moves on to pgno, which was checked.
func (o *pageOrder) add(pgno uint32, sum Checksum) {
	o.prev = pgno
	o.xor ^= sum
}

// complete says whether the file may end here.
func (o *pageOrder) complete() error {
	if o.snapshot && o.next() <= o.commit {
		return fmt.Errorf("snapshot ends after page %d of %d", o.prev, o.commit)
	}
	return nil
}

// checkSum compares the pages of a snapshot with the checksum of the database.
func (o *pageOrder) checkSum(post Checksum) error {
	if sum := ChecksumFlag | o.xor; o.snapshot && post != 0 && sum != post {
		return fmt.Errorf("%w: pages sum up to %s, post-apply is %s", ErrChecksum, sum, post)
	}
	return nil
}
