package leaser_test

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-io/tidemark/leaser"
	"github.com/tidemark-io/tidemark/storage"
)

func openNode(t *testing.T, dir, name string) *leaser.Node {
	t.Helper()
	n, err := leaser.OpenNode(dir, name)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { n.Close() })
	return n
}

func TestANodeKeepsItsIdentity(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state", "node")
	first := openNode(t, dir, "a")
	if _, err := leaser.OpenNode(dir, "a"); !errors.Is(err, leaser.ErrNodeLocked) {
		t.Errorf("second process: %v", err)
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	second := openNode(t, dir, "a")
	if first.Owner != second.Owner || !strings.HasPrefix(first.Owner, "a/") || len(first.Owner) < 20 {
		t.Errorf("owners %q and %q", first.Owner, second.Owner)
	}
	if first.BootID == "" || first.BootID != second.BootID {
		t.Errorf("boot ids %q and %q", first.BootID, second.BootID)
	}
	info, err := os.Stat(filepath.Join(dir, "node.json"))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("node.json: %v, %v", info, err)
	}
}

func TestACopyOfANodeIsAnotherPlace(t *testing.T) {
	one, two := t.TempDir(), t.TempDir()
	first := openNode(t, one, "a")
	content, err := os.ReadFile(filepath.Join(one, "node.json"))
	if err == nil {
		err = os.WriteFile(filepath.Join(two, "node.json"), content, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	if second := openNode(t, two, "a"); second.Owner != first.Owner || second.BootID == first.BootID {
		t.Errorf("owner %q and %q, boot id %q and %q", first.Owner, second.Owner, first.BootID, second.BootID)
	}
}

func TestATornNodeFileIsReplaced(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "node.json")
	if err := os.WriteFile(path, []byte(`{"id":"x`), 0o600); err != nil {
		t.Fatal(err)
	}
	openNode(t, dir, "a")
	content, err := os.ReadFile(path)
	if err != nil || !json.Valid(content) {
		t.Errorf("node.json: %q, %v", content, err)
	}
}

func TestBadNodesAreRefused(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct{ dir, name string }{{t.TempDir(), ""}, {t.TempDir(), strings.Repeat("n", 201)}, {file, "a"}} {
		if n, err := leaser.OpenNode(test.dir, test.name); err == nil {
			t.Errorf("%+v: got %+v", test, n)
		}
	}
}

func TestARestartedProcessTakesItsLeaseBackAtOnce(t *testing.T) {
	bubble(t, func(t *testing.T, b storage.Bucket) {
		a := prepare(t, b, "a").start()
		pass(5 * time.Second)
		a.kill()
		began := time.Now()
		again := inDirectory(t, b, "a", a.dir).start()
		defer stopAll(again)
		pass(30 * time.Second)
		between(t, "take-over", again.when("primary").Sub(began), 0, 100*time.Millisecond)
		if g := again.term().Generation(); g != 2 {
			t.Errorf("generation %d, want 2", g)
		}
	})
}

func TestACopyOfTheHolderWaitsLikeEverybody(t *testing.T) {
	bubble(t, func(t *testing.T, b storage.Bucket) {
		a := prepare(t, b, "a").start()
		defer stopAll(a)
		pass(5 * time.Second)
		dir := t.TempDir()
		content, err := os.ReadFile(filepath.Join(a.dir, "node.json"))
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, "node.json"), content, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
		twin := inDirectory(t, b, "a", dir).start()
		defer stopAll(twin)
		pass(time.Minute)
		if twin.count("primary") != 0 || a.count("primary") != 1 {
			t.Errorf("terms: %d of the copy, %d of the original", twin.count("primary"), a.count("primary"))
		}
	})
}
