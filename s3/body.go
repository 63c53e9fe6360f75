package s3

import (
	"errors"
	"fmt"
	"io"
)

const (
	// maxReopens is how many connections in a row may break without progress.
	maxReopens = 5
	// progress is how much one connection has to bring to count as such.
	progress = 32 << 10
)

// body reads one part of one version of an object over as many connections as
// it takes.
type body struct {
	conn     io.ReadCloser
	reopen   func(failures int) (io.ReadCloser, error)
	name     string
	at, end  int64 // next byte, and the first not to read
	gained   int64 // by this connection
	failures int   // connections in a row that brought too little
	err      error // what broke the connection
}

// Read returns io.EOF only at the end of the part.
func (r *body) Read(p []byte) (int, error) {
	for {
		if r.at >= r.end {
			return 0, io.EOF
		}
		if r.err != nil {
			if err := r.resume(); err != nil {
				return 0, fmt.Errorf("read %s at byte %d: %w", r.name, r.at, err)
			}
		}
		n, err := r.conn.Read(p[:min(int64(len(p)), r.end-r.at)])
		r.at += int64(n)
		r.gained += int64(n)
		r.err = err
		if errors.Is(err, io.EOF) {
			r.err = io.ErrUnexpectedEOF // unless this is the end, which the next Read sees
		}
		if n > 0 || len(p) == 0 {
			return n, nil
		}
	}
}

// resume replaces a broken connection.
func (r *body) resume() error {
	if r.gained >= progress {
		r.failures = 0
	}
	if r.failures >= maxReopens {
		return fmt.Errorf("broke off %d times in a row: %w", r.failures+1, r.err)
	}
	conn, err := r.reopen(r.failures)
	if err != nil {
		return errors.Join(r.err, err)
	}
	_ = r.conn.Close() // broken
	r.conn, r.err, r.gained = conn, nil, 0
	r.failures++
	return nil
}

// Close ends the connection, or gives it back when the body was read to its
// end.
func (r *body) Close() error { return r.conn.Close() }
