package storagetest

import (
	"errors"
	"io"
	"strings"
)

// errBody is the error of a body that breaks.
var errBody = errors.New("body broke")

// body hides every method but Read and Seek, as the contract promises a
// bucket no more.
type body struct{ io.ReadSeeker }

func newBody(content string) io.ReadSeeker {
	return body{strings.NewReader(content)}
}

// failingBody fails once the first after bytes have been read.
type failingBody struct {
	io.ReadSeeker
	after int64
}

func (b *failingBody) Read(p []byte) (int, error) {
	at, err := b.Seek(0, io.SeekCurrent)
	if err != nil {
		return 0, err
	}
	if at >= b.after {
		return 0, errBody
	}
	return b.ReadSeeker.Read(p[:min(int64(len(p)), b.after-at)])
}
