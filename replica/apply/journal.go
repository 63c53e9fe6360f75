package apply

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"syscall"
)

const (
	journalMagic  = "\xd9\xd5\x05\xf9\x20\xa1\x63\xd7"
	journalSector = 512 // the header takes as much
	journalBuffer = 256 << 10
)

// journal is a rollback journal in SQLite's format (file format, section 3). It
// becomes hot, that is, SQLite plays it back when its writer is gone, once it
// is armed; it is removed to commit.
type journal struct {
	f        *os.File
	out      *bufio.Writer
	pageSize uint32
	pages    uint32 // size of the database before
	nonce    uint32
	records  uint32
}

// newJournal makes the journal of a database. Nothing else may be writing.
func newJournal(database *os.File, before side) (*journal, error) {
	path := database.Name() + "-journal"
	info, err := database.Stat()
	if err != nil {
		return nil, err
	}
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_TRUNC, info.Mode().Perm())
	if err != nil {
		return nil, fmt.Errorf("make journal: %w", err)
	}
	j := &journal{
		f: f, out: bufio.NewWriterSize(f, journalBuffer), nonce: rand.Uint32(),
		pageSize: before.pageSize, pages: before.pages,
	}
	if j.pageSize == 0 {
		j.pageSize = emptyPageSize
	}
	// Who has to play it back may be another user than we are.
	if err = errors.Join(f.Chmod(info.Mode().Perm()), own(f, info)); err == nil {
		_, err = j.out.Write(make([]byte, journalSector))
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("make journal: %w", err), j.discard())
	}
	return j, nil
}

// own gives f the owner of another file, if we are root.
func own(f *os.File, of fs.FileInfo) error {
	stat, ok := of.Sys().(*syscall.Stat_t)
	if !ok || os.Geteuid() != 0 {
		return nil
	}
	return f.Chown(int(stat.Uid), int(stat.Gid))
}

// add appends what a page holds before the change.
func (j *journal) add(pgno uint32, page []byte) error {
	var b [4]byte
	binary.BigEndian.PutUint32(b[:], pgno)
	_, err := j.out.Write(b[:])
	if err == nil {
		_, err = j.out.Write(page)
	}
	if err == nil {
		sum := j.nonce
		for i := len(page) - 200; i > 0; i -= 200 {
			sum += uint32(page[i])
		}
		binary.BigEndian.PutUint32(b[:], sum)
		_, err = j.out.Write(b[:])
	}
	if err != nil {
		return fmt.Errorf("write journal: %w", err)
	}
	j.records++
	return nil
}

// arm makes the journal durable and then hot, in this order: a header before
// records that a power cut lost would bring back anything.
func (j *journal) arm() error {
	err := j.out.Flush()
	if err == nil {
		err = j.f.Sync()
	}
	if err != nil {
		return fmt.Errorf("write journal: %w", err)
	}
	b := make([]byte, 0, 28)
	b = append(b, journalMagic...)
	for _, v := range []uint32{j.records, j.nonce, j.pages, journalSector, j.pageSize} {
		b = binary.BigEndian.AppendUint32(b, v)
	}
	if _, err = j.f.WriteAt(b, 0); err == nil {
		err = j.f.Sync()
	}
	if err == nil {
		err = syncDir(j.f.Name())
	}
	if err != nil {
		return fmt.Errorf("write journal: %w", err)
	}
	return nil
}

// remove commits, or drops a journal that nothing was done behind.
func (j *journal) remove() error {
	if err := os.Remove(j.f.Name()); err != nil {
		return fmt.Errorf("remove journal: %w", err)
	}
	return syncDir(j.f.Name())
}

func (j *journal) close() error { return j.f.Close() }

func (j *journal) discard() error { return errors.Join(os.Remove(j.f.Name()), j.f.Close()) }
