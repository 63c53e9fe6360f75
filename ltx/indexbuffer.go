package ltx

import "encoding/binary"

// Sizes of the chunks of an indexBuffer, and of the largest record in it.
const (
	minIndexChunk  = 512
	maxIndexChunk  = 64 << 10
	maxIndexRecord = 2*binary.MaxVarintLen64 + binary.MaxVarintLen32
)

// indexBuffer gathers a file's index in its final form, about nine bytes a
// page, in chunks, so that it grows without being copied.
type indexBuffer struct {
	chunks [][]byte
	size   int64
}

func (b *indexBuffer) append(e Entry) {
	n := len(b.chunks)
	if n == 0 || cap(b.chunks[n-1])-len(b.chunks[n-1]) < maxIndexRecord {
		size := minIndexChunk
		if n > 0 {
			size = min(2*cap(b.chunks[n-1]), maxIndexChunk)
		}
		b.chunks = append(b.chunks, make([]byte, 0, size))
		n++
	}
	last := &b.chunks[n-1]
	before := len(*last)
	*last = binary.AppendUvarint(*last, uint64(e.Pgno))
	*last = binary.AppendUvarint(*last, uint64(e.Offset))
	*last = binary.AppendUvarint(*last, uint64(e.Size))
	b.size += int64(len(*last) - before)
}
