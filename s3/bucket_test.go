package s3_test

import (
	"fmt"
	"io"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tidemark-io/tidemark/internal/testbucket"
	"github.com/tidemark-io/tidemark/s3"
	"github.com/tidemark-io/tidemark/storage"
	"github.com/tidemark-io/tidemark/storage/storagetest"
)

// environment is the test's alone: nothing of whoever runs it counts.
func environment(t testing.TB) {
	t.Helper()
	for _, setting := range append(testbucket.Env(), "AWS_REGION=", "AWS_DEFAULT_REGION=", "AWS_ENDPOINT_URL=", "AWS_ENDPOINT_URL_S3=", "AWS_CA_BUNDLE=") {
		name, value, _ := strings.Cut(setting, "=")
		t.Setenv(name, value)
	}
}

// open is a bucket with the test's credentials that gives up after four
// attempts.
func open(t testing.TB, url string) *s3.Bucket {
	t.Helper()
	return openFor(t, url, s3.Retry{For: time.Nanosecond})
}

// openFor is open with another patience.
func openFor(t testing.TB, url string, retry s3.Retry) *s3.Bucket {
	t.Helper()
	environment(t)
	config, err := s3.ParseURL(url)
	if err != nil {
		t.Fatal(err)
	}
	config.Retry = retry
	b, err := s3.Open(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// faulty is a bucket behind a proxy.
func faulty(t testing.TB, prefix string) (*s3.Bucket, *testbucket.Proxy) {
	t.Helper()
	p := testbucket.NewProxy(t, testbucket.Gateway(t).Endpoint())
	return open(t, p.URL(prefix)), p
}

func store(t testing.TB, b storage.Bucket, key, content string) storage.Object {
	t.Helper()
	object, err := b.Put(t.Context(), key, strings.NewReader(content), storage.Condition{})
	if err != nil {
		t.Fatal(err)
	}
	return object
}

func load(t testing.TB, b storage.Bucket, key string) (string, error) {
	t.Helper()
	body, _, err := b.Get(t.Context(), key, storage.Range{})
	if err != nil {
		return "", err
	}
	defer body.Close()
	content, err := io.ReadAll(body)
	return string(content), err
}

func TestBucketKeepsTheContract(t *testing.T) {
	gateway := testbucket.Gateway(t)
	var n atomic.Int32
	storagetest.Suite(t, func(t *testing.T) storage.Bucket {
		return open(t, gateway.URL(fmt.Sprintf("suite/%d", n.Add(1))))
	})
}

func TestPartsOfASharedBucketKeepTheContract(t *testing.T) {
	shared := open(t, testbucket.Gateway(t).URL("suite"))
	var n atomic.Int32
	storagetest.Suite(t, func(*testing.T) storage.Bucket {
		return storage.Under(shared, fmt.Sprintf("part/%d", n.Add(1)))
	})
}

func TestBucketWithoutPrefixIsTheWholeBucket(t *testing.T) {
	b := open(t, testbucket.Gateway(t).URL(""))
	store(t, b, "a/b", "content")
	if got, err := load(t, b, "a/b"); got != "content" || err != nil {
		t.Errorf("get: %q, %v", got, err)
	}
	for _, prefix := range []string{"", "a", "a/"} {
		var got []string
		for object, err := range b.List(t.Context(), prefix, "") {
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, object.Key)
		}
		if len(got) != 1 || got[0] != "a/b" {
			t.Errorf("list %q: got %q", prefix, got)
		}
	}
	if b.String() != "s3://"+testbucket.Bucket {
		t.Errorf("name: %s", b)
	}
}
