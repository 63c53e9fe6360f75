package testdb

import (
	"context"
	"io"

	"golang.org/x/sync/errgroup"
)

// closed returns a context that ends when the reader does.
func closed(r io.Reader) context.Context {
	g, ctx := errgroup.WithContext(context.Background())
	g.Go(func() error {
		if _, err := io.Copy(io.Discard, r); err != nil {
			return err
		}
		return io.EOF
	})
	return ctx
}
