package storagetest_test

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tidemark-io/tidemark/storage"
	"github.com/tidemark-io/tidemark/storage/storagetest"
)

func newFaulty(t *testing.T) *storagetest.Faulty {
	t.Helper()
	dir, err := storage.NewDir(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return storagetest.NewFaulty(dir)
}

func put(b storage.Bucket, key string) error {
	_, err := b.Put(context.Background(), key, strings.NewReader("content"), storage.Condition{})
	return err
}

func get(b storage.Bucket, key string) (string, error) {
	body, _, err := b.Get(context.Background(), key, storage.Range{})
	if err != nil {
		return "", err
	}
	defer body.Close()
	content, err := io.ReadAll(body)
	return string(content), err
}

func TestFaultyKeepsTheContractInGoodWeather(t *testing.T) {
	storagetest.Suite(t, func(t *testing.T) storage.Bucket { return newFaulty(t) })
}

func TestFailNextStrikesSoManyCalls(t *testing.T) {
	f := newFaulty(t)
	f.FailNext(2)
	for i, want := range []error{storagetest.ErrInjected, storagetest.ErrInjected, nil} {
		if err := put(f, "a"); !errors.Is(err, want) {
			t.Errorf("call %d: got %v, want %v", i, err, want)
		}
	}
	if got := f.Calls(storagetest.Put); got != 3 {
		t.Errorf("counted %d puts, want 3", got)
	}
}

func TestFailKeysStrikesMatchingKeysUntilHeal(t *testing.T) {
	f := newFaulty(t)
	f.FailKeys("a/*")
	if err := put(f, "a/x"); !errors.Is(err, storagetest.ErrInjected) {
		t.Errorf("a/x: got %v", err)
	}
	if err := put(f, "b/x"); err != nil {
		t.Errorf("b/x: %v", err)
	}
	f.Heal()
	if err := put(f, "a/x"); err != nil {
		t.Errorf("a/x after heal: %v", err)
	}
}

func TestLostReplyStoresAllTheSame(t *testing.T) {
	f := newFaulty(t)
	f.Inject(storagetest.Fault{Op: storagetest.Put, Times: 1, Effect: storagetest.LoseReply})
	if err := put(f, "a"); !errors.Is(err, storagetest.ErrInjected) {
		t.Errorf("put: got %v", err)
	}
	if got, err := get(f, "a"); got != "content" || err != nil {
		t.Errorf("get: %q, %v", got, err)
	}
}

func TestCutBodyEndsInSilence(t *testing.T) {
	f := newFaulty(t)
	if err := put(f, "a"); err != nil {
		t.Fatal(err)
	}
	f.Inject(storagetest.Fault{Op: storagetest.Get, Effect: storagetest.CutBody, Bytes: 3})
	if got, err := get(f, "a"); got != "con" || err != nil {
		t.Errorf("get: %q, %v", got, err)
	}
}

func TestBrokenListYieldsTheErrorLast(t *testing.T) {
	f := newFaulty(t)
	for _, key := range []string{"a", "b", "c"} {
		if err := put(f, key); err != nil {
			t.Fatal(err)
		}
	}
	f.Inject(storagetest.Fault{Op: storagetest.List, Effect: storagetest.BreakList, Bytes: 2, Err: io.ErrUnexpectedEOF})
	var got []string
	var last error
	for object, err := range f.List(t.Context(), "", "") {
		if last = err; err == nil {
			got = append(got, object.Key)
		}
	}
	if strings.Join(got, "") != "ab" || !errors.Is(last, io.ErrUnexpectedEOF) {
		t.Errorf("got %v, %v", got, last)
	}
}

func TestLagAndHangObeyTheContext(t *testing.T) {
	f := newFaulty(t)
	synctest.Test(t, func(t *testing.T) {
		f.Inject(storagetest.Fault{Times: 1, Effect: storagetest.Lag, Delay: time.Minute},
			storagetest.Fault{Effect: storagetest.Hang})
		start := time.Now()
		if err := f.Delete(t.Context(), "a"); err != nil || time.Since(start) != time.Minute {
			t.Errorf("lag: %v after %v", err, time.Since(start))
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		if err := f.Delete(ctx, "a"); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("hang: got %v", err)
		}
	})
}
