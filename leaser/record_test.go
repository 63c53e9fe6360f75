package leaser_test

import (
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-io/tidemark/leaser"
	"github.com/tidemark-io/tidemark/storage"
)

func full() leaser.Record {
	return leaser.Record{
		Generation: 17, ExpiresAt: time.Date(2026, 11, 30, 4, 0, 0, 123456789, time.UTC), Owner: "node-a/6f0c",
		Nonce: "2f", Seq: 411, TTLMillis: 15000, State: leaser.Held, Cluster: "uuid", BootID: "boot",
		Head:  &leaser.Head{TXID: 0x2a, Chain: "cafe"},
		Names: leaser.Names{Fence: "0000000000000020", Advertise: "http://10.0.0.3:9090", Successor: "b", Request: "c", Leaving: true},
	}
}

func TestRecordsAreReadAsWritten(t *testing.T) {
	several := full()
	several.Head, several.Heads = nil, map[string]leaser.Head{"a": {TXID: 1, Chain: "x"}, "b": {TXID: 1 << 63}}
	for name, want := range map[string]leaser.Record{"one": full(), "several": several, "least": {Generation: 1}} {
		text, err := json.Marshal(want)
		if err != nil {
			t.Fatal(err)
		}
		got, err := leaser.ParseRecord(text)
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: got %+v, %v from %s", name, got, err, text)
		}
	}
	if heads := full().AllHeads(); heads[""].TXID != 42 || len(several.AllHeads()) != 2 {
		t.Errorf("heads %v and %v", heads, several.AllHeads())
	}
}

func TestTheFieldsOfOthersAreKept(t *testing.T) {
	const text = `{"generation":17,"expires_at":"2026-11-30T04:00:00.5Z","owner":"node-a/6f0c","nonce":"2f","seq":411,"ttl_ms":15000,
		"state":"held","cluster":"uuid","head":{"txid":"000000000000002a","chain":"c"},"fence":"0000000000000020","advertise":"http://a",
		"successor":"","later":{"field":[1,2,{}]}}`
	r, err := leaser.ParseRecord([]byte(text))
	if err != nil || r.Generation != 17 || r.Head.TXID != 42 || r.TTL() != 15*time.Second || r.Advertise != "http://a" {
		t.Errorf("got %+v, %v", r, err)
	}
}

func TestBadRecordsAreUnreadable(t *testing.T) {
	for _, text := range []string{
		"", "null", "[]", "{}", `"lock"`, "{", `{"generation":1}{"generation":2}`, `{"generation":1} x`,
		`{"generation":0}`, `{"generation":-1}`, `{"generation":4294967296}`, `{"generation":1.5}`, `{"generation":"1"}`,
		`{"generation":1,"state":"gone"}`, `{"generation":1,"ttl_ms":-1}`, `{"generation":1,"expires_at":"tomorrow"}`,
		`{"generation":1,"head":{"txid":"2a"}}`, `{"generation":1,"head":{"txid":"000000000000002A"}}`,
		`{"generation":1,"owner":"` + strings.Repeat("x", 300<<10) + `"}`,
	} {
		if r, err := leaser.ParseRecord([]byte(text)); !errors.Is(err, leaser.ErrUnreadable) {
			t.Errorf("%.60s: got %+v, %v", text, r, err)
		}
	}
}

func TestReadAndBreakOfWhatIsNoLock(t *testing.T) {
	b := newBucket(t)
	if _, _, err := leaser.Read(t.Context(), b); !errors.Is(err, storage.ErrNotFound) {
		t.Errorf("read of nothing: %v", err)
	}
	if err := leaser.Break(t.Context(), b, "etag", "me"); !errors.Is(err, storage.ErrNotFound) {
		t.Errorf("break of nothing: %v", err)
	}
	meddle(t, b, "garbage")
	_, etag, err := leaser.Read(t.Context(), b)
	if !errors.Is(err, leaser.ErrUnreadable) || etag == "" {
		t.Errorf("read of garbage: %q, %v", etag, err)
	}
	if err := leaser.Break(t.Context(), b, etag, "me"); err != nil {
		t.Fatal(err)
	}
	if r := lock(t, b); r.State != leaser.Released || !strings.Contains(r.Owner, "me") {
		t.Errorf("the lock is %s", describe(r))
	}
}

func FuzzParseRecord(f *testing.F) {
	text, err := json.Marshal(full())
	if err != nil {
		f.Fatal(err)
	}
	f.Add(text)
	f.Add([]byte(`{"generation":1,"heads":{"a":{"txid":"0000000000000001","chain":""}}}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		r, err := leaser.ParseRecord(text)
		if err != nil {
			if !errors.Is(err, leaser.ErrUnreadable) {
				t.Errorf("got %v", err)
			}
			return
		}
		if r.Generation == 0 || r.TTL() < 0 || r.TTL() > 24*time.Hour {
			t.Errorf("got %+v", r)
		}
		again, err := json.Marshal(r)
		if err != nil {
			return // a year that JSON cannot write
		}
		if second, err := leaser.ParseRecord(again); err == nil && second.Nonce != r.Nonce {
			t.Errorf("nonce %q became %q", r.Nonce, second.Nonce)
		}
	})
}
