package replica

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/tidemark-io/tidemark/ltx"
	"github.com/tidemark-io/tidemark/storage"
)

// ErrFenced is wrapped when another process wrote the file that this one was
// about to write: whoever sees it must stop writing.
var ErrFenced = errors.New("another process writes this replica")

const compareBuffer = 64 << 10

// Upload stores a captured file under its key unless the key exists, and
// returns it as it is on the bucket. If the key exists, the stored content
// decides: equal content is a former attempt of ours whose answer was lost,
// other content is ErrFenced. A file that changes meanwhile is an error. After
// any other error it is open whether the file was stored; uploading it again is
// safe.
func (r *Replica) Upload(ctx context.Context, p Pending) (ltx.FileInfo, error) {
	f, err := openSteady(p.Path)
	if err != nil {
		return ltx.FileInfo{}, fmt.Errorf("upload %s: %w", r.Key(p.Info), err)
	}
	defer f.Close()
	if p.Info.IsSnapshot() && p.Info.Max > 1 {
		if err := r.claim(ctx, p.Info.Max, f); err != nil {
			return ltx.FileInfo{}, err
		}
	}
	stored, err := r.create(ctx, r.Key(p.Info), f)
	if err != nil {
		return ltx.FileInfo{}, err
	}
	size, err := f.Seek(0, io.SeekEnd)
	if err != nil {
		return ltx.FileInfo{}, fmt.Errorf("upload %s: %w", r.Key(p.Info), err)
	}
	info := p.Info
	info.Size, info.ModTime = size, stored.ModTime
	return info, nil
}

// claim takes the level-0 name of the TXID at which a base ends, with a file
// without pages. A base has a name of its own, so that alone would not collide
// with the file that another writer puts at that TXID.
func (r *Replica) claim(ctx context.Context, txid ltx.TXID, base io.ReaderAt) error {
	var b [ltx.HeaderSize]byte
	if _, err := base.ReadAt(b[:], 0); err != nil {
		return fmt.Errorf("claim transaction %s: %w", txid, err)
	}
	h, err := ltx.ReadHeader(b[:])
	if err != nil {
		return fmt.Errorf("claim transaction %s: %w", txid, err)
	}
	var file bytes.Buffer
	enc, err := ltx.NewEncoder(&file, ltx.Header{
		Flags: ltx.FlagNoChecksum, PageSize: h.PageSize, Commit: h.Commit,
		MinTXID: txid, MaxTXID: txid, Timestamp: h.Timestamp,
	})
	if err == nil {
		_, err = enc.Close(0)
	}
	if err != nil {
		return fmt.Errorf("claim transaction %s: %w", txid, err)
	}
	_, err = r.create(ctx, r.Key(ltx.FileInfo{Min: txid, Max: txid}), bytes.NewReader(file.Bytes()))
	return err
}

// create stores body under a key that does not exist.
func (r *Replica) create(ctx context.Context, key string, body io.ReadSeeker) (storage.Object, error) {
	stored, err := r.bucket.Put(ctx, key, body, storage.Condition{Absent: true})
	if errors.Is(err, storage.ErrPrecondition) {
		return r.compare(ctx, key, body)
	}
	if err != nil {
		return storage.Object{}, fmt.Errorf("upload %s: %w", key, err)
	}
	return stored, nil
}

// compare reads back what is stored under key.
func (r *Replica) compare(ctx context.Context, key string, ours io.ReadSeeker) (storage.Object, error) {
	body, object, err := r.bucket.Get(ctx, key, storage.Range{})
	if err != nil {
		return storage.Object{}, fmt.Errorf("read back %s: %w", key, err)
	}
	defer body.Close()
	size, err := ours.Seek(0, io.SeekEnd)
	if err == nil {
		_, err = ours.Seek(0, io.SeekStart)
	}
	if err != nil {
		return storage.Object{}, fmt.Errorf("read back %s: %w", key, err)
	}
	equal := size == object.Size
	if equal {
		if equal, err = equalContent(body, ours); err != nil {
			return storage.Object{}, fmt.Errorf("read back %s: %w", key, err)
		}
	}
	if !equal {
		return storage.Object{}, fmt.Errorf("%w: %s in %s holds other content than the file captured here; stop one of the two processes",
			ErrFenced, key, r)
	}
	return object, nil
}

// equalContent compares two streams. One that ends early is an error, not a
// difference: a connection may break, and what follows from a difference is
// final.
func equalContent(remote, local io.Reader) (bool, error) {
	a, b := bufio.NewReaderSize(local, compareBuffer), make([]byte, compareBuffer)
	for {
		want, err := a.Peek(compareBuffer)
		if err != nil && err != io.EOF {
			return false, err
		}
		if len(want) == 0 {
			return true, nil
		}
		got := b[:len(want)]
		if _, err := io.ReadFull(remote, got); err != nil {
			return false, fmt.Errorf("object ends early: %w", err)
		}
		if string(got) != string(want) {
			return false, nil
		}
		if _, err := a.Discard(len(want)); err != nil {
			return false, err
		}
	}
}
