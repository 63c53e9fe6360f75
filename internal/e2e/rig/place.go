package rig

import (
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"testing"

	"github.com/tidemark-io/tidemark/internal/testbucket"
)

// Place is where a replica is kept: a directory, or a prefix on an S3 server
// behind a meter.
type Place struct {
	URL    string
	Env    []string           // credentials
	Dir    string             // where its objects are files
	Meter  *Meter             // nil for a directory
	Server *testbucket.Server // nil for a directory
}

// Directory makes a directory bucket.
func Directory(t testing.TB) Place {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "bucket")
	return Place{URL: "file://" + dir, Dir: dir}
}

// S3 starts an S3 server with a meter before it.
func S3(t testing.TB) Place {
	t.Helper()
	return At(t, testbucket.Gateway(t), "lake/db")
}

// At makes a place of a prefix on a server, behind a meter of its own.
func At(t testing.TB, server *testbucket.Server, prefix string) Place {
	t.Helper()
	meter := NewMeter(t, server.Endpoint())
	return Place{
		URL: testbucket.URL(meter.Endpoint(), prefix), Env: server.Env(),
		Dir: filepath.Join(server.Root(), prefix), Meter: meter, Server: server,
	}
}

// Via returns the same place of an S3 server by way of another endpoint.
func (p Place) Via(endpoint string) Place {
	u, err := url.Parse(p.URL)
	if err != nil {
		panic(err) // it is a URL of At
	}
	p.URL = testbucket.URL(endpoint, u.Path)
	return p
}

// File is one LTX file of a replica.
type File struct {
	Level    int
	Min, Max uint64
	Size     int64
	path     string
}

// Name returns the last element of its key.
func (f File) Name() string { return fmt.Sprintf("%016x-%016x.ltx", f.Min, f.Max) }

// Path returns where it is stored on this machine.
func (f File) Path() string { return f.path }

// Files returns the files that are stored, those of a level in order.
func (p Place) Files(t testing.TB) []File {
	t.Helper()
	var out []File
	err := filepath.WalkDir(p.Dir, func(path string, d fs.DirEntry, err error) error {
		if os.IsNotExist(err) {
			return nil
		}
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		if os.IsNotExist(err) {
			return nil
		}
		if err == nil {
			out = appendFile(t, out, path, info.Size())
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return sorted(out)
}

func sorted(files []File) []File {
	slices.SortFunc(files, func(a, b File) int {
		if a.Level != b.Level {
			return a.Level - b.Level
		}
		return int(int64(a.Min) - int64(b.Min))
	})
	return files
}

func appendFile(t testing.TB, out []File, key string, size int64) []File {
	t.Helper()
	m := regexp.MustCompile(`/([0-9a-f]{1,4})/([0-9a-f]{16})-([0-9a-f]{16})\.ltx$`).FindStringSubmatch(key)
	if m == nil {
		return out
	}
	f := File{Size: size, path: key}
	level, err := strconv.ParseInt(m[1], 16, 32)
	if err != nil {
		t.Fatal(err)
	}
	f.Level = int(level)
	for i, dst := range []*uint64{&f.Min, &f.Max} {
		if *dst, err = strconv.ParseUint(m[i+2], 16, 64); err != nil {
			t.Fatal(err)
		}
	}
	return append(out, f)
}

// Level returns the files of one level.
func (p Place) Level(t testing.TB, level int) []File {
	t.Helper()
	return slices.DeleteFunc(p.Files(t), func(f File) bool { return f.Level != level })
}

// Newest returns the highest TXID that is stored.
func (p Place) Newest(t testing.TB) (n uint64) {
	t.Helper()
	for _, f := range p.Files(t) {
		n = max(n, f.Max)
	}
	return n
}

// Uploaded returns the bytes that were sent to be stored so far. In a
// directory, where nothing is refused or repeated unseen, it is what lies there.
func (p Place) Uploaded(t testing.TB) (n int64) {
	t.Helper()
	if p.Meter != nil {
		return p.Meter.Uploaded()
	}
	for _, f := range p.Files(t) {
		n += f.Size
	}
	return n
}
