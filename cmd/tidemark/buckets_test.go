package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"runtime"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sync/errgroup"

	"github.com/tidemark-io/tidemark/internal/testbucket"
)

// onGateway sets the environment that clients of a gateway need.
func onGateway(t *testing.T) {
	t.Helper()
	for _, setting := range testbucket.Env() {
		name, value, _ := strings.Cut(setting, "=")
		t.Setenv(name, value)
	}
}

func placeOf(t *testing.T, url string) location {
	t.Helper()
	d, err := singleDatabase("/db", url)
	if err != nil {
		t.Fatal(err)
	}
	place, err := d.Replica.locate()
	if err != nil {
		t.Fatal(err)
	}
	return place
}

func remoteAt(t *testing.T, b *buckets, url string) *remote {
	t.Helper()
	r, err := b.remote(t.Context(), placeOf(t, url), b.log)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func quietBuckets() *buckets {
	return newBuckets(newMetrics(0), slog.New(slog.DiscardHandler))
}

func TestPlacesThatDifferByPrefixShareABucket(t *testing.T) {
	onGateway(t)
	b := quietBuckets()
	const base = "s3://bucket/lake/%s?region=us-east-1&endpoint=http://127.0.0.1:1"
	first := remoteAt(t, b, fmt.Sprintf(base, "a"))
	for _, c := range []struct {
		url    string
		shares bool
	}{
		{fmt.Sprintf(base, "b"), true},
		{fmt.Sprintf(base, "a/deeper"), true},
		{fmt.Sprintf(base, ""), true},
		{fmt.Sprintf(base, "b") + "&part-size=16MiB", true},
		{fmt.Sprintf(base, "b") + "&part-size=17MiB", false},
		{fmt.Sprintf(base, "b") + "&force-path-style=true", false},
		{strings.Replace(fmt.Sprintf(base, "b"), "us-east-1", "eu-west-1", 1), false},
		{strings.Replace(fmt.Sprintf(base, "b"), ":1", ":2", 1), false},
		{strings.Replace(fmt.Sprintf(base, "b"), "//bucket", "//other-bucket", 1), false},
		{"file:///backup", false},
	} {
		if r := remoteAt(t, b, c.url); (r.shared == first.shared) != c.shares {
			t.Errorf("%s: shares the bucket: %t, want %t", c.url, r.shared == first.shared, c.shares)
		}
	}
	if n := len(b.shared); n != 6 {
		t.Errorf("%d buckets, want 6", n)
	}
}

func TestManyReplicasCostNoGoroutineAndNoConnection(t *testing.T) {
	onGateway(t)
	p := testbucket.NewProxy(t, testbucket.Gateway(t).Endpoint())
	b := quietBuckets()
	before := runtime.NumGoroutine()
	var all []*remote
	for i := range 10_000 {
		all = append(all, remoteAt(t, b, p.URL(fmt.Sprint("lake/", i))))
	}
	if n := runtime.NumGoroutine(); n > before {
		t.Errorf("%d goroutines more", n-before)
	}
	for _, r := range all[:50] {
		if _, err := r.askTip(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if n := p.Connections(); n != 1 {
		t.Errorf("%d connections for requests one after the other, want 1", n)
	}
	if n := p.Requests(""); n != 50 {
		t.Errorf("%d requests, want one listing each", n)
	}
}

func TestConnectionsOfAnIdleBucketAreClosed(t *testing.T) {
	onGateway(t)
	gateway := testbucket.Gateway(t)
	before := runtime.NumGoroutine()
	b := quietBuckets()
	var group errgroup.Group
	for i := range 20 {
		r := remoteAt(t, b, gateway.URL(fmt.Sprint("lake/", i))+"&idle-timeout=200ms")
		group.Go(func() error {
			_, err := r.askTip(t.Context())
			return err
		})
	}
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
	err := poll(func() error {
		if n := runtime.NumGoroutine(); n > before {
			return fmt.Errorf("%d goroutines more than before", n-before)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

func TestABucketIsCleanedOnceItAnswered(t *testing.T) {
	onGateway(t)
	p := testbucket.NewProxy(t, testbucket.Gateway(t).Endpoint())
	b := quietBuckets()
	one, two := remoteAt(t, b, p.URL("lake/one")), remoteAt(t, b, p.URL("lake/two"))
	tenants := Database{Dir: "/data", Pattern: "*.db", Replica: Replica{Type: typeS3, S3: one.place.s3}}
	tenants.Replica.S3.Prefix = "lake/tenants"
	for i := range 100 {
		d, err := tenants.member(fmt.Sprint(i, ".db"))
		if err != nil {
			t.Fatal(err)
		}
		place, err := d.Replica.locate()
		if err != nil {
			t.Fatal(err)
		}
		if r, err := b.remote(t.Context(), place, b.log); err != nil || !strings.HasSuffix(r.replica.String(), fmt.Sprintf("/lake/tenants/%d.db", i)) {
			t.Fatalf("got %v, %v", r, err)
		}
	}
	if got := slices.Sorted(maps.Keys(one.shared.prefixes)); !slices.Equal(got, []string{"lake/one", "lake/tenants", "lake/two"}) {
		t.Errorf("prefixes of ours are %q", got)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var group errgroup.Group
	group.Go(func() error { return b.Run(ctx) })
	for _, r := range []*remote{one, two, one} {
		if _, err := r.askTip(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	err := poll(func() error {
		if n := p.Requests(""); n < 4 {
			return fmt.Errorf("%d requests, want three listings and one of uploads", n)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
	cancel()
	if err := group.Wait(); !errors.Is(err, context.Canceled) {
		t.Errorf("run returned %v", err)
	}
	if n := p.Requests(""); n != 4 {
		t.Errorf("%d requests, want 4", n)
	}
}
