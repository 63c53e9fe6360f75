package s3

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"
)

const (
	attempts  = 4
	firstWait = 50 * time.Millisecond
	longWait  = 2 * time.Second
)

// try repeats a request a few times, with waits in between that grow and
// differ. There is no budget over all requests that an outage could use up.
// The error is translated.
func (b *Bucket) try(ctx context.Context, request func() error) error {
	unclear := false
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
		v := judge(err)
		unclear = unclear || v.unclear
		if v.stale {
			b.creds.invalidate()
		}
		if !v.again || n+1 == attempts {
			return translate(err)
		}
		if err := pause(ctx, wait(n, v.slow)); err != nil {
			return err
		}
	}
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
