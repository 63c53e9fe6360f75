package ltx

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/pierrec/lz4/v4"
)

// rowPage returns a page as a table of SQLite has them: a header, pointers,
// free space and, from the end, rows of small numbers, words and paths.
func rowPage(pageSize int, seed uint64) []byte {
	rng := rand.New(rand.NewPCG(seed, 7))
	words := []string{"main", "ducklake", "parquet", "BIGINT", "VARCHAR", "TIMESTAMP WITH TIME ZONE", "orders", "data"}
	b := make([]byte, pageSize)
	end, used, count := pageSize, 8, 0
	fill := used + int(rng.Uint32()%uint32(pageSize))
	for count = 0; ; count++ {
		row := []byte{60, byte(count), 9, 1, 2, 8, 15, 35}
		row = binary.BigEndian.AppendUint32(row, uint32(seed)*50+uint32(count))
		row = append(row, words[rng.IntN(len(words))]...)
		row = fmt.Appendf(row, "ducklake-%08x-%04x.parquet", rng.Uint32(), rng.Uint32()%65536)
		row = binary.AppendUvarint(row, uint64(rng.IntN(1<<20)))
		row = append(row, words[rng.IntN(len(words))]...)
		if end-len(row) < max(used+2, pageSize-fill) {
			break
		}
		end -= len(row)
		copy(b[end:], row)
		binary.BigEndian.PutUint16(b[used:], uint16(end))
		used += 2
	}
	b[0] = 13
	binary.BigEndian.PutUint16(b[3:], uint16(count))
	binary.BigEndian.PutUint16(b[5:], uint16(end))
	return b
}

// checkPack packs b, unpacks it again and returns the packed size.
func checkPack(t *testing.T, p *packer, b []byte) int {
	t.Helper()
	dst := make([]byte, lz4.CompressBlockBound(len(b)))
	n := p.pack(dst, b)
	out := make([]byte, len(b))
	m, err := lz4.UncompressBlock(dst[:n], out)
	if err != nil || m != len(b) || !bytes.Equal(out, b) {
		t.Fatalf("%d bytes, packed to %d, unpack to %d others (%v)", len(b), n, m, err)
	}
	if lits := trailingLiterals(dst[:n]); len(b) > lastLiterals && lits < lastLiterals {
		t.Fatalf("%d bytes end with %d literals, want at least %d", len(b), lits, lastLiterals)
	}
	return n
}

// trailingLiterals returns the number of literals in the last sequence.
func trailingLiterals(block []byte) (count int) {
	length := func(nibble byte) int {
		size := int(nibble)
		for more := nibble == 15; more; {
			size += int(block[0])
			more = block[0] == 255
			block = block[1:]
		}
		return size
	}
	for len(block) > 0 {
		token := block[0]
		block = block[1:]
		count = length(token >> 4)
		block = block[count:]
		if len(block) > 0 {
			block = block[2:]
			length(token & 15)
		}
	}
	return count
}

func TestPagesUnpackToThemselves(t *testing.T) {
	var p packer
	rng := rand.New(rand.NewPCG(5, 6))
	for size := 512; size <= packMostSize; size *= 2 {
		random := make([]byte, size)
		for i := range random {
			random[i] = byte(rng.Uint32())
		}
		half := bytes.Clone(random)
		copy(half[size/2:], half)
		lateMatch := bytes.Clone(random)
		copy(lateMatch[size-matchStart:], lateMatch)
		pages := map[string][]byte{
			"zero": make([]byte, size), "random": random, "repeated half": half, "late match": lateMatch,
			"period 3": bytes.Repeat([]byte{1, 2, 3}, size)[:size], "rows": rowPage(size, 1),
			"single byte in zeros": append(append(make([]byte, size/2), 1), make([]byte, size/2-1)...),
		}
		for name, b := range pages {
			n := checkPack(t, &p, b)
			if again := checkPack(t, new(packer), b); again != n {
				t.Errorf("%s, %d bytes: %d at first, %d after other pages", name, size, again, n)
			}
		}
	}
}

func TestPackerForgetsEarlierPagesWhenItsBaseWraps(t *testing.T) {
	p := packer{base: packMostSize - 2*4096}
	for i := range uint64(4) {
		checkPack(t, &p, rowPage(4096, i))
		checkPack(t, &p, make([]byte, 65536))
	}
}

func TestPackedPagesAreAboutAsSmallAsTheReference(t *testing.T) {
	var (
		p      packer
		c      lz4.Compressor
		us, it int
	)
	dst := make([]byte, lz4.CompressBlockBound(4096))
	for i := range uint64(200) {
		b := rowPage(4096, i)
		us += checkPack(t, &p, b)
		n, err := c.CompressBlock(b, dst)
		if err != nil {
			t.Fatal(err)
		}
		it += n
	}
	if us*100 > it*105 {
		t.Errorf("packed to %d bytes, the reference to %d", us, it)
	}
}

func FuzzPack(f *testing.F) {
	f.Add([]byte{})
	f.Add([]byte("abcabcabcabcabcabcabcabc"))
	f.Add(rowPage(512, 3))
	f.Add(make([]byte, 4096))
	f.Fuzz(func(t *testing.T, b []byte) {
		b = b[:min(len(b), packMostSize)]
		var p packer
		n := checkPack(t, &p, b)
		checkPack(t, &p, bytes.Repeat(b, packMostSize/max(len(b), 4096)))
		if again := checkPack(t, &p, b); again != n {
			t.Fatalf("%d at first, %d later", n, again)
		}
	})
}
