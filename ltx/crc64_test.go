package ltx

import (
	"bytes"
	"hash/crc64"
	"math/rand/v2"
	"testing"
)

// checkCRC compares every way to compute the checksum of b with hash/crc64.
func checkCRC(t *testing.T, b []byte) {
	t.Helper()
	table := crc64.MakeTable(crc64.ISO)
	want := crc64.Checksum(b, table)
	if got := ^crcUpdate(crcInit, b); got != want {
		t.Fatalf("%d bytes: crc = %016x, want %016x", len(b), got, want)
	}
	if len(b) == 0 {
		return
	}
	cut := int(b[0]) * len(b) / 256
	if got := ^crcUpdate(crcUpdate(crcInit, b[:cut]), b[cut:]); got != want {
		t.Fatalf("%d bytes cut at %d: crc = %016x, want %016x", len(b), cut, got, want)
	}
	if got := crcUpdate(0, b[cut:]) ^ crcUpdate(crcUpdate(crcInit, b[:cut]), make([]byte, len(b)-cut)); ^got != want {
		t.Fatalf("%d bytes cut at %d: sum of parts = %016x, want %016x", len(b), cut, ^got, want)
	}
}

func TestCRCEqualsHashCRC64AtEveryLengthAndAlignment(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	b := make([]byte, 5000)
	for i := range b {
		b[i] = byte(rng.Uint32())
	}
	for size := 0; size < 1500; size++ {
		at := rng.IntN(64)
		checkCRC(t, b[at:at+size])
	}
	for at := range 64 {
		checkCRC(t, b[at:at+4096])
	}
	for range 300 {
		at := rng.IntN(len(b))
		checkCRC(t, b[at:at+rng.IntN(len(b)-at+1)])
	}
}

func TestCRCEqualsHashCRC64OnSingleBits(t *testing.T) {
	for _, size := range []int{1, 8, 64, 65, 512, 1024, 1031, 1536} {
		b := make([]byte, size)
		for i := range b {
			for bit := range 8 {
				b[i] = 1 << bit
				checkCRC(t, b)
			}
			b[i] = 0
		}
		checkCRC(t, bytes.Repeat([]byte{0xff}, size))
	}
}

func TestPageChecksumsFollowFromOnePass(t *testing.T) {
	table := crc64.MakeTable(crc64.ISO)
	rng := rand.New(rand.NewPCG(3, 4))
	for size := 512; size <= 65536; size *= 2 {
		b := make([]byte, size)
		for i := range b {
			b[i] = byte(rng.Uint32())
		}
		pgno, shift, raw := rng.Uint32(), newPageShift(uint32(size)), crcUpdate(0, b)
		header := []byte{byte(pgno >> 24), byte(pgno >> 16), byte(pgno >> 8), byte(pgno)}
		want := crc64.Update(crc64.Checksum(header, table), table, b)
		if got := shift.page(pgno, raw); got != ChecksumFlag|Checksum(want) {
			t.Errorf("%d bytes: page checksum = %s, want %016x", size, got, want)
		}
		if got := ChecksumPage(pgno, b); got != ChecksumFlag|Checksum(want) {
			t.Errorf("%d bytes: ChecksumPage = %s, want %016x", size, got, want)
		}
		sum := newFileSum(uint32(size))
		sum.frameHeader(b[:frameHeaderSize])
		sum.page(raw)
		want = crc64.Update(crc64.Checksum(b[:frameHeaderSize], table), table, b)
		if got := sum.sum(); got != ChecksumFlag|Checksum(want) {
			t.Errorf("%d bytes: file checksum = %s, want %016x", size, got, want)
		}
	}
}

func FuzzCRC(f *testing.F) {
	f.Add([]byte{})
	f.Add([]byte("123456789"))
	f.Add(bytes.Repeat([]byte{0x80, 1}, 300))
	f.Add(bytes.Repeat([]byte{0xff}, 1031))
	f.Fuzz(func(t *testing.T, b []byte) {
		checkCRC(t, b)
		checkCRC(t, bytes.Repeat(b, 1+min(20, 4096/(len(b)+1))))
	})
}
