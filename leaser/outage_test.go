package leaser_test

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tidemark-io/tidemark/leaser"
	"github.com/tidemark-io/tidemark/storage"
	"github.com/tidemark-io/tidemark/storage/storagetest"
)

// journal is a log that may be read while it is written.
type journal struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (j *journal) Write(line []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.text.Write(line)
}

func (j *journal) String() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.text.String()
}

func (m *machine) logged() *journal {
	j := &journal{}
	m.log = slog.New(slog.NewTextHandler(j, nil))
	return j
}

func TestWhyNoElectionHasBegunIsTold(t *testing.T) {
	bubble(t, func(t *testing.T, b storage.Bucket) {
		m := prepare(t, b, "a")
		log := m.logged()
		l := leaser.New(b, m.node, leaser.DefaultConfig(), leaser.Options{Clock: m.clock, Log: m.log})
		_ = l.Status()
		pass(time.Minute)
		if s := l.Status(); s.Role != leaser.CutOff || s.LastError != "the lock was not read for 1m0s since the start" {
			t.Errorf("got %s, %q", s.Role, s.LastError)
		}
		l.Hindered(errors.New("connection refused"))
		if s := l.Status(); s.Role != leaser.CutOff || s.LastError != "connection refused" {
			t.Errorf("got %s, %q", s.Role, s.LastError)
		}
		if text := log.String(); strings.Contains(text, "<nil>") || strings.Count(text, "lock out of reach") != 1 {
			t.Errorf("the log says %s", text)
		}
		_ = m.node.Close()
	})
}

func TestAProcessThatStoodStillSaysSo(t *testing.T) {
	for want, shift := range map[string]*clock{
		"this process stood still":                {boot: 12 * time.Second, wall: 12 * time.Second},
		"the clock of this machine was set ahead": {wall: time.Hour},
	} {
		bubble(t, func(t *testing.T, b storage.Bucket) {
			a := prepare(t, b, "a")
			log := a.logged()
			a.start()
			pass(time.Second)
			a.is(leaser.Primary)
			a.bucket.Inject(storagetest.Fault{Effect: storagetest.Hang})
			a.clock.shift(shift.boot, shift.wall)
			if s := a.Status(); !strings.Contains(s.LastError, want+" for ") {
				t.Errorf("the error is %q, want %q", s.LastError, want)
			}
			pass(time.Second)
			stopAll(a)
			text := log.String()
			if strings.Contains(text, "<nil>") || strings.Count(text, want) != 1 || strings.Contains(text, "out of reach") {
				t.Errorf("the log says %s", text)
			}
		})
	}
}
