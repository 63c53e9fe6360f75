package replica

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/tidemark-io/tidemark/storage"
)

// ErrFenced is wrapped when another process wrote the file that this one was
// about to write: whoever sees it must stop writing.
var ErrFenced = errors.New("another process writes this replica")

const compareBuffer = 64 << 10

// Upload stores a captured file under its key unless the key exists. If it
// does, the stored content decides: equal content is a former attempt of ours
// whose answer was lost, other content is ErrFenced. After any other error it
// is open whether the file was stored; uploading it again is safe.
func (r *Replica) Upload(ctx context.Context, p Pending) error {
	key := r.Key(p.Info)
	f, err := os.Open(p.Path)
	if err != nil {
		return fmt.Errorf("upload %s: %w", key, err)
	}
	defer f.Close()
	_, err = r.bucket.Put(ctx, key, f, storage.Condition{Absent: true})
	if errors.Is(err, storage.ErrPrecondition) {
		return r.compare(ctx, key, f)
	}
	if err != nil {
		return fmt.Errorf("upload %s: %w", key, err)
	}
	return nil
}

// compare reads back what is stored under key.
func (r *Replica) compare(ctx context.Context, key string, local *os.File) error {
	body, object, err := r.bucket.Get(ctx, key, storage.Range{})
	if err != nil {
		return fmt.Errorf("read back %s: %w", key, err)
	}
	defer body.Close()
	size, err := local.Seek(0, io.SeekEnd)
	if err == nil {
		_, err = local.Seek(0, io.SeekStart)
	}
	if err != nil {
		return fmt.Errorf("read back %s: %w", key, err)
	}
	equal := size == object.Size
	if equal {
		if equal, err = equalContent(body, local); err != nil {
			return fmt.Errorf("read back %s: %w", key, err)
		}
	}
	if !equal {
		return fmt.Errorf("%w: %s in %s holds other content than the file captured here; stop one of the two processes",
			ErrFenced, key, r)
	}
	return nil
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
