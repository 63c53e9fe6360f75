package compaction

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/tidemark-io/tidemark/ltx"
	"github.com/tidemark-io/tidemark/storage"
)

// suspects returns the files of level 0 that were stored after the file that
// holds their TXIDs: by somebody who stored a lost one again, or by a writer that
// was shut out and found its name free. The newest one is none, its name is
// never given free.
func suspects(files []ltx.FileInfo) (found []ltx.FileInfo) {
	var newest ltx.TXID
	var merged []ltx.FileInfo
	for _, f := range files {
		if f.Level == 0 {
			newest = max(newest, f.Max)
		} else {
			merged = append(merged, f)
		}
	}
	for _, f := range files {
		if f.Level == 0 && f.Max < newest && slices.ContainsFunc(merged, func(c ltx.FileInfo) bool {
			return c.Min <= f.Min && c.Max >= f.Max && c.ModTime.Before(f.ModTime)
		}) {
			found = append(found, f)
		}
	}
	return found
}

// stored names a file as it was stored once.
type stored struct {
	fileKey
	at int64
}

func storedAs(f ltx.FileInfo) stored { return stored{keyOf(f), f.ModTime.UnixNano()} }

// doubtful returns the suspects that were not looked at.
func (w *Worker) doubtful(files []ltx.FileInfo) []ltx.FileInfo {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.DeleteFunc(suspects(files), func(f ltx.FileInfo) bool { return w.state.sound[storedAs(f)] })
}

// clearStrays deletes the suspects that are proven to be no part of the
// history. Those below the files that were merged lead nobody astray who reads
// these, but whoever asks for exactly their TXID.
func (w *Worker) clearStrays(ctx context.Context, files []ltx.FileInfo) error {
	all := suspects(files)
	witnesses := slices.DeleteFunc(slices.Clone(files), func(f ltx.FileInfo) bool { return slices.Contains(all, f) })
	for _, f := range w.doubtful(files) {
		reason, err := w.merger.stray(ctx, f, witnesses)
		if err != nil {
			return fmt.Errorf("look at %s: %w", w.merger.replica.Key(f), err)
		}
		if reason == "" {
			w.mu.Lock()
			w.state.sound[storedAs(f)] = true
			w.mu.Unlock()
			continue
		}
		if err := w.retainer.delete(ctx, []ltx.FileInfo{f}); err != nil {
			return fmt.Errorf("delete stray file: %w", err)
		}
		w.forget([]ltx.FileInfo{f})
		w.options.Log.Warn("deleted a file that a writer stored late that was shut out", "key", w.merger.replica.Key(f), "proof", reason)
	}
	return nil
}

// stray says why a file is no part of the history, as files tell that are; ""
// if nothing proves that. Both sides are read whole: damage is no proof.
func (m *Merger) stray(ctx context.Context, f ltx.FileInfo, witnesses []ltx.FileInfo) (reason string, err error) {
	here, err := m.ends(ctx, f)
	if err != nil {
		if saysNothing(err) {
			err = nil
		}
		return "", err
	}
	for _, c := range witnesses {
		if !tells(c, f) {
			continue
		}
		there, err := m.ends(ctx, c)
		if err != nil && !saysNothing(err) {
			return "", err
		}
		if reason = contradiction(f, c, [2]edges{here, there}); err != nil || reason == "" {
			continue
		}
		err = m.proveFile(ctx, f)
		if err == nil {
			err = m.proveFile(ctx, c)
		}
		if err == nil {
			return reason + " " + m.replica.Key(c), nil
		} else if !saysNothing(err) {
			return "", err
		}
	}
	return "", nil
}

// saysNothing tells whether an error means that a file cannot be told from.
func saysNothing(err error) bool { return isBad(err) || errors.Is(err, storage.ErrNotFound) }

// tells tells whether the ends of a file can say something of another one.
func tells(c, f ltx.FileInfo) bool {
	return c.Min == f.Min || c.Max == f.Max || c.Min == f.Max+1 || c.Max == f.Min-1 || c.Max < f.Min && isClaim(c)
}

// edges are what the ends of a file say.
type edges struct {
	ltx.Header
	ltx.Trailer
}

// contradiction says in what f contradicts a file c of the history.
func contradiction(f, c ltx.FileInfo, s [2]edges) string {
	differ := func(a, b ltx.Checksum) bool { return a != 0 && b != 0 && a != b }
	switch of, oc := s[0], s[1]; {
	case c.Max < f.Min && of.NodeID>>32 > 0 && oc.NodeID>>32 > of.NodeID>>32:
		return fmt.Sprintf("its generation %d is older than %d of", of.NodeID>>32, oc.NodeID>>32)
	case c.Max == f.Max && differ(of.PostApplyChecksum, oc.PostApplyChecksum):
		return "it leaves another state than"
	case c.Min == f.Max+1 && differ(of.PostApplyChecksum, oc.PreApplyChecksum):
		return "it does not lead to"
	case c.Max == f.Min-1 && differ(of.PreApplyChecksum, oc.PostApplyChecksum):
		return "it does not follow"
	case c.Min == f.Min && differ(of.PreApplyChecksum, oc.PreApplyChecksum):
		return "it follows another state than"
	}
	return ""
}

// ends reads the header and the trailer of a file.
func (m *Merger) ends(ctx context.Context, f ltx.FileInfo) (s edges, err error) {
	var b bytes.Buffer
	if err = m.fetch(ctx, f, storage.Range{Length: ltx.HeaderSize}, &b); err != nil {
		return s, err
	}
	if s.Header, err = ltx.ReadHeader(b.Bytes()); err != nil {
		return s, fmt.Errorf("read %s: %w", m.replica.Key(f), err)
	}
	s.Trailer, err = m.endOf(ctx, f)
	return s, err
}
