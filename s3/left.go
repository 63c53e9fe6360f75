package s3

import (
	"context"
	"errors"
	"sync"

	"github.com/tidemark-io/tidemark/storage"
)

// left is the uploads of this process that could not be aborted yet.
type left struct {
	mu      sync.Mutex
	uploads []*upload
}

// mostLeft bounds how many are remembered; of others CleanUploads takes care.
const mostLeft = 1000

func (l *left) add(uploads ...*upload) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.uploads = append(l.uploads, uploads...)
	l.uploads = l.uploads[max(0, len(l.uploads)-mostLeft):]
}

func (l *left) take() []*upload {
	l.mu.Lock()
	defer l.mu.Unlock()
	all := l.uploads
	l.uploads = nil
	return all
}

// abortLeft aborts what could not be aborted before, now that the service takes
// writes again; what it does not allow is not asked for again. It keeps a caller
// whose write is done waiting for a short time only.
func (b *Bucket) abortLeft(ctx context.Context) {
	all := b.left.take()
	if len(all) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, abandonTime)
	defer cancel()
	for i, u := range all {
		if err := b.abort(ctx, u.full, u.id); err != nil && !errors.Is(err, storage.ErrForbidden) {
			b.left.add(all[i:]...)
			return
		}
	}
}
