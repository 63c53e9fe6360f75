package wal_test

import (
	"bytes"
	"slices"
	"testing"

	"github.com/tidemark-io/tidemark/wal"
)

func (d *database) resume(m wal.Mark, want wal.Verdict) {
	d.Helper()
	if got, err := wal.Resume(bytes.NewReader(d.file("-wal")), m); err != nil || got != want {
		d.Errorf("got %v, %v, want %v", got, err, want)
	}
}

func TestAMarkContinuesUntilTheLogIsStartedOver(t *testing.T) {
	d := newDatabase(t, 4096)
	start := header(t, d.file("-wal")).Start()
	d.insert(10, 1000)
	m := everything(t, d.file("-wal")).To
	for _, mark := range []wal.Mark{start, m} {
		d.resume(mark, wal.Continues)
		d.insert(10, 1000)
		d.resume(mark, wal.Continues)
	}
	d.restart()
	d.resume(m, wal.Continues)
	d.insert(1, 10)
	d.resume(m, wal.Restarted)
	d.resume(start, wal.Restarted)
	d.restart()
	d.insert(1, 10)
	d.resume(m, wal.Lost)
	d.resume(start, wal.Lost)
}

func TestATruncatingCheckpointLeavesNothingToResume(t *testing.T) {
	d := newDatabase(t, 4096)
	m := everything(t, d.file("-wal")).To
	d.exec("PRAGMA wal_checkpoint(TRUNCATE)")
	d.resume(m, wal.Lost)
	d.insert(1, 10)
	d.resume(m, wal.Restarted)
}

func TestMarksThatTheLogDoesNotBearOutAreLost(t *testing.T) {
	log := small(t)
	good := everything(t, log).To
	for name, change := range map[string]func(*wal.Mark){
		"salt 1 smaller":        func(m *wal.Mark) { m.Salt1++ },
		"salt 1 far ahead":      func(m *wal.Mark) { m.Salt1 -= 2 },
		"salt 2":                func(m *wal.Mark) { m.Salt2++ },
		"checksum":              func(m *wal.Mark) { m.Sum[1]++ },
		"frame before":          func(m *wal.Mark) { m.Frames-- },
		"frame beyond the end":  func(m *wal.Mark) { m.Frames++ },
		"last frame of all":     func(m *wal.Mark) { m.Frames = 1<<32 - 1 },
		"checksum at the start": func(m *wal.Mark) { m.Frames = 0 },
	} {
		t.Run(name, func(t *testing.T) {
			m := good
			change(&m)
			if v, err := wal.Resume(bytes.NewReader(log), m); err != nil || v != wal.Lost {
				t.Errorf("got %v, %v, want lost", v, err)
			}
		})
	}
}

func TestAMarkInAFrameOfAnotherGenerationIsLost(t *testing.T) {
	log := slices.Clone(small(t))
	m := everything(t, log).To
	log[wal.FrameOffset(m.Frames, 512)-frameHeaderSize+8]++ // a salt
	if v, err := wal.Resume(bytes.NewReader(log), m); err != nil || v != wal.Lost {
		t.Errorf("got %v, %v, want lost", v, err)
	}
}

func TestVerdictsHaveNames(t *testing.T) {
	for v, want := range map[wal.Verdict]string{wal.Continues: "continues", wal.Restarted: "restarted", wal.Lost: "lost"} {
		if v.String() != want {
			t.Errorf("got %q, want %q", v, want)
		}
	}
}
