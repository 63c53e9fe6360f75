package s3

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/tidemark-io/tidemark/storage"
)

const (
	probeRacers    = 32
	probeRounds    = 2
	probeBodyLimit = 2 << 20
)

// createRace lets many create one object at once.
func (p *prober) createRace(ctx context.Context, size int) error {
	for round := range probeRounds {
		key := fmt.Sprintf("race-%d-%d", size, round)
		if _, err := p.race(ctx, key, size, storage.Condition{Absent: true}); err != nil {
			return err
		}
		p.winners = append(p.winners, p.prefix+key)
	}
	return nil
}

// swapRace lets many replace one object at once.
func (p *prober) swapRace(ctx context.Context) error {
	const key = "race-swap"
	if _, err := p.put(ctx, key, "start", storage.Condition{}); err != nil {
		return err
	}
	_, object, err := p.get(ctx, key)
	if err != nil {
		return err
	}
	etag := object.ETag
	for range probeRounds {
		if etag, err = p.race(ctx, key, 4<<10, storage.Condition{ETag: etag}); err != nil {
			return err
		}
	}
	p.winners = append(p.winners, p.prefix+key)
	return nil
}

// racer is one of many writers of the same object.
type racer struct {
	body   probeBody
	stored storage.Object
	err    error
}

// race starts all writers at once. One at most may win, and what is stored is
// the winner's. A writer that got no clear answer may have won, as long as
// nobody else has. It returns the ETag.
func (p *prober) race(ctx context.Context, key string, size int, cond storage.Condition) (string, error) {
	racers := make([]racer, probeRacers)
	start := make(chan struct{})
	var group errgroup.Group
	for i := range racers {
		r := &racers[i]
		r.body = probeBody{fmt.Sprintf("writer %02d of %s of %s with %+v\n", i, key, p.prefix, cond), int64(size)}
		group.Go(func() error {
			<-start
			r.stored, r.err = p.b.Put(ctx, p.prefix+key, io.NewSectionReader(r.body, 0, r.body.size), cond)
			return nil
		})
	}
	close(start)
	_ = group.Wait() // each keeps its error
	if ctx.Err() != nil {
		return "", context.Cause(ctx)
	}
	content, object, err := p.get(ctx, key)
	if errors.Is(err, storage.ErrNotFound) {
		return "", unfit("of %d writers at once none has won: %v", probeRacers, racers[0].err)
	}
	if err != nil {
		return "", err
	}
	return object.ETag, judgeRace(racers, content, object.ETag)
}

func judgeRace(racers []racer, content, etag string) error {
	winners, stored := 0, -1
	var cause error
	for i, r := range racers {
		switch {
		case r.err == nil:
			winners++
		case !errors.Is(r.err, storage.ErrPrecondition):
			cause = r.err
		}
		if r.body.is(content) {
			stored = i
		}
	}
	switch {
	case winners > 1:
		return unfit("of %d writers at once %d have won: conditions are not looked at in one step with the write", len(racers), winners)
	case winners == 0 && stored < 0:
		return unfit("of %d writers at once none has won: %v", len(racers), cause)
	case stored < 0:
		return unfit("what is stored is of none of the writers")
	case winners == 1 && racers[stored].err != nil:
		return unfit("what is stored is of a writer that was refused: %v", racers[stored].err)
	case winners == 1 && racers[stored].stored.ETag != etag:
		return unfit("the winner's ETag is %q, that of what is stored %q", racers[stored].stored.ETag, etag)
	}
	return nil
}

// probeBody is different for each writer, at its start and at its end, and takes
// no room.
type probeBody struct {
	mark string
	size int64
}

// ReadAt makes the part of the body.
func (b probeBody) ReadAt(p []byte, off int64) (int, error) {
	n := int(min(int64(len(p)), max(0, b.size-off)))
	for i := range p[:n] {
		p[i] = '.'
	}
	for _, start := range []int64{0, b.size - int64(len(b.mark))} {
		if from := off - start; from < 0 && -from < int64(n) {
			copy(p[-from:n], b.mark)
		} else if from >= 0 && from < int64(len(b.mark)) {
			copy(p[:n], b.mark[from:])
		}
	}
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

func (b probeBody) is(content string) bool {
	return int64(len(content)) == b.size && strings.HasPrefix(content, b.mark) && strings.HasSuffix(content, b.mark) &&
		strings.Count(content, ".") >= len(content)-2*len(b.mark)
}

// listed makes sure that a listing shows what was stored.
func (p *prober) listed(ctx context.Context) error {
	seen := map[string]bool{}
	for object, err := range p.b.List(ctx, p.prefix, "") {
		if err != nil {
			return err
		}
		seen[object.Key] = true
	}
	for _, key := range p.winners {
		if !seen[key] {
			return unfit("a listing does not show %s, which is stored", key)
		}
	}
	return nil
}
