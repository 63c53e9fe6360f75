package quarantine_test

import (
	"errors"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/tidemark-io/tidemark/quarantine"
	"github.com/tidemark-io/tidemark/storage"
	"github.com/tidemark-io/tidemark/storage/storagetest"
)

const prefix = "db.quarantine/a"

func bucket(t *testing.T) *storagetest.Faulty {
	t.Helper()
	b, err := storage.NewDir(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return storagetest.NewFaulty(b)
}

// keys lists the bucket.
func keys(t *testing.T, b storage.Bucket) string {
	t.Helper()
	var all []string
	for o, err := range b.List(t.Context(), "", "") {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, o.Key)
	}
	return strings.Join(all, " ")
}

// whole fails unless everything of the entry is in the bucket.
func whole(t *testing.T, b storage.Bucket, e quarantine.Entry) {
	t.Helper()
	base := prefix + "/" + e.ID + "/"
	want := base + "database.db " + base + "ltx/0-0000000000000002-0000000000000002.ltx " + base + "manifest.json"
	if got := keys(t, b); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	body, _, err := b.Get(t.Context(), base+"database.db", storage.Range{})
	if err != nil {
		t.Fatal(err)
	}
	defer body.Close()
	got, err := io.ReadAll(body)
	if err != nil {
		t.Fatal(err)
	}
	if want, err := os.ReadFile(e.Database()); err != nil || string(got) != string(want) {
		t.Errorf("the object is not the file: %v", err)
	}
}

func TestAnUploadIsDoneOnce(t *testing.T) {
	p := newPlace(t, table, more)
	b := bucket(t)
	if err := quarantine.Upload(t.Context(), b, prefix, p.set()); err != nil {
		t.Fatal(err)
	}
	e := p.list(1)[0]
	whole(t, b, e)
	if e.Uploaded.At.IsZero() || e.Uploaded.URL != b.String()+"/"+prefix+"/"+e.ID || e.Problem != "" {
		t.Errorf("got %+v, %s", e.Uploaded, e.Problem)
	}
	calls := b.Calls(storagetest.List) + b.Calls(storagetest.Put) + b.Calls(storagetest.Get)
	if err := quarantine.Upload(t.Context(), b, prefix, e); err != nil {
		t.Fatal(err)
	}
	if now := b.Calls(storagetest.List) + b.Calls(storagetest.Put) + b.Calls(storagetest.Get); now != calls {
		t.Errorf("%d more requests", now-calls)
	}
}

func TestAnUploadGoesOnAfterEachFault(t *testing.T) {
	for _, fault := range []storagetest.Fault{
		{Op: storagetest.Put, Keys: "*/*/*/manifest.json", Times: 1},
		{Op: storagetest.Put, Keys: "*/*/*/database.db", Times: 1},
		{Op: storagetest.Put, Times: 1, Effect: storagetest.LoseReply},
		{Op: storagetest.Put, Keys: "*/*/*/manifest.json", Times: 1, Effect: storagetest.LoseReply},
		{Op: storagetest.List, Times: 1},
	} {
		p := newPlace(t, table, more)
		e, b := p.set(), bucket(t)
		b.Inject(fault)
		if err := quarantine.Upload(t.Context(), b, prefix, e); err == nil {
			t.Errorf("%+v: no error", fault)
		}
		if e := p.list(1)[0]; !e.Uploaded.At.IsZero() {
			t.Errorf("%+v: it is noted as done", fault)
		}
		b.Heal()
		if err := quarantine.Upload(t.Context(), b, prefix, e); err != nil {
			t.Errorf("%+v: %v", fault, err)
		}
		whole(t, b, e)
	}
}

func TestAnUploadReplacesNothing(t *testing.T) {
	for _, name := range []string{"manifest.json", "database.db"} {
		p := newPlace(t, table, more)
		e, b := p.set(), bucket(t)
		key := prefix + "/" + e.ID + "/" + name
		if _, err := b.Put(t.Context(), key, strings.NewReader("x"), storage.Condition{}); err != nil {
			t.Fatal(err)
		}
		err := quarantine.Upload(t.Context(), b, prefix, e)
		if err == nil || !strings.Contains(err.Error(), key+" holds something else") {
			t.Errorf("got %v", err)
		}
	}
}

func TestWhatIsNotWhatWasSetAsideIsNotUploaded(t *testing.T) {
	p := newPlace(t, table, more)
	e, b := p.set(), bucket(t)
	content, err := os.ReadFile(e.Database())
	if err != nil {
		t.Fatal(err)
	}
	content[5000]++
	if err := os.WriteFile(e.Database(), content, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := quarantine.Upload(t.Context(), b, prefix, e); !errors.Is(err, quarantine.ErrDamaged) {
		t.Errorf("got %v", err)
	}
	if got := keys(t, b); got != "" {
		t.Errorf("%s was stored", got)
	}
}
