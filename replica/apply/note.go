package apply

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/tidemark-io/tidemark/ltx"
)

// note is the file that says what the copy is before and after the newest
// change. It is durable before the change touches the database, so that after a
// crash page 1 tells on which side the copy is. Two slots are written in turn.
type note struct {
	f   *os.File
	seq uint64
	old side
	new side
}

const (
	noteMagic = "TIDECOPY"
	slotSize  = 4096
	sideSize  = 8 + 8 + 4 + 4 + 2*headerSize
	slotUsed  = 8 + 8 + 2*sideSize
)

// openNote opens the file at path, or makes it. A note that was cut off does
// not count.
func openNote(path string) (*note, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open note of the copy: %w", err)
	}
	n := &note{f: f}
	for slot := range int64(2) {
		b := make([]byte, slotUsed+4)
		if _, err := f.ReadAt(b, slot*slotSize); errors.Is(err, io.EOF) {
			continue
		} else if err != nil {
			return nil, errors.Join(fmt.Errorf("read note of the copy: %w", err), f.Close())
		}
		n.load(b)
	}
	return n, nil
}

// load takes what a slot says if it is whole and newer.
func (n *note) load(b []byte) {
	sum := binary.LittleEndian.Uint32(b[slotUsed:])
	seq := binary.LittleEndian.Uint64(b[8:])
	if string(b[:8]) != noteMagic || crc32.ChecksumIEEE(b[:slotUsed]) != sum || seq <= n.seq {
		return
	}
	n.seq = seq
	n.old.load(b[16:])
	n.new.load(b[16+sideSize:])
}

// IsCopy tells whether the database at path is a copy by what a state directory
// says: page 1 may hold other bytes than the chain, so that only Open knows what
// to make of it. Release ends that.
func IsCopy(path, stateDir string) (is bool, err error) {
	name := filepath.Join(stateDir, noteName)
	if _, err := os.Stat(name); errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	n, err := openNote(name)
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, n.close()) }()
	f, err := os.Open(path)
	if err != nil {
		return false, err
	}
	defer f.Close()
	var h header
	if _, err := f.ReadAt(h[:], 0); err != nil && !errors.Is(err, io.EOF) {
		return false, err
	}
	for _, s := range []side{n.new, n.old} {
		if s.shown == s.chain && s.shown == h && s.pages > 0 {
			return false, nil // not made one yet, or any more
		}
	}
	return n.known(), nil
}

// clear forgets what was noted.
func (n *note) clear() error {
	n.seq, n.old, n.new = 0, side{}, side{}
	return errors.Join(n.f.Truncate(0), n.f.Sync())
}

// known tells whether the file says anything.
func (n *note) known() bool { return n.seq > 0 }

// write makes durable what is about to change.
func (n *note) write(before, after side) error {
	b := make([]byte, slotUsed, slotUsed+4)
	copy(b, noteMagic)
	binary.LittleEndian.PutUint64(b[8:], n.seq+1)
	before.save(b[16:])
	after.save(b[16+sideSize:])
	b = binary.LittleEndian.AppendUint32(b, crc32.ChecksumIEEE(b))
	_, err := n.f.WriteAt(b, int64((n.seq+1)%2)*slotSize)
	if err == nil {
		err = n.f.Sync()
	}
	if err == nil && n.seq == 0 {
		err = syncDir(n.f.Name())
	}
	if err != nil {
		return fmt.Errorf("note the change: %w", err)
	}
	n.seq, n.old, n.new = n.seq+1, before, after
	return nil
}

// remove forgets the note: the file is the chain's.
func (n *note) remove() error {
	err := os.Remove(n.f.Name())
	if errors.Is(err, fs.ErrNotExist) { // somebody else did, with the directory maybe
		return nil
	}
	if err != nil {
		return err
	}
	return syncDir(n.f.Name())
}

func (n *note) close() error { return n.f.Close() }

func (s *side) save(b []byte) {
	binary.LittleEndian.PutUint64(b, uint64(s.pos.TXID))
	binary.LittleEndian.PutUint64(b[8:], uint64(s.pos.PostApplyChecksum))
	binary.LittleEndian.PutUint32(b[16:], s.pageSize)
	binary.LittleEndian.PutUint32(b[20:], s.pages)
	copy(b[24:], s.chain[:])
	copy(b[24+headerSize:], s.shown[:])
}

func (s *side) load(b []byte) {
	s.pos.TXID = ltx.TXID(binary.LittleEndian.Uint64(b))
	s.pos.PostApplyChecksum = ltx.Checksum(binary.LittleEndian.Uint64(b[8:]))
	s.pageSize = binary.LittleEndian.Uint32(b[16:])
	s.pages = binary.LittleEndian.Uint32(b[20:])
	copy(s.chain[:], b[24:])
	copy(s.shown[:], b[24+headerSize:])
}

// syncDir makes the name of a file durable.
func syncDir(name string) error {
	dir, err := os.Open(filepath.Dir(name))
	if err != nil {
		return err
	}
	if err := errors.Join(dir.Sync(), dir.Close()); err != nil {
		return fmt.Errorf("sync directory: %w", err)
	}
	return nil
}
