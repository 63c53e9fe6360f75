package replica

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/tidemark-io/tidemark/ltx"
	"github.com/tidemark-io/tidemark/storage"
)

// tipTries is how often the listing is repeated when the newest file was
// merged away between the listing and the reading.
const tipTries = 5

// tipWhole is the size up to which the newest file is fetched with one request.
const tipWhole = 64 << 10

// Tip is the newest state the replica holds.
type Tip struct {
	Pos      ltx.Pos // PostApplyChecksum 0: unknown, the file carries none
	PageSize uint32
	Commit   uint32 // size of the database in pages
	Info     ltx.FileInfo
	At       time.Time // of its last commit, as its header says
	Older    bool      // there are files that end before it
}

// Tip returns the newest state over all levels. It takes one listing and, where
// the newest file is small, one request more, else two. It returns ErrNoBackup only
// after a complete listing that showed no file; a listing that fails is an
// error of its own.
func (r *Replica) Tip(ctx context.Context) (Tip, error) {
	return r.tip(ctx, func(ltx.FileInfo) {}, func() {})
}

// Survey is Tip, and returns the files of its listing.
func (r *Replica) Survey(ctx context.Context) (tip Tip, files []ltx.FileInfo, err error) {
	tip, err = r.tip(ctx, func(f ltx.FileInfo) { files = append(files, f) }, func() { files = nil })
	return tip, files, err
}

// tip notes the files of a listing. A listing that is repeated begins anew.
func (r *Replica) tip(ctx context.Context, note func(ltx.FileInfo), anew func()) (Tip, error) {
	var err error
	for range tipTries {
		anew()
		var newest []ltx.FileInfo
		var older bool
		if newest, older, err = r.newest(ctx, note); err != nil {
			return Tip{}, err
		}
		var tip Tip
		if tip, err = r.tipOf(ctx, newest); !errors.Is(err, storage.ErrNotFound) {
			tip.Older = older
			return tip, err
		}
	}
	return Tip{}, err
}

// newest returns the files that end at the highest TXID, at most one a level,
// lowest level first, and whether there are others.
func (r *Replica) newest(ctx context.Context, note func(ltx.FileInfo)) (newest []ltx.FileInfo, older bool, err error) {
	for f, err := range r.list(ctx, r.layout.prefix()) {
		if err != nil {
			return nil, false, err
		}
		note(f)
		switch n := len(newest); {
		case n == 0 || f.Max > newest[0].Max:
			older = n > 0
			newest = append(newest[:0], f)
		case f.Max < newest[0].Max:
			older = true
		case f.Level == newest[n-1].Level:
			newest[n-1] = f
		default:
			newest = append(newest, f)
		}
	}
	if len(newest) == 0 {
		return nil, false, fmt.Errorf("%s: %w", r, ErrNoBackup)
	}
	return newest, older, nil
}

// tipOf reads the candidate of the highest level that is a file at all: a base
// says more than the claim beside it.
func (r *Replica) tipOf(ctx context.Context, candidates []ltx.FileInfo) (Tip, error) {
	var errs []error
	for _, f := range slices.Backward(candidates) {
		h, t, err := r.ends(ctx, f)
		if err == nil {
			return Tip{
				Pos:      ltx.Pos{TXID: f.Max, PostApplyChecksum: t.PostApplyChecksum},
				PageSize: h.PageSize, Commit: h.Commit, Info: f, At: time.UnixMilli(h.Timestamp),
			}, nil
		}
		errs = append(errs, err)
		if !errors.Is(err, ltx.ErrCorrupt) && !errors.Is(err, storage.ErrNotFound) {
			break
		}
	}
	return Tip{}, fmt.Errorf("read newest file: %w", errors.Join(errs...))
}

// ends reads the header and the trailer of a file; a small file is fetched
// whole, because a request costs more than its bytes.
func (r *Replica) ends(ctx context.Context, f ltx.FileInfo) (ltx.Header, ltx.Trailer, error) {
	if err := r.checkSize(f); err != nil {
		return ltx.Header{}, ltx.Trailer{}, err
	}
	head, tail, err := r.fetchEnds(ctx, f)
	if err != nil {
		return ltx.Header{}, ltx.Trailer{}, err
	}
	h, err := r.header(f, head)
	if err != nil {
		return ltx.Header{}, ltx.Trailer{}, err
	}
	t, err := ltx.ReadTrailer(tail)
	if err == nil {
		err = matchTrailer(h, t)
	}
	if err != nil {
		return ltx.Header{}, ltx.Trailer{}, fmt.Errorf("read %s: %w", r.Key(f), err)
	}
	return h, t, nil
}

func (r *Replica) fetchEnds(ctx context.Context, f ltx.FileInfo) (head, tail []byte, err error) {
	if f.Size <= tipWhole {
		whole := make([]byte, f.Size)
		err = r.fetch(ctx, f, whole, 0)
		return whole[:ltx.HeaderSize], whole[f.Size-ltx.TrailerSize:], err
	}
	head, tail = make([]byte, ltx.HeaderSize), make([]byte, ltx.TrailerSize)
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return r.fetch(ctx, f, head, 0) })
	g.Go(func() error { return r.fetch(ctx, f, tail, f.Size-ltx.TrailerSize) })
	return head, tail, g.Wait()
}

// header decodes the header of f and compares it with what the key says.
func (r *Replica) header(f ltx.FileInfo, b []byte) (ltx.Header, error) {
	h, err := ltx.ReadHeader(b)
	if err != nil {
		return h, fmt.Errorf("read %s: %w", r.Key(f), err)
	}
	return h, r.checkHeader(f, h)
}

func (r *Replica) checkHeader(f ltx.FileInfo, h ltx.Header) error {
	if h.MinTXID != f.Min || h.MaxTXID != f.Max {
		return fmt.Errorf("read %s: %w: its header says %s-%s", r.Key(f), ltx.ErrCorrupt, h.MinTXID, h.MaxTXID)
	}
	return nil
}

// checkSize refuses a file that is too short to be one, as an interrupted
// write of another program may leave it.
func (r *Replica) checkSize(f ltx.FileInfo) error {
	if f.Size < ltx.MinFileSize {
		return fmt.Errorf("read %s: %w: %d bytes are too short for a file", r.Key(f), ltx.ErrCorrupt, f.Size)
	}
	return nil
}

// matchTrailer checks that header and trailer agree on whether the file
// carries database checksums.
func matchTrailer(h ltx.Header, t ltx.Trailer) error {
	if h.NoChecksum() != (t.PostApplyChecksum == 0) {
		return fmt.Errorf("%w: header and trailer disagree about database checksums", ltx.ErrCorrupt)
	}
	return nil
}
