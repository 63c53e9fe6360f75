package testbucket_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-io/tidemark/internal/testbucket"
)

const listing = "<L><IsTruncated>false</IsTruncated><Contents>a</Contents><Contents>b</Contents><Contents>c</Contents></L>"

// before is a proxy in front of a server that answers everything with a text.
func before(t *testing.T, text string) *testbucket.Proxy {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, text) }))
	t.Cleanup(server.Close)
	return testbucket.NewProxy(t, server.URL)
}

func fetch(t *testing.T, url string) (int, string, error) {
	t.Helper()
	reply, err := http.Get(url)
	if err != nil {
		return 0, "", err
	}
	defer reply.Body.Close()
	body, err := io.ReadAll(reply.Body)
	return reply.StatusCode, string(body), err
}

func TestKindsAreToldApart(t *testing.T) {
	for request, want := range map[string]testbucket.Kind{
		"GET /b/k":                          testbucket.Get,
		"HEAD /b/k":                         testbucket.Head,
		"GET /b?list-type=2&prefix=":        testbucket.List,
		"GET /b?uploads":                    testbucket.Uploads,
		"PUT /b/k":                          testbucket.Put,
		"PUT /b/k?partNumber=1&uploadId=x":  testbucket.Part,
		"POST /b/k?uploads":                 testbucket.Begin,
		"POST /b/k?uploadId=x":              testbucket.Complete,
		"POST /b?delete":                    testbucket.DeleteBatch,
		"DELETE /b/k":                       testbucket.Delete,
		"DELETE /b/k?uploadId=x&x-id=Abort": testbucket.Abort,
	} {
		method, url, _ := strings.Cut(request, " ")
		if got := testbucket.KindOf(httptest.NewRequest(method, url, nil)); got != want {
			t.Errorf("%s: got %q, want %q", request, got, want)
		}
	}
}

func TestStormsStrikeOnlyWhatTheyAreMeantFor(t *testing.T) {
	p := before(t, "calm")
	p.Storm(409, "OperationAborted", testbucket.List)
	p.StormNext(1, 408, "", testbucket.Get)
	for _, c := range []struct {
		url, want string
		code      int
	}{{"/b?list-type=2", "OperationAborted", 409}, {"/b/k", "", 408}, {"/b/k", "calm", 200}, {"/b?uploads", "calm", 200}} {
		if code, body, err := fetch(t, p.Endpoint()+c.url); err != nil || code != c.code || !strings.Contains(body, c.want) {
			t.Errorf("%s: got %d %q, %v", c.url, code, body, err)
		}
	}
	p.Heal()
	strict := &testbucket.Strict{}
	p.Keep(strict.Middleware)
	p.Heal()
	if code, err := request(t, "GET", p.Endpoint(), ""); code != 200 || err != nil || len(strict.Refused()) > 0 {
		t.Errorf("got %d, %v, refused %q", code, err, strict.Refused())
	}
	p.Flaky(2, 500, "InternalError")
	var codes []int
	for range 4 {
		code, _, _ := fetch(t, p.Endpoint())
		codes = append(codes, code)
	}
	if codes[0] != 200 || codes[1] != 500 || codes[2] != 200 || codes[3] != 500 {
		t.Errorf("got %v", codes)
	}
}

func TestRepliesAreCutAndReplaced(t *testing.T) {
	p := before(t, "0123456789")
	p.Truncate(4)
	if code, body, err := fetch(t, p.Endpoint()); code != 200 || body != "0123" || err == nil {
		t.Errorf("truncated: %d %q, %v", code, body, err)
	}
	p.Heal()
	p.Shorten(4)
	if code, body, err := fetch(t, p.Endpoint()); code != 200 || body != "0123" || err != nil {
		t.Errorf("shortened: %d %q, %v", code, body, err)
	}
	p.Heal()
	p.Replace("other")
	if code, body, err := fetch(t, p.Endpoint()); code != 200 || body != "other" || err != nil {
		t.Errorf("replaced: %d %q, %v", code, body, err)
	}
}

func TestSilenceLastsUntilItIsHealed(t *testing.T) {
	p := before(t, "calm")
	for name, hang := range map[string]func(...testbucket.Kind){"replies": p.Hang, "bodies": func(...testbucket.Kind) { p.StallNext(1) }} {
		hang()
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		r, err := http.NewRequestWithContext(ctx, "PUT", p.Endpoint()+"/b/k", strings.NewReader(strings.Repeat("x", 1<<20)))
		if err != nil {
			t.Fatal(err)
		}
		if reply, err := http.DefaultClient.Do(r); err == nil {
			t.Errorf("%s: got %d", name, reply.StatusCode)
			reply.Body.Close()
		}
		cancel()
		p.Heal()
		if code, body, err := fetch(t, p.Endpoint()); code != 200 || body != "calm" || err != nil {
			t.Errorf("%s: healed: %d %q, %v", name, code, body, err)
		}
	}
}

func TestConnectionsAreCutBetweenRequests(t *testing.T) {
	p := before(t, "calm")
	p.Stutter()
	for range 3 {
		if code, body, err := fetch(t, p.Endpoint()); code != 200 || body != "calm" || err != nil {
			t.Errorf("stutter: %d %q, %v", code, body, err)
		}
	}
	p.Heal()
	before := p.Connections()
	for range 3 {
		if code, _, err := fetch(t, p.Endpoint()); code != 200 || err != nil {
			t.Errorf("cut: %d, %v", code, err)
		}
		p.CutIdle()
	}
	if n := p.Connections() - before; n < 2 {
		t.Errorf("%d new connections", n)
	}
}

func TestListingsComeInPages(t *testing.T) {
	p := before(t, listing)
	p.Paged(2, 0, nil)
	for url, want := range map[string]string{
		"/b?list-type=2":                      "<L><IsTruncated>true</IsTruncated><NextContinuationToken>2</NextContinuationToken><Contents>a</Contents><Contents>b</Contents></L>",
		"/b?list-type=2&continuation-token=2": "<L><IsTruncated>false</IsTruncated><Contents>c</Contents></L>",
		"/b/k":                                listing,
	} {
		if _, body, err := fetch(t, p.Endpoint()+url); err != nil || body != want {
			t.Errorf("%s: got %s, %v", url, body, err)
		}
	}
	p.Heal()
	p.Paged(2, 2, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) })
	if code, _, err := fetch(t, p.Endpoint()+"/b?list-type=2&continuation-token=2"); err != nil || code != http.StatusTeapot {
		t.Errorf("second page: %d, %v", code, err)
	}
}
