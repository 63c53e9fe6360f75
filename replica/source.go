package replica

import "github.com/tidemark-io/tidemark/ltx"

// Source hands over the LTX files that were captured and are not yet on the
// bucket, oldest first. Its methods are safe to call together.
type Source interface {
	// Next returns the oldest file, if any. From then on the content of that
	// file never changes, so that an upload may be repeated.
	Next() (Pending, bool)
	// Done forgets the file that Next returned: it is on the bucket.
	Done(Pending) error
	// Changed is signaled (capacity 1) when Next may have something new.
	Changed() <-chan struct{}
}

// Pending is one captured file.
type Pending struct {
	Info ltx.FileInfo // level 0 with Min = Max, or ltx.LevelSnapshot with Min = 1
	Pos  ltx.Pos      // position after it
	Path string       // local file
}
