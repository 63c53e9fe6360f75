package wal_test

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"reflect"
	"testing"

	"github.com/tidemark-io/tidemark/wal"
)

// sample is a log of many commits, some spilled before COMMIT, some shrinking
// the database, with an open transaction at its end.
func sample(t testing.TB) (log []byte, base []byte, want []byte) {
	d := newDatabase(t, 512)
	base = d.file("")
	for i := range 12 {
		d.insert(i*i, 200)
		d.exec("DELETE FROM t WHERE id % 5 = 1")
	}
	d.exec("VACUUM")
	d.insert(2, 2000)
	want = d.image()
	d.exec("BEGIN")
	d.insert(40, 200)
	return d.file("-wal"), base, want
}

func TestLimitsEndASegmentAtACommit(t *testing.T) {
	log, _, _ := sample(t)
	h := header(t, log)
	marks := borders(log, h)
	last := len(marks) - 1
	size := int64(24 + h.PageSize)
	bytesTo := func(commit int) int64 { return int64(marks[commit].Frames) * size }
	for _, test := range []struct {
		name    string
		limit   wal.Limit
		commits int
		more    bool
	}{
		{"none", wal.Limit{}, last, false},
		{"one commit", wal.Limit{Commits: 1}, 1, true},
		{"five commits", wal.Limit{Commits: 5}, 5, true},
		{"more commits than there are", wal.Limit{Commits: last + 1}, last, false},
		{"one byte takes a commit", wal.Limit{Bytes: 1}, 1, true},
		{"exact bytes of a commit", wal.Limit{Bytes: bytesTo(7)}, 7, true},
		{"a byte beyond a commit", wal.Limit{Bytes: bytesTo(7) + 1}, 8, true},
		{"bytes beyond the log", wal.Limit{Bytes: 1 << 40}, last, false},
		{"up to the frame of a commit", wal.Limit{Frames: marks[3].Frames}, 3, false},
		{"up to the frame before a commit", wal.Limit{Frames: marks[3].Frames - 1}, 2, false},
		{"frames beyond the log", wal.Limit{Frames: 1 << 31}, last, false},
		{"commits ending at the last frame", wal.Limit{Frames: marks[3].Frames, Commits: 3}, 3, false},
		{"commits before the last frame", wal.Limit{Frames: marks[3].Frames, Commits: 2}, 2, true},
		{"bytes before the last frame", wal.Limit{Frames: marks[3].Frames, Bytes: bytesTo(2)}, 2, true},
		{"the first of two", wal.Limit{Bytes: bytesTo(6), Commits: 4}, 4, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := committed(t, log, h.Start(), test.limit)
			if s.Commits != test.commits || s.More != test.more || s.To != marks[test.commits] {
				t.Errorf("%d commits, more %v, to %v, want %d, %v, %v",
					s.Commits, s.More, s.To, test.commits, test.more, marks[test.commits])
			}
		})
	}
}

func TestSegmentsOfAnySizeJoinToTheWhole(t *testing.T) {
	log, base, want := sample(t)
	h := header(t, log)
	rnd := rand.New(rand.NewPCG(1, 2))
	for range 20 {
		image, mark, commits := base, h.Start(), 0
		for more := true; more; {
			limit := wal.Limit{Commits: rnd.IntN(4), Bytes: rnd.Int64N(100_000)}
			s := committed(t, log, mark, limit)
			if s.From != mark {
				t.Fatalf("from %v, want %v", s.From, mark)
			}
			image, mark, more = apply(image, log, s, h.PageSize), s.To, s.More
			commits += s.Commits
		}
		if whole := everything(t, log); mark != whole.To || commits != whole.Commits {
			t.Fatalf("ended at %v after %d commits, want %v after %d", mark, commits, whole.To, whole.Commits)
		}
		if !bytes.Equal(image, want) {
			t.Fatal("the segments do not give the pages that SQLite reads")
		}
	}
}

func TestTheNewestFrameOfEachPageIsReturnedInOrder(t *testing.T) {
	log, _, _ := sample(t)
	got, want := everything(t, log), plainCommitted(log, header(t, log))
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v\nwant %+v", got, want)
	}
}

func TestAMarkAtTheFrameLimitGivesAnEmptySegment(t *testing.T) {
	log, _, _ := sample(t)
	end := everything(t, log).To
	for _, frames := range []uint32{end.Frames, end.Frames - 1, 1} {
		if s := committed(t, log, end, wal.Limit{Frames: frames}); s.To != end || s.Commits != 0 || s.More {
			t.Errorf("limit %d: got %+v", frames, s)
		}
	}
}

func TestAMarkOfAnotherGenerationIsAnError(t *testing.T) {
	log, _, _ := sample(t)
	h := header(t, log)
	m := h.Start()
	m.Salt2++
	if _, err := wal.Committed(bytes.NewReader(log), h, m, wal.Limit{}); !errors.Is(err, wal.ErrInvalid) {
		t.Errorf("got %v, want ErrInvalid", err)
	}
	if _, err := wal.Committed(bytes.NewReader(log), wal.Header{}, wal.Mark{}, wal.Limit{}); !errors.Is(err, wal.ErrInvalid) {
		t.Errorf("zero header: got %v, want ErrInvalid", err)
	}
}
