package replica

import (
	"errors"
	"fmt"
	"math/bits"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/tidemark-io/tidemark/ltx"
)

// past is a history with random times and files: snapshots may carry a later
// time than their last commit, some files tell none.
type past struct {
	times  []time.Time // by TXID
	files  []ltx.FileInfo
	late   map[ltx.TXID]time.Time // when snapshots were made
	untold map[ltx.FileInfo]bool
	asked  int
}

func newPast(r *rand.Rand) *past {
	p := &past{times: make([]time.Time, 1+r.IntN(60)), late: map[ltx.TXID]time.Time{}, untold: map[ltx.FileInfo]bool{}}
	now, made := time.UnixMilli(1e12), time.Time{}
	for i := range p.times {
		p.times[i] = now
		now = now.Add(time.Duration(r.IntN(3)) * time.Second) // equal times too
	}
	for txid := ltx.TXID(1); int(txid) < len(p.times); txid++ {
		if r.IntN(4) > 0 {
			p.files = append(p.files, ltx.FileInfo{Min: txid, Max: txid, Size: 1000})
		}
		if r.IntN(6) == 0 {
			p.files = append(p.files, ltx.FileInfo{Level: 1, Min: txid - min(3, txid-1), Max: txid, Size: 1000})
		}
		if r.IntN(8) == 0 {
			p.files = append(p.files, ltx.FileInfo{Level: 9, Min: 1, Max: txid, Size: 1000})
			if at := p.times[txid].Add(time.Duration(r.IntN(5000)) * time.Millisecond); at.After(made) {
				made = at
			}
			p.late[txid] = made
		}
	}
	for _, f := range p.files {
		p.untold[f] = r.IntN(30) == 0
	}
	return p
}

func (p *past) timeOf(f ltx.FileInfo) (time.Time, error) {
	p.asked++
	if p.untold[f] {
		return time.Time{}, fmt.Errorf("damaged: %w", errUntold)
	}
	if f.Level == ltx.LevelSnapshot {
		return p.late[f.Max], nil
	}
	return p.times[f.Max], nil
}

func TestSearchOfTimeAgreesWithLookingAtEveryFile(t *testing.T) {
	r := rand.New(rand.NewPCG(11, 12))
	for range 20000 {
		p := newPast(r)
		at := time.UnixMilli(1e12).Add(time.Duration(r.IntN(70_000)-2000) * time.Millisecond)
		want, damaged := ltx.TXID(0), 0
		for _, f := range borders(p.files) {
			told, err := p.timeOf(f)
			if err != nil {
				damaged++
			} else if !told.After(at) {
				want = max(want, f.Max)
			}
		}
		p.asked = 0
		got, err := searchTime(p.files, at, p.timeOf)
		if err != nil || got != want {
			t.Fatalf("files %v, times %v, at %v: got %v, %v; want %v", p.files, p.times, at, got, err, want)
		}
		if most := 2*(bits.Len(uint(len(p.files)))+1) + damaged*bits.Len(uint(len(p.files))); p.asked > most {
			t.Fatalf("%d of %d files were asked, %d at most", p.asked, len(p.files), most)
		}
	}
}

func TestSearchOfTimeEndsWithOtherErrors(t *testing.T) {
	broken := errors.New("broken")
	files := []ltx.FileInfo{{Min: 1, Max: 1}, {Min: 2, Max: 2}}
	_, err := searchTime(files, time.Now(), func(ltx.FileInfo) (time.Time, error) { return time.Time{}, broken })
	if !errors.Is(err, broken) {
		t.Errorf("got %v", err)
	}
}

func TestSearchOfTimeIsNeverNewerWhateverTheClocksSay(t *testing.T) {
	r := rand.New(rand.NewPCG(13, 14))
	for range 5000 {
		p := newPast(r)
		for i := range p.times {
			p.times[i] = time.UnixMilli(int64(1e12 + r.IntN(60_000))) // clocks that jump
		}
		at := time.UnixMilli(int64(1e12 + r.IntN(70_000)))
		got, err := searchTime(p.files, at, p.timeOf)
		if err != nil {
			t.Fatal(err)
		}
		if _, snapshot := p.late[got]; got > 0 && !snapshot && p.times[got].After(at) {
			t.Fatalf("at %v: got %v of %v", at, got, p.times[got])
		}
	}
}
