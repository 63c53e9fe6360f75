package capture

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/tidemark-io/tidemark/ltx"
)

// StateLock is the lock of the state directory of a database that is not being
// captured: it keeps others from capturing it. A crash releases it.
type StateLock struct{ f *os.File }

// LockState makes the state directory of the database at path, which need not
// exist, and takes its lock. It wraps ErrLocked.
func LockState(path string) (*StateLock, error) {
	path, err := realPath(path)
	if err != nil {
		return nil, err
	}
	f, err := lockState(StateDir(path), nil)
	if err != nil {
		return nil, err
	}
	return &StateLock{f: f}, nil
}

// Close gives the lock up.
func (l *StateLock) Close() error { return l.f.Close() }

// Held tells whether the lock is still what keeps others out: somebody may have
// removed it, with the state directory.
func (l *StateLock) Held() bool {
	_, same, err := sameNamed(l.f)
	return err == nil && same
}

// ClearSpool removes the files in the spool: what they hold is on the replica,
// or kept elsewhere.
func (l *StateLock) ClearSpool() error {
	files, err := filepath.Glob(filepath.Join(filepath.Dir(l.f.Name()), spoolName, "*.ltx"))
	for _, file := range files {
		err = errors.Join(err, os.Remove(file))
	}
	return err
}

// realPath is the path that names the state directory: one file has one,
// whatever links lead to it.
func realPath(path string) (string, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	if file, err := filepath.EvalSymlinks(path); err == nil {
		path = file
	}
	return path, nil
}

// Tail is the part of a local history that may not be on the replica.
type Tail struct {
	Known    bool    // there is a local history; else the rest is empty
	Base     ltx.Pos // where the tail begins; checksum 0 if an earlier run began it with a full copy
	Files    []File  // in the spool, in order
	End      ltx.Pos // where the database stands
	PageSize uint32
}

// CutTail brings everything committed to the database at path into the spool,
// by the local state alone, and closes the database. Nobody may have the state
// directory locked. A database that does not exist has no tail. It neither
// changes the journal mode nor asks the replica.
func CutTail(ctx context.Context, path string, o Options) (t Tail, err error) {
	o.Tip = func(context.Context) (Tip, error) { return Tip{}, errors.New("the replica is not asked") }
	o.History, o.Resume, o.KeepUploaded = nil, nil, false
	c, err := New(path, Config{JournalMode: JournalKeep, PollInterval: DefaultConfig().PollInterval}, o)
	if err != nil {
		return Tail{}, err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	if c.position().IsZero() || c.st.sums.Interrupted() {
		return Tail{}, nil
	}
	base := c.st.begins()
	c.plan.tip = &base
	if err := c.Capture(ctx); err != nil {
		return Tail{}, fmt.Errorf("capture the last commits of %s: %w", c.path, err)
	}
	if c.cur == nil { // there is no database any more
		return Tail{}, nil
	}
	t = Tail{Known: true, Base: base.Pos, End: c.position(), PageSize: c.st.sums.PageSize()}
	for _, f := range c.st.spool.files {
		t.Files = append(t.Files, f.File)
	}
	return t, nil
}

// begins returns the position before the spool's files.
func (st *state) begins() Tip {
	tip := Tip{Pos: st.sums.Pos(), PageSize: st.sums.PageSize(), Pages: st.sums.Pages()}
	if files := st.spool.files; len(files) > 0 {
		tip.Pos = ltx.Pos{TXID: files[0].Info.Max - 1, PostApplyChecksum: files[0].pre}
	}
	return tip
}

// Followed returns what a Capturer needs to go on without a comparison where a
// follower left off: the database at path is at tip, as the page sums beside it
// say, and nobody has it open.
func Followed(path string, tip Tip) (*Parked, error) {
	path, err := realPath(path)
	if err != nil {
		return nil, err
	}
	print, err := fingerprintOf(path)
	if err != nil {
		return nil, err
	}
	if print.file == (stamp{}) {
		return nil, fmt.Errorf("go on with %s: it is not there any more", path)
	}
	return &Parked{path: path, tip: tip, known: true, print: print, copied: true}, nil
}
