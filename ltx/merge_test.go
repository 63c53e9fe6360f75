package ltx_test

import (
	"bytes"
	"context"
	"io"
	"reflect"
	"testing"

	sltx "github.com/superfly/ltx"

	"github.com/tidemark-io/tidemark/ltx"
)

// merge merges the encoded specs.
func merge(t testing.TB, specs ...*ltx.Spec) []byte {
	t.Helper()
	var srcs []io.Reader
	for _, s := range specs {
		srcs = append(srcs, bytes.NewReader(encode(t, s)))
	}
	var buf bytes.Buffer
	if _, _, err := ltx.Merge(context.Background(), &buf, srcs...); err != nil {
		t.Fatal(err)
	}
	return buf.Bytes()
}

// referenceMerge does it by the reference implementation.
func referenceMerge(t testing.TB, flags uint32, specs ...*ltx.Spec) []byte {
	t.Helper()
	var srcs []io.Reader
	for _, s := range specs {
		srcs = append(srcs, bytes.NewReader(encode(t, s)))
	}
	var buf bytes.Buffer
	c, err := sltx.NewCompactor(&buf, srcs)
	if err != nil {
		t.Fatal(err)
	}
	c.HeaderFlags = flags
	if err := c.Compact(context.Background()); err != nil {
		t.Fatal(err)
	}
	return buf.Bytes()
}

func TestMergeDoesWhatTheReferenceDoes(t *testing.T) {
	specs := []*ltx.Spec{
		fileOf(4, 1024, 20, 1, 2, 3, 17, 20),
		fileOf(5, 1024, 30, 2, 25, 30),
		fileOf(6, 1024, 30),
		fileOf(7, 1024, 19, 1, 3, 18),
	}
	got, want := decode(t, merge(t, specs...)), decode(t, referenceMerge(t, 0, specs...))
	if !reflect.DeepEqual(got, want) {
		t.Errorf("merged to %+v\nwant %+v", got.Header, want.Header)
	}
}
