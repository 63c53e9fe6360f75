package replica

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/tidemark-io/tidemark/internal/scratch"
	"github.com/tidemark-io/tidemark/ltx"
	"github.com/tidemark-io/tidemark/storage"
)

const (
	recordSize  = 4 + ltx.ChecksumSize
	recordBatch = 4096 * recordSize
)

// extent is a part of the records.
type extent struct{ offset, size int64 }

// verifier reads the files of a replica.
type verifier struct {
	replica *Replica
	options VerifyOptions
	proofs  map[string]*proof // by key
	strange []string          // keys that are no files of ours
	result  Verification

	mu          sync.Mutex
	records     *scratch.File
	done, total int64
}

// readAll reads every file. What is merged away meanwhile is replaced by what
// took its place.
func (v *verifier) readAll(ctx context.Context) error {
	for range replans {
		files, err := v.list(ctx)
		if err != nil {
			return err
		}
		listed := map[string]*proof{}
		var unread []*proof
		for _, f := range files {
			key := v.replica.Key(f)
			p := v.proofs[key]
			if p == nil || p.Size != f.Size {
				p = &proof{FileInfo: f, key: key}
				unread = append(unread, p)
				v.total += f.Size
			}
			listed[key] = p
		}
		v.proofs = listed
		gone, err := v.readSome(ctx, unread)
		if err != nil || gone == 0 {
			return err
		}
	}
	return errors.New("its files change faster than they can be read; try again")
}

// list returns the files, and keeps the names of what is none.
func (v *verifier) list(ctx context.Context) ([]ltx.FileInfo, error) {
	var files []ltx.FileInfo
	v.strange = nil
	prefix := v.replica.layout.prefix()
	for object, err := range v.replica.bucket.List(ctx, prefix, "") {
		if err != nil {
			return nil, fmt.Errorf("list: %w", err)
		}
		f, ok := v.replica.layout.ParseKey(object.Key)
		if !ok {
			v.strange = append(v.strange, object.Key)
			continue
		}
		f.Size, f.ModTime = object.Size, object.ModTime
		files = append(files, f)
	}
	if len(files) == 0 {
		return nil, ErrNoBackup
	}
	return files, nil
}

// readSome reads files in parallel and drops those that are gone.
func (v *verifier) readSome(ctx context.Context, proofs []*proof) (gone int, err error) {
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(v.options.Parallelism)
	for _, p := range proofs {
		g.Go(func() error {
			err := v.read(ctx, p)
			switch {
			case errors.Is(err, storage.ErrNotFound):
				v.mu.Lock()
				defer v.mu.Unlock()
				gone++
				delete(v.proofs, p.key)
			case isDamage(err):
				p.err = err
			case err != nil:
				return err
			}
			return nil
		})
	}
	err = g.Wait()
	return gone, err
}

// read reads a file whole and records its pages' checksums.
func (v *verifier) read(ctx context.Context, p *proof) error {
	if err := v.replica.checkSize(p.FileInfo); err != nil {
		return err
	}
	fetch := func(b []byte, offset int64) error {
		err := v.replica.fetch(ctx, p.FileInfo, b, offset)
		v.progress(int64(len(b)))
		return err
	}
	d, err := ltx.NewDecoder(newRounds(fetch, p.Size, 1))
	if err != nil {
		return fmt.Errorf("read %s: %w", p.key, err)
	}
	if p.header = d.Header(); p.header.MinTXID != p.Min || p.header.MaxTXID != p.Max {
		return v.replica.checkHeader(p.FileInfo, p.header)
	}
	buf := make([]byte, 0, min(recordBatch, p.Size*recordSize))
	for page, err := range d.Pages() {
		if err != nil {
			return fmt.Errorf("read %s: %w", p.key, err)
		}
		buf = binary.LittleEndian.AppendUint32(buf, page.Pgno)
		buf = binary.LittleEndian.AppendUint64(buf, uint64(page.Sum))
		p.xor ^= page.Sum
		if len(buf) >= recordBatch {
			if err := v.record(p, buf); err != nil {
				return err
			}
			buf = buf[:0]
		}
	}
	t, err := d.Close()
	if err != nil {
		return fmt.Errorf("read %s: %w", p.key, err)
	}
	p.post = t.PostApplyChecksum
	return v.record(p, buf)
}

// record appends to the records.
func (v *verifier) record(p *proof, b []byte) error {
	if len(b) == 0 {
		return nil
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	p.records = append(p.records, extent{v.records.Size(), int64(len(b))})
	_, err := v.records.Write(b)
	return err
}

// each calls fn with the pages of a file that was read.
func (v *verifier) each(p *proof, fn func(pgno uint32, sum ltx.Checksum) error) error {
	var buf []byte
	for _, e := range p.records {
		buf = append(buf[:0], make([]byte, e.size)...)
		if _, err := io.ReadFull(v.records.Section(e.offset, e.size), buf); err != nil {
			return fmt.Errorf("read scratch file: %w", err)
		}
		for b := buf; len(b) > 0; b = b[recordSize:] {
			if err := fn(binary.LittleEndian.Uint32(b), ltx.Checksum(binary.LittleEndian.Uint64(b[4:]))); err != nil {
				return err
			}
		}
	}
	return nil
}

func (v *verifier) progress(n int64) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.done += n
	if v.options.Progress != nil {
		v.options.Progress(v.done, v.total)
	}
}
