package quarantine

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"time"

	"github.com/tidemark-io/tidemark/storage"
)

// Upload copies an entry to the keys below prefix and its ID, the manifest
// last: where that is, everything is. Nothing is ever replaced. After an error
// or a crash it goes on where it was; what is done is noted in the entry, and
// costs no further request.
func Upload(ctx context.Context, b storage.Bucket, prefix string, e Entry) error {
	if !e.Uploaded.At.IsZero() {
		return nil
	}
	if e.Problem != "" {
		return fmt.Errorf("upload %s: %w: %s", e.ID, ErrDamaged, e.Problem)
	}
	base := path.Join(prefix, e.ID)
	if err := upload(ctx, b, base, e); err != nil {
		return fmt.Errorf("upload %s to %s/%s: %w", e.ID, b, base, err)
	}
	done := Uploaded{At: time.Now().UTC(), URL: b.String() + "/" + base}
	return writeJSON(e.Path, uploadName, done)
}

func upload(ctx context.Context, b storage.Bucket, base string, e Entry) error {
	manifest, err := os.ReadFile(filepath.Join(e.Path, manifestName))
	if err != nil {
		return err
	}
	last := source{name: manifestName, body: bytes.NewReader(manifest), size: int64(len(manifest)), sum: sumOf(manifest)}
	there := map[string]int64{} // size by key
	for o, err := range b.List(ctx, base+"/", "") {
		if err != nil {
			return err
		}
		there[o.Key] = o.Size
	}
	if size, ok := there[path.Join(base, manifestName)]; ok && size == last.size {
		return last.same(ctx, b, base)
	}
	for _, f := range e.Files {
		_, known := there[path.Join(base, f.Name)]
		if err := uploadFile(ctx, b, base, e, f, known); err != nil {
			return err
		}
	}
	return last.put(ctx, b, base)
}

// uploadFile stores a file of an entry, unless it is there.
func uploadFile(ctx context.Context, b storage.Bucket, base string, e Entry, f File, known bool) error {
	body, err := os.Open(filepath.Join(e.Path, filepath.FromSlash(f.Name)))
	if err != nil {
		return err
	}
	defer body.Close()
	s := source{name: f.Name, body: body, size: f.Size, sum: f.SHA256}
	if known {
		return s.same(ctx, b, base)
	}
	if _, sum, err := hashFile(ctx, body.Name()); err != nil || sum != f.SHA256 {
		return errors.Join(fmt.Errorf("%w: %s is not what was set aside", ErrDamaged, body.Name()), err)
	}
	return s.put(ctx, b, base)
}

// source is what becomes an object.
type source struct {
	name string
	body io.ReadSeeker
	size int64
	sum  string // SHA-256
}

// put creates the object. One that an earlier try has stored is as good.
func (s source) put(ctx context.Context, b storage.Bucket, base string) error {
	_, err := b.Put(ctx, path.Join(base, s.name), s.body, storage.Condition{Absent: true})
	if errors.Is(err, storage.ErrPrecondition) {
		return s.same(ctx, b, base)
	}
	return err
}

// same reads an object back and compares it.
func (s source) same(ctx context.Context, b storage.Bucket, base string) error {
	key := path.Join(base, s.name)
	body, object, err := b.Get(ctx, key, storage.Range{})
	if err != nil {
		return err
	}
	defer body.Close()
	h := sha256.New()
	if object.Size == s.size {
		n, err := io.Copy(h, body)
		if err == nil && n < s.size {
			err = io.ErrUnexpectedEOF
		}
		if err != nil {
			return fmt.Errorf("read %s back: %w", key, err)
		}
	}
	if hex.EncodeToString(h.Sum(nil)) != s.sum {
		err = fmt.Errorf("%s holds something else; it is left as it is", key)
	}
	return err
}

func sumOf(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}
