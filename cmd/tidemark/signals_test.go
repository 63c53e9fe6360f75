package main

import (
	"context"
	"os"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sync/errgroup"
)

func TestOnlyALaterOrAnotherSignalEndsAtOnce(t *testing.T) {
	for _, test := range []struct {
		name   string
		first  os.Signal
		after  time.Duration
		second os.Signal
		aborts bool
	}{
		{"the same at once", syscall.SIGTERM, 0, syscall.SIGTERM, false},
		{"the same soon", syscall.SIGINT, repeat - 1, syscall.SIGINT, false},
		{"the same later", syscall.SIGTERM, repeat, syscall.SIGTERM, true},
		{"another at once", syscall.SIGTERM, 0, syscall.SIGINT, true},
		{"one that stops nothing", syscall.SIGTERM, time.Second, syscall.SIGHUP, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				soft, stop := context.WithCancelCause(t.Context())
				hard, abort := context.WithCancelCause(t.Context())
				defer stop(nil)
				defer abort(nil)
				s := &signals{received: make(chan os.Signal, 8), child: make(chan os.Signal, 8), stop: stop, abort: abort}
				done := make(chan struct{})
				var group errgroup.Group
				group.Go(func() error { return s.Run(done) })
				s.received <- test.first
				<-soft.Done()
				<-time.After(test.after)
				s.received <- test.second
				synctest.Wait()
				if aborted := hard.Err() != nil; aborted != test.aborts {
					t.Errorf("ended at once: %v, want %v", aborted, test.aborts)
				}
				close(done)
				if err := group.Wait(); err != nil {
					t.Error(err)
				}
			})
		})
	}
}
