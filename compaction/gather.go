package compaction

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"

	"golang.org/x/sync/errgroup"

	"github.com/tidemark-io/tidemark/internal/scratch"
	"github.com/tidemark-io/tidemark/ltx"
	"github.com/tidemark-io/tidemark/storage"
)

const (
	smallSource = 256 << 10 // bytes up to which several are fetched at once
	parallel    = 8
)

// Local has files of the replica that are on this machine too.
type Local interface {
	// Open returns the content of a file, which the caller closes. The error
	// wraps fs.ErrNotExist if it is not here.
	Open(f ltx.FileInfo) (io.ReadCloser, error)
}

// SourceError says that a file cannot be merged, whatever is tried: its content
// is damaged, does not follow the file before it, or says nothing.
type SourceError struct {
	File ltx.FileInfo
	Key  string
	Err  error
}

// Error names the key.
func (e *SourceError) Error() string { return fmt.Sprintf("%s: %v", e.Key, e.Err) }

// Unwrap returns the reason.
func (e *SourceError) Unwrap() error { return e.Err }

// gathered are the sources of a job in one scratch file, one after another.
type gathered struct {
	merger   *Merger
	files    []*scratch.File // the first one, and one for each source that was read again
	sources  []ltx.FileInfo
	sections []section
}

// section is where the content of a source is.
type section struct {
	file         *scratch.File
	offset, size int64
}

// last is where the file is that was written last.
func last(file *scratch.File, f ltx.FileInfo) section {
	return section{file, file.Size() - f.Size, f.Size}
}

func (g *gathered) reader(i int) *io.SectionReader {
	s := g.sections[i]
	return s.file.Section(s.offset, s.size)
}

// close removes the scratch files.
func (g *gathered) close() error {
	var errs []error
	for _, f := range g.files {
		errs = append(errs, f.Close())
	}
	return errors.Join(errs...)
}

// gather reads the sources. Their length is right then; what they hold is not
// proven.
func (m *Merger) gather(ctx context.Context, sources []ltx.FileInfo) (*gathered, error) {
	file, err := m.scratch.Create()
	if err != nil {
		return nil, err
	}
	g := &gathered{merger: m, files: []*scratch.File{file}, sources: sources}
	if err := g.readAll(ctx, file); err != nil {
		return nil, errors.Join(err, g.close())
	}
	return g, nil
}

// readAll reads large sources one by one and small ones some at a time.
func (g *gathered) readAll(ctx context.Context, file *scratch.File) error {
	for i := 0; i < len(g.sources); {
		n := 0
		for i+n < len(g.sources) && n < parallel && g.sources[i+n].Size <= smallSource {
			n++
		}
		if n == 0 {
			if err := g.merger.read(ctx, g.sources[i], file); err != nil {
				return err
			}
			g.sections = append(g.sections, last(file, g.sources[i]))
			i++
			continue
		}
		if err := g.readSmall(ctx, file, g.sources[i:i+n]); err != nil {
			return err
		}
		i += n
	}
	return nil
}

func (g *gathered) readSmall(ctx context.Context, file *scratch.File, sources []ltx.FileInfo) error {
	contents := make([]bytes.Buffer, len(sources))
	group, ctx := errgroup.WithContext(ctx)
	for i, f := range sources {
		group.Go(func() error { return g.merger.read(ctx, f, &contents[i]) })
	}
	if err := group.Wait(); err != nil {
		return err
	}
	for i := range contents {
		if _, err := contents[i].WriteTo(file); err != nil {
			return err
		}
		g.sections = append(g.sections, last(file, sources[i]))
	}
	return nil
}

// read writes a source to w: the local file if there is one, else what is on
// the bucket. What counts are the last bytes written, as many as the source
// has: a local file may break off before.
func (m *Merger) read(ctx context.Context, f ltx.FileInfo, w io.Writer) error {
	if m.local != nil {
		err := m.readLocal(f, w)
		if err == nil || isWriteError(err) {
			return err
		}
		if !errors.Is(err, fs.ErrNotExist) {
			m.log.Warn("local file not readable, reading the bucket", "key", m.replica.Key(f), "error", err)
		}
	}
	return m.fetch(ctx, f, storage.Range{Length: f.Size}, w)
}

func (m *Merger) readLocal(f ltx.FileInfo, w io.Writer) error {
	body, err := m.local.Open(f)
	if err != nil {
		return err
	}
	defer body.Close()
	n, err := io.Copy(writer{w}, body)
	if err == nil && n != f.Size {
		err = errShort
	}
	return err
}
