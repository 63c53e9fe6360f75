package testbucket_test

import (
	"errors"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/tidemark-io/tidemark/internal/testbucket"
)

func request(t *testing.T, method, url, body string) (int, error) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	reply, err := http.DefaultClient.Do(r)
	if err != nil {
		return 0, err
	}
	defer reply.Body.Close()
	_, err = io.Copy(io.Discard, reply.Body)
	return reply.StatusCode, err
}

func TestGatewayKeepsItsAddressOverRestarts(t *testing.T) {
	s := testbucket.Gateway(t)
	endpoint := s.Endpoint()
	for _, end := range []func(){s.Stop, s.Kill} {
		if code, err := request(t, "GET", endpoint, ""); err != nil || code != http.StatusForbidden {
			t.Fatalf("running: got %d, %v; want 403 without a signature", code, err)
		}
		end()
		http.DefaultClient.CloseIdleConnections()
		if code, err := request(t, "GET", endpoint, ""); err == nil {
			t.Fatalf("stopped: got %d", code)
		}
		s.Start()
	}
	if s.Endpoint() != endpoint {
		t.Errorf("endpoint moved from %s to %s", endpoint, s.Endpoint())
	}
}

func TestProxyDropsAndAnswersAsTold(t *testing.T) {
	p := testbucket.NewProxy(t, testbucket.Gateway(t).Endpoint())
	p.DropNext(1)
	if _, err := request(t, "POST", p.Endpoint(), "x"); !errors.Is(err, syscall.ECONNRESET) && !errors.Is(err, io.EOF) {
		t.Errorf("dropped: got %v", err)
	}
	p.StatusNext(1, http.StatusTeapot)
	for _, want := range []int{http.StatusTeapot, http.StatusForbidden} {
		if code, err := request(t, "GET", p.Endpoint(), ""); err != nil || code != want {
			t.Errorf("got %d, %v; want %d", code, err, want)
		}
	}
	p.Drop()
	if code, err := request(t, "POST", p.Endpoint(), ""); err == nil {
		t.Errorf("dropped: got %d", code)
	}
	p.Heal()
	if code, err := request(t, "GET", p.Endpoint(), ""); err != nil || code != http.StatusForbidden {
		t.Errorf("healed: got %d, %v", code, err)
	}
	if p.Requests("GET") != 3 || p.Requests("POST") != 2 || p.Requests("") != 5 {
		t.Errorf("counted %d GET, %d POST of %d", p.Requests("GET"), p.Requests("POST"), p.Requests(""))
	}
}

func TestObjectsAreFilesInTheRoot(t *testing.T) {
	s := testbucket.Gateway(t)
	if info, err := os.Stat(s.Root()); err != nil || !info.IsDir() || filepath.Base(s.Root()) != testbucket.Bucket {
		t.Errorf("root %s: %v", s.Root(), err)
	}
}
