package ltx_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"reflect"
	"testing"

	sltx "github.com/superfly/ltx"

	"github.com/tidemark-io/tidemark/ltx"
)

// pageOf returns a page that compresses somewhat and depends on seed.
func pageOf(pageSize int, seed uint64) []byte {
	rng := rand.New(rand.NewPCG(seed, 1))
	b := make([]byte, pageSize)
	for i := 0; i < pageSize; {
		n := min(rng.IntN(40)+1, pageSize-i)
		switch rng.IntN(3) {
		case 0:
			for j := range n {
				b[i+j] = byte(rng.Uint32())
			}
		case 1:
			copy(b[i:i+n], b[rng.IntN(i+1):])
		}
		i += n
	}
	return b
}

// fileOf returns a file of txid with the given pages and an honest post-apply
// checksum if it is a snapshot.
func fileOf(txid ltx.TXID, pageSize, commit uint32, pgnos ...uint32) *ltx.Spec {
	s := &ltx.Spec{
		Header: ltx.Header{
			Version: ltx.Version, PageSize: pageSize, Commit: commit,
			MinTXID: txid, MaxTXID: txid, Timestamp: 1700000000000 + int64(txid),
		},
		PostApply: ltx.ChecksumFlag,
	}
	if txid > 1 {
		s.Header.PreApplyChecksum = ltx.ChecksumFlag | ltx.Checksum(txid-1)
		s.PostApply = ltx.ChecksumFlag | ltx.Checksum(txid)
	}
	for _, pgno := range pgnos {
		data := pageOf(int(pageSize), uint64(txid)<<32|uint64(pgno))
		s.Pages = append(s.Pages, ltx.PageSpec{Pgno: pgno, Data: data})
		if txid == 1 {
			s.PostApply = ltx.ChecksumFlag | (s.PostApply ^ ltx.ChecksumPage(pgno, data))
		}
	}
	if commit == 0 {
		s.PostApply = ltx.ChecksumFlag
	}
	return s
}

// encode returns the bytes of s.
func encode(t testing.TB, s *ltx.Spec) []byte {
	t.Helper()
	var buf bytes.Buffer
	n, err := s.WriteTo(&buf)
	if err != nil {
		t.Fatal(err)
	}
	if n != int64(buf.Len()) {
		t.Fatalf("size = %d, want %d", n, buf.Len())
	}
	return buf.Bytes()
}

// decode returns the file in b.
func decode(t testing.TB, b []byte) *ltx.Spec {
	t.Helper()
	var s ltx.Spec
	n, err := s.ReadFrom(bytes.NewReader(b))
	if err != nil {
		t.Fatal(err)
	}
	if n != int64(len(b)) {
		t.Fatalf("read %d bytes of %d", n, len(b))
	}
	return &s
}

// referenceEncode writes s by the reference implementation.
func referenceEncode(t testing.TB, s *ltx.Spec) []byte {
	t.Helper()
	fs := sltx.FileSpec{Header: s.Header, Trailer: sltx.Trailer{PostApplyChecksum: s.PostApply}}
	for _, p := range s.Pages {
		fs.Pages = append(fs.Pages, sltx.PageSpec{Header: sltx.PageHeader{Pgno: p.Pgno}, Data: p.Data})
	}
	var buf bytes.Buffer
	if _, err := fs.WriteTo(&buf); err != nil {
		t.Fatal(err)
	}
	return buf.Bytes()
}

// referenceDecode reads b by the reference implementation.
func referenceDecode(t testing.TB, b []byte) *ltx.Spec {
	t.Helper()
	var fs sltx.FileSpec
	if _, err := fs.ReadFrom(bytes.NewReader(b)); err != nil {
		t.Fatal(err)
	}
	s := &ltx.Spec{Header: fs.Header, PostApply: fs.Trailer.PostApplyChecksum}
	for _, p := range fs.Pages {
		s.Pages = append(s.Pages, ltx.PageSpec{Pgno: p.Header.Pgno, Data: p.Data})
	}
	return s
}

// files are the shapes every test of whole files goes through.
func files(pageSize uint32) map[string]*ltx.Spec {
	lock := ltx.LockPgno(pageSize)
	noSums := fileOf(3, pageSize, 9, 2, 4, 9)
	noSums.Header.Flags, noSums.Header.PreApplyChecksum, noSums.PostApply = ltx.FlagNoChecksum, 0, 0
	noSumsBase := fileOf(1, pageSize, 2, 1, 2)
	noSumsBase.Header.Flags, noSumsBase.PostApply = ltx.FlagNoChecksum, 0
	return map[string]*ltx.Spec{
		"snapshot":                   fileOf(1, pageSize, 5, 1, 2, 3, 4, 5),
		"increment":                  fileOf(2, pageSize, 12, 2, 3, 12),
		"around the lock page":       fileOf(7, pageSize, lock+2, 1, lock-1, lock+1, lock+2),
		"claim without pages":        fileOf(8, pageSize, 12),
		"emptied database":           fileOf(9, pageSize, 0),
		"empty from the start":       fileOf(1, pageSize, 0),
		"without checksums":          noSums,
		"snapshot without checksums": noSumsBase,
	}
}

func TestFilesAreTheSameBothWaysWithTheReference(t *testing.T) {
	for pageSize := uint32(512); pageSize <= 65536; pageSize *= 2 {
		for name, want := range files(pageSize) {
			t.Run(fmt.Sprintf("%d/%s", pageSize, name), func(t *testing.T) {
				ours, theirs := encode(t, want), referenceEncode(t, want)
				for by, got := range map[string]*ltx.Spec{
					"ours by us":        decode(t, ours),
					"theirs by us":      decode(t, theirs),
					"ours by reference": referenceDecode(t, ours),
				} {
					if !reflect.DeepEqual(got, want) {
						t.Errorf("%s: read something else than was written", by)
					}
				}
			})
		}
	}
}
