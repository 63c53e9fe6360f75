package replica_test

import (
	"strings"
	"testing"

	"github.com/tidemark-io/tidemark/ltx"
	"github.com/tidemark-io/tidemark/replica"
)

func TestKeysAreThoseOfLitestream(t *testing.T) {
	tests := []struct {
		layout   replica.Layout
		level    int
		min, max ltx.TXID
		want     string
	}{
		{replica.LayoutDir, 0, 1, 1, "ltx/0/0000000000000001-0000000000000001.ltx"},
		{replica.LayoutDir, 9, 1, 0xabc, "ltx/9/0000000000000001-0000000000000abc.ltx"},
		{replica.LayoutObject, 0, 7, 7, "0000/0000000000000007-0000000000000007.ltx"},
		{replica.LayoutObject, 9, 1, ^ltx.TXID(0), "0009/0000000000000001-ffffffffffffffff.ltx"},
	}
	for _, tt := range tests {
		got := tt.layout.Key(tt.level, tt.min, tt.max)
		if got != tt.want {
			t.Errorf("got key %q, want %q", got, tt.want)
		}
		f, ok := tt.layout.ParseKey(got)
		if want := (ltx.FileInfo{Level: tt.level, Min: tt.min, Max: tt.max}); !ok || f != want {
			t.Errorf("parsed %q as %+v, %v; want %+v", got, f, ok, want)
		}
	}
}

func TestForeignNamesAreNoKeys(t *testing.T) {
	const name = "0000000000000001-0000000000000002.ltx"
	tests := map[replica.Layout][]string{
		replica.LayoutDir: {
			"", "ltx/0/", name, "ltx/" + name, "0/" + name, "0000/" + name, "ltx/00/" + name,
			"ltx/10/" + name, "ltx/-1/" + name, "ltx/+1/" + name, "ltx/a/" + name, "ltx/0/x/" + name,
			"ltx//" + name, "ltx/0/" + name + ".tmp", "ltx/0/" + name[1:], "ltx/0/0" + name,
			"ltx/0/0000000000000000-0000000000000002.ltx", "ltx/0/0000000000000003-0000000000000002.ltx",
			"ltx/0/" + strings.ReplaceAll(name, "2", "A"), "ltx/0/" + strings.ReplaceAll(name, "-", "_"),
			"ltx/0/+000000000000001-0000000000000002.ltx", "ltx/0/0x00000000000001-0000000000000002.ltx",
			"ltx/0/000000000_000001-0000000000000002.ltx", "lease.json", "../ltx/0/" + name,
		},
		replica.LayoutObject: {
			name, "ltx/0/" + name, "0/" + name, "000/" + name, "000a/" + name, "00000/" + name,
			"0010/" + name, "0000/0000/" + name, "db/0000/" + name, "/0000/" + name, "0000/" + name + "/",
		},
	}
	for layout, keys := range tests {
		for _, key := range keys {
			if f, ok := layout.ParseKey(key); ok {
				t.Errorf("layout %d: %q was taken for %+v", layout, key, f)
			}
		}
	}
}

func FuzzParseKeyAcceptsOnlyWhatKeyMakes(f *testing.F) {
	f.Add("0000/0000000000000001-0000000000000001.ltx")
	f.Add("ltx/9/0000000000000001-00000000000000ff.ltx")
	f.Add("ltx/0/0000000000000001-000000000000000.ltx")
	f.Fuzz(func(t *testing.T, key string) {
		for _, layout := range []replica.Layout{replica.LayoutDir, replica.LayoutObject} {
			info, ok := layout.ParseKey(key)
			if ok && layout.Key(info.Level, info.Min, info.Max) != key {
				t.Errorf("%q was taken for %+v", key, info)
			}
		}
	})
}
