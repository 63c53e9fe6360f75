package ltx_test

import (
	"bytes"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/tidemark-io/tidemark/ltx"
)

// goldenFiles are the files in testdata. They were written by the reference
// implementation; UPDATE_GOLDEN=1 writes them again.
func goldenFiles(t testing.TB) map[string]*ltx.Spec {
	t.Helper()
	all := map[string]*ltx.Spec{}
	for name, s := range files(512) {
		all[strings.ReplaceAll(name, " ", "-")+".ltx"] = s
	}
	all["large-pages.ltx"] = fileOf(2, 65536, 16387, 16384, 16386)
	all["old-form.ltx"] = fileOf(1, 4096, 2, 1, 2)
	for name, s := range all {
		path := filepath.Join("testdata", name)
		if os.Getenv("UPDATE_GOLDEN") == "" {
			continue
		}
		b := referenceEncode
		if name == "old-form.ltx" {
			b = func(t testing.TB, s *ltx.Spec) []byte { return oldForm(t, s) }
		}
		if err := os.WriteFile(path, b(t, s), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return all
}

func TestFilesOfTheReferenceReadAsTheyDidWhenWritten(t *testing.T) {
	for name, want := range goldenFiles(t) {
		b, err := os.ReadFile(filepath.Join("testdata", name))
		if err != nil {
			t.Fatal(err)
		}
		if got := decode(t, b); !reflect.DeepEqual(got, want) {
			t.Errorf("%s reads as %+v\nwant %+v", name, got.Header, want.Header)
		}
		// What is merged alone is copied, so this covers every byte we write.
		if name != "old-form.ltx" && !bytes.Equal(mergeBytes(t, b), b) {
			t.Errorf("%s is written differently", name)
		}
	}
}

func TestHeadersAndTrailersReadAlone(t *testing.T) {
	for name, s := range goldenFiles(t) {
		b := encode(t, s)
		h, err := ltx.ReadHeader(b[:ltx.HeaderSize])
		if err != nil || h != s.Header {
			t.Errorf("%s: header = %+v, %v", name, h, err)
		}
		trailer, err := ltx.ReadTrailer(b)
		if err != nil || trailer.PostApplyChecksum != s.PostApply {
			t.Errorf("%s: trailer = %+v, %v", name, trailer, err)
		}
	}
}

func TestInvalidHeadersAndTrailersAreCorrupt(t *testing.T) {
	b := encode(t, fileOf(2, 512, 9, 3))
	for size := range ltx.HeaderSize {
		if _, err := ltx.ReadHeader(b[:size]); !isDamage(err) {
			t.Errorf("header of %d bytes: %v", size, err)
		}
	}
	for _, at := range []int{0, 4, 10, 40} { // magic, flags, page size, checksum
		b[at] ^= 0x80
		if _, err := ltx.ReadHeader(b); !isDamage(err) {
			t.Errorf("header with a wrong byte %d: %v", at, err)
		}
		b[at] ^= 0x80
	}
	tail := b[len(b)-ltx.TrailerSize:]
	for size := range tail {
		if _, err := ltx.ReadTrailer(tail[:size]); !isDamage(err) {
			t.Errorf("trailer of %d bytes: %v", size, err)
		}
	}
	for _, at := range []int{0, 8} {
		tail[at] ^= 0x80
		if _, err := ltx.ReadTrailer(b); !isDamage(err) {
			t.Errorf("trailer without flag bit at %d: %v", at, err)
		}
		tail[at] ^= 0x80
	}
}
