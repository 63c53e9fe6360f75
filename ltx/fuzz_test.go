package ltx_test

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"reflect"
	"testing"

	sltx "github.com/superfly/ltx"

	"github.com/tidemark-io/tidemark/ltx"
)

// addFiles adds every small shape of file, and the golden ones.
func addFiles(f *testing.F) {
	for _, b := range smallFiles(f) {
		f.Add(b)
	}
	names, err := filepath.Glob("testdata/*.ltx")
	if err != nil {
		f.Fatal(err)
	}
	for _, name := range names {
		b, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
}

// FuzzDecoder wants a clear error, or a file that the reference reads as well
// and that is the same when written again.
func FuzzDecoder(f *testing.F) {
	addFiles(f)
	f.Fuzz(func(t *testing.T, b []byte) {
		s, err := content(b)
		if err != nil {
			if !isDamage(err) {
				t.Fatalf("err = %v", err)
			}
			return
		}
		if got := decode(t, encode(t, s)); !reflect.DeepEqual(got, s) {
			t.Fatal("written again, it reads differently")
		}
		var reference sltx.FileSpec
		if _, err := reference.ReadFrom(bytes.NewReader(b)); err != nil {
			t.Fatalf("reference: %v", err)
		}
		if _, err := entries(b); err != nil {
			t.Fatalf("index of a valid file: %v", err)
		}
	})
}

// FuzzIndex reads the index and then the frames that it names.
func FuzzIndex(f *testing.F) {
	addFiles(f)
	f.Fuzz(func(t *testing.T, b []byte) {
		all, err := entries(b)
		if err != nil {
			if !isDamage(err) {
				t.Fatalf("err = %v", err)
			}
			return
		}
		h, err := ltx.ReadHeader(b)
		if err != nil {
			h.PageSize = 512
		}
		buf := make([]byte, h.PageSize)
		for _, e := range all {
			if e.Offset < ltx.HeaderSize || e.Size < 1 || e.Offset+e.Size > int64(len(b)) {
				t.Fatalf("entry %+v in a file of %d bytes", e, len(b))
			}
			fr, err := ltx.DecodeFrame(b[e.Offset:e.Offset+e.Size], h.PageSize, buf)
			if err != nil && !isDamage(err) {
				t.Fatalf("frame of page %d: %v", e.Pgno, err)
			}
			if err == nil && fr.Sum != ltx.ChecksumPage(fr.Pgno, fr.Page) {
				t.Fatalf("checksum of page %d = %s", fr.Pgno, fr.Sum)
			}
		}
	})
}

// FuzzMerge merges two files; what comes out must be a valid file.
func FuzzMerge(f *testing.F) {
	base, second, third := chain()
	files := [][]byte{encode(f, base), encode(f, second), encode(f, third), oldForm(f, third)}
	for i := 1; i < len(files); i++ {
		f.Add(files[i-1], files[i])
	}
	for _, b := range smallFiles(f) {
		f.Add(b, files[2])
	}
	f.Fuzz(func(t *testing.T, a, b []byte) {
		var strict, as bytes.Buffer
		h, trailer, err := ltx.Merge(context.Background(), &strict, readers(a, b)...)
		if err == nil {
			gotH, gotT, err := ltx.VerifyFile(&strict)
			if err != nil || gotH != h || gotT != trailer {
				t.Fatalf("merged to %+v, %+v (%v), want %+v, %+v", gotH, gotT, err, h, trailer)
			}
		}
		if _, _, err = ltx.MergeAs(context.Background(), &as, 7, 7, readers(a, b)...); err == nil {
			if _, _, err := ltx.VerifyFile(&as); err != nil {
				t.Fatal(err)
			}
		}
	})
}
