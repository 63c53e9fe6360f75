package s3

import (
	"context"
	"sync"
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
// writes again. It keeps a caller whose write is done waiting for a short time
// only.
func (b *Bucket) abortLeft(ctx context.Context) {
	all := b.left.take()
	if len(all) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, abandonTime)
	defer cancel()
	for i, u := range all {
		if b.abort(ctx, u.full, u.id) != nil {
			b.left.add(all[i:]...)
			return
		}
	}
}
