package wal_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/tidemark-io/tidemark/wal"
)

// BenchmarkCommitted reads a log of 32 MiB from a file, in commits of 20
// frames.
func BenchmarkCommitted(b *testing.B) {
	for _, bigEndian := range []bool{false, true} {
		b.Run(order(bigEndian).String(), func(b *testing.B) {
			log := random(4096, 8192, 20, bigEndian)
			path := filepath.Join(b.TempDir(), "log")
			if err := os.WriteFile(path, log, 0o600); err != nil {
				b.Fatal(err)
			}
			f, err := os.Open(path)
			if err != nil {
				b.Fatal(err)
			}
			defer f.Close()
			h := header(b, log)
			b.SetBytes(int64(len(log)))
			b.ReportAllocs()
			for b.Loop() {
				s, err := wal.Committed(f, h, h.Start(), wal.Limit{})
				if err != nil || s.Commits != 8192/20 {
					b.Fatal(s.Commits, err)
				}
			}
		})
	}
}

// BenchmarkCommittedOne reads one commit of two frames at the end of a log,
// as when following a busy writer.
func BenchmarkCommittedOne(b *testing.B) {
	log := random(4096, 1024, 2, false)
	h := header(b, log)
	from := committed(b, log, h.Start(), wal.Limit{Frames: 1022}).To
	for _, frames := range []uint32{0, 1024} {
		b.Run(fmt.Sprintf("limit=%d", frames), func(b *testing.B) {
			r := bytes.NewReader(log)
			b.ReportAllocs()
			for b.Loop() {
				s, err := wal.Committed(r, h, from, wal.Limit{Frames: frames})
				if err != nil || s.Commits != 1 {
					b.Fatal(s.Commits, err)
				}
			}
		})
	}
}

// random makes a log of random pages with a commit every so many frames.
func random(pageSize, frames, every int, bigEndian bool) []byte {
	rnd := rand.NewChaCha8([32]byte{})
	log := make([]byte, headerSize+frames*(frameHeaderSize+pageSize))
	_, _ = rnd.Read(log) // never fails
	for i := range frames {
		f := log[headerSize+i*(frameHeaderSize+pageSize):]
		binary.BigEndian.PutUint32(f, uint32(rnd.Uint64()%4000)+1)
		commit := uint32(0)
		if i%every == every-1 {
			commit = 4000
		}
		binary.BigEndian.PutUint32(f[4:], commit)
	}
	return seal(log, pageSize, bigEndian)
}
