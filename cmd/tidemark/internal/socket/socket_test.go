package socket_test

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"golang.org/x/sync/errgroup"

	"github.com/tidemark-io/tidemark/cmd/tidemark/internal/socket"
)

// shortDir is a directory whose path leaves room for a socket's name.
func shortDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "tm")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

func listen(t *testing.T, path string) *socket.Listener {
	t.Helper()
	l, err := socket.Listen(path, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l
}

// leaveDead makes a socket nobody listens on.
func leaveDead(t *testing.T, path string) {
	t.Helper()
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	l.SetUnlinkOnClose(false)
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestSocketIsForItsOwnerAloneAndGoesWithItsProcess(t *testing.T) {
	path := filepath.Join(shortDir(t), "run", "a.sock")
	l := listen(t, path)
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 || info.Mode().Type() != fs.ModeSocket {
		t.Fatalf("got %v, %v", info.Mode(), err)
	}
	dir, err := os.Stat(filepath.Dir(path))
	if err != nil || dir.Mode().Perm() != 0o700 {
		t.Fatalf("directory: got %v, %v", dir.Mode(), err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir(filepath.Dir(path))
	if err != nil || len(entries) != 0 {
		t.Fatalf("left behind: %v, %v", entries, err)
	}
}

func TestLiveSocketIsNeverTaken(t *testing.T) {
	path := filepath.Join(shortDir(t), "a.sock")
	first := listen(t, path)
	ctx, cancel := context.WithCancel(t.Context())
	var group errgroup.Group
	group.Go(func() error {
		return socket.Serve(ctx, first, answer(map[string]int{"pid": 4711}), slog.New(slog.DiscardHandler))
	})

	_, err := socket.Listen(path, 0o600)
	if !errors.Is(err, socket.ErrInUse) || !strings.Contains(err.Error(), "process 4711") {
		t.Fatalf("got %v, want ErrInUse that names process 4711", err)
	}
	var reply map[string]int
	if err := socket.Get(t.Context(), path, "/status", &reply); err != nil || reply["pid"] != 4711 {
		t.Fatalf("first one after the attempt: %v, %v", reply, err)
	}
	cancel()
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
}

func TestDeadSocketIsReplaced(t *testing.T) {
	path := filepath.Join(shortDir(t), "a.sock")
	leaveDead(t, path)
	listen(t, path)
	conn, err := net.Dial("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	conn.Close()
}

func TestOneOfManyRacingForADeadSocketWins(t *testing.T) {
	path := filepath.Join(shortDir(t), "a.sock")
	leaveDead(t, path)
	var won atomic.Int32
	var group errgroup.Group
	for range 8 {
		group.Go(func() error {
			l, err := socket.Listen(path, 0o600)
			if err != nil {
				return nil
			}
			t.Cleanup(func() { l.Close() })
			won.Add(1)
			return nil
		})
	}
	if err := group.Wait(); err != nil || won.Load() != 1 {
		t.Fatalf("got %d winners, want 1", won.Load())
	}
}

func TestOtherFilesAreLeftAlone(t *testing.T) {
	path := filepath.Join(shortDir(t), "a.sock")
	if err := os.WriteFile(path, []byte("precious"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := socket.Listen(path, 0o600); err == nil {
		t.Fatal("a plain file was taken for a socket")
	}
	if b, err := os.ReadFile(path); err != nil || string(b) != "precious" {
		t.Fatalf("got %q, %v", b, err)
	}
}

func TestCloseLeavesTheSocketOfASuccessor(t *testing.T) {
	path := filepath.Join(shortDir(t), "a.sock")
	first := listen(t, path)
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	listen(t, path)
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Lstat(path); err != nil {
		t.Fatal(err)
	}
}

func TestPathThatDoesNotFitIsAnError(t *testing.T) {
	path := filepath.Join(shortDir(t), strings.Repeat("x", 120))
	if _, err := socket.Listen(path, 0o600); err == nil || !strings.Contains(err.Error(), "at most") {
		t.Fatalf("got %v", err)
	}
}

func TestFindSeesLiveSocketsOnly(t *testing.T) {
	t.Setenv("XDG_RUNTIME_DIR", shortDir(t))
	if live, err := socket.Find(); err != nil || live != nil {
		t.Fatalf("no directory: %v, %v", live, err)
	}
	if err := socket.MakeDefaultDir(); err != nil {
		t.Fatal(err)
	}
	leaveDead(t, filepath.Join(socket.DefaultDir(), "1.sock"))
	listen(t, socket.DefaultPath())
	live, err := socket.Find()
	if err != nil || len(live) != 1 || live[0] != socket.DefaultPath() {
		t.Fatalf("got %v, %v", live, err)
	}
}

func TestDirectoryOthersMayEnterIsRefused(t *testing.T) {
	t.Setenv("XDG_RUNTIME_DIR", shortDir(t))
	if err := os.Mkdir(socket.DefaultDir(), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(socket.DefaultDir(), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := socket.MakeDefaultDir(); err == nil {
		t.Fatal("mode 0755 was accepted")
	}
}

func answer(v any) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_ = json.NewEncoder(w).Encode(v)
	})
}
