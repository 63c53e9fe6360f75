package s3

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"
)

const (
	attempts  = 4 // or more, while the service does answer
	firstWait = 50 * time.Millisecond
	longWait  = 2 * time.Second

	endurance = 8 * time.Second
	underWay  = 4 // times the endurance, for what would be lost of a long transfer
)

// Retry says how long a request that fails for the moment is repeated. The
// zero value is the default, 8 s; all else is for callers that repeat themselves.
type Retry struct {
	Attempts int           // at most; 1: nothing is ever sent twice; 0: four at least
	For      time.Duration // after the first failure; writes of whole objects: four attempts only
}

// effort is how long one request is repeated.
type effort struct {
	attempts int
	busy     time.Duration // while the service answers, or breaks connections
	away     time.Duration // while no connection can be made
}

// brief repeats a request a few times, with waits in between that grow and
// differ. It is for writes, which callers repeat for ever and want to know of
// an outage meanwhile. There is no budget over all requests that an outage
// could use up. The error is translated.
func (b *Bucket) brief(ctx context.Context, request func() error) error {
	return b.repeat(ctx, effort{attempts: b.config.Retry.Attempts}, request)
}

// try is brief that goes on until the request has failed for some seconds;
// without a service it gives up early.
func (b *Bucket) try(ctx context.Context, request func() error) error {
	r := b.config.Retry
	return b.repeat(ctx, effort{attempts: r.Attempts, busy: cmp.Or(r.For, endurance)}, request)
}

// persist is try for a request that is part of something longer.
func (b *Bucket) persist(ctx context.Context, request func() error) error {
	r := b.config.Retry
	long := underWay * cmp.Or(r.For, endurance)
	return b.repeat(ctx, effort{r.Attempts, long, long}, request)
}

func (b *Bucket) repeat(ctx context.Context, e effort, request func() error) error {
	unclear := false
	var failing time.Time
	for n := 0; ; n++ {
		err := request()
		if err == nil {
			return nil
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if unclear && isPrecondition(replyOf(err)) {
			return fmt.Errorf("%w: %s", errUnclear, replyOf(err))
		}
		if n == 0 {
			failing = time.Now()
		}
		v := judge(err)
		unclear = unclear || v.unclear
		if v.stale {
			b.creds.invalidate()
		}
		if !v.again || e.spent(n+1, time.Since(failing), err) {
			return translate(err)
		}
		if err := pause(ctx, wait(n, v.slow)); err != nil {
			return err
		}
	}
}

// spent tells that n attempts, failing for a while now, were enough.
func (e effort) spent(n int, failing time.Duration, err error) bool {
	limit := e.busy
	if neverSent(err) {
		limit = e.away
	}
	return e.attempts > 0 && n >= e.attempts || n >= attempts && failing >= limit
}

// wait is the time before attempt n+1: half of it sure, half of it chance.
func wait(n int, slow bool) time.Duration {
	d := firstWait << min(n, 8)
	if slow {
		d *= 8
	}
	d = min(d, longWait)
	return d/2 + rand.N(d/2)
}

func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-timer.C:
		return nil
	}
}

// errOf prefers the error of a body over what the transport made of it.
func errOf(err error, src *source) error {
	if err == nil {
		return nil
	}
	if cause := src.err(); cause != nil {
		return errors.Join(errBody, cause)
	}
	return err
}
