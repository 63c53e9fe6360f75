package s3_test

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"golang.org/x/sync/errgroup"

	"github.com/tidemark-io/tidemark/internal/testbucket"
	"github.com/tidemark-io/tidemark/storage"
)

func TestOneBytePerConnectionIsGivenUp(t *testing.T) {
	b, p := faulty(t, "p")
	store(t, b, "a", strings.Repeat("x", 16))
	p.CutBodies(1)
	_, err := load(t, b, "a")
	if err == nil || !strings.Contains(err.Error(), "/p/a at byte 6") {
		t.Errorf("got %v, want an error that names the object and where it broke", err)
	}
	if got := p.Requests("GET"); got != 6 {
		t.Errorf("%d requests, want 6", got)
	}
}

func TestBodyThatBreaksButProgressesIsReadToItsEnd(t *testing.T) {
	b, p := faulty(t, "p")
	content := strings.Repeat("0123456789abcdef", 1<<16) // 1 MiB
	store(t, b, "a", content)
	p.CutBodies(64 << 10)
	if got, err := load(t, b, "a"); err != nil || got != content {
		t.Errorf("got %d bytes, %v", len(got), err)
	}
	body, object, err := b.Get(t.Context(), "a", storage.Range{Offset: 100_000, Length: 200_000})
	if err != nil {
		t.Fatal(err)
	}
	defer body.Close()
	part, err := io.ReadAll(body)
	if err != nil || string(part) != content[100_000:300_000] || object.Size != 1<<20 {
		t.Errorf("part: got %d bytes of %d, %v", len(part), object.Size, err)
	}
}

func TestSilentConnectionIsReplaced(t *testing.T) {
	p := testbucket.NewProxy(t, testbucket.Gateway(t).Endpoint())
	b := open(t, p.URL("p")+"&idle-timeout=150ms")
	content := strings.Repeat("x", 30_000)
	store(t, b, "a", content)
	p.StallBodies(10_000)
	if got, err := load(t, b, "a"); err != nil || got != content {
		t.Errorf("got %d bytes, %v", len(got), err)
	}
	p.Heal()
	p.Inject(hangReply(2, http.MethodPut))
	store(t, b, "b", "content")
	p.Heal()
	if got, err := load(t, b, "b"); got != "content" || err != nil {
		t.Errorf("got %q, %v", got, err)
	}
}

// hangReply lets the server carry out the next n requests with a method, and
// never answers them.
func hangReply(n int, method string) testbucket.Middleware {
	var hung atomic.Int32
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Method != method || int(hung.Add(1)) > n {
				next.ServeHTTP(w, r)
				return
			}
			_, _ = io.Copy(io.Discard, r.Body)
			<-r.Context().Done()
		})
	}
}

func TestObjectThatChangesUnderTheReaderIsAnError(t *testing.T) {
	b, p := faulty(t, "p")
	store(t, b, "a", strings.Repeat("o", 200_000))
	p.CutBodies(100_000)
	body, _, err := b.Get(t.Context(), "a", storage.Range{})
	if err != nil {
		t.Fatal(err)
	}
	defer body.Close()
	store(t, b, "a", strings.Repeat("n", 200_000))
	got, err := io.ReadAll(body)
	if err == nil || !strings.Contains(err.Error(), "changed while it was read") || errors.Is(err, storage.ErrPrecondition) {
		t.Errorf("got %d bytes, %v", len(got), err)
	}
}

func TestLongOutageUsesUpNoBudget(t *testing.T) {
	b, p := faulty(t, "p")
	p.Drop()
	var group errgroup.Group
	for range 40 {
		group.Go(func() error {
			if _, err := b.Put(t.Context(), "a", strings.NewReader("x"), storage.Condition{}); err == nil {
				return errors.New("put succeeded over dropped connections")
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
	if got := p.Requests("PUT"); got < 150 {
		t.Errorf("%d attempts for 40 calls: it stopped trying", got)
	}
	p.Heal()
	p.DropNext(3)
	store(t, b, "a", "x")
}

func TestSingleFailuresAreRepeated(t *testing.T) {
	b, p := faulty(t, "p")
	for _, code := range []int{500, 502, 503, 504, 429} {
		p.StatusNext(1, code)
		store(t, b, "a", "content")
		p.StatusNext(1, code)
		if got, err := load(t, b, "a"); got != "content" || err != nil {
			t.Errorf("%d: got %q, %v", code, got, err)
		}
	}
	p.LoseReplies(1)
	store(t, b, "lost", "content")
}

func TestServerThatComesBackIsUsedAgain(t *testing.T) {
	gateway := testbucket.Gateway(t)
	b := open(t, gateway.URL("p"))
	store(t, b, "a", "1")
	gateway.Kill()
	if _, err := b.Put(t.Context(), "a", strings.NewReader("2"), storage.Condition{}); err == nil {
		t.Error("put succeeded without a server")
	}
	for _, err := range b.List(t.Context(), "", "") {
		if err == nil {
			t.Error("list succeeded without a server")
		}
	}
	gateway.Start()
	store(t, b, "a", "3")
}

func TestConnectionsAreReused(t *testing.T) {
	b, p := faulty(t, "p")
	for range 30 {
		store(t, b, "a", strings.Repeat("x", 100_000))
		if _, err := load(t, b, "a"); err != nil {
			t.Fatal(err)
		}
	}
	if got := p.Connections(); got > 2 {
		t.Errorf("%d connections for 60 requests in a row", got)
	}
}
