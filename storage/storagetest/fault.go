package storagetest

import (
	"context"
	"path"
	"time"
)

// Fault says which calls go wrong, and how. The zero value fails every call.
type Fault struct {
	Op     Op     // empty: every operation
	Keys   string // path.Match pattern of keys (of the prefix for List); empty: all
	Times  int    // strikes so many calls, then is gone; 0: until Heal
	Effect Effect
	Err    error         // for Fail, LoseReply and BreakList; nil: ErrInjected
	Delay  time.Duration // waits so long before anything else
	Bytes  int64         // where CutBody ends the body; after how many objects BreakList breaks
}

// Effect is what a Fault does to a call after its Delay.
type Effect int

// The effects.
const (
	Fail      Effect = iota // returns the error, the bucket never sees the call
	Hang                    // waits until the context ends
	Lag                     // only delays: the call goes through
	CutBody                 // Get: the body ends early without an error
	LoseReply               // carries the call out and returns the error all the same
	BreakList               // List: yields some objects, then the error
)

func (f *Fault) matches(op Op, keys []string) bool {
	if f.Op != "" && f.Op != op {
		return false
	}
	if f.Keys == "" {
		return true
	}
	for _, key := range keys {
		if ok, _ := path.Match(f.Keys, key); ok {
			return true
		}
	}
	return false
}

func (f *Fault) cause() error {
	if f.Err != nil {
		return f.Err
	}
	return ErrInjected
}

// before is what happens to a call on its way to the bucket.
func (f *Fault) before(ctx context.Context) error {
	if f == nil {
		return nil
	}
	if f.Delay > 0 {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(f.Delay):
		}
	}
	switch f.Effect {
	case Fail:
		return f.cause()
	case Hang:
		<-ctx.Done()
		return context.Cause(ctx)
	}
	return nil
}

// after is what happens to the reply.
func (f *Fault) after() error {
	if f == nil || f.Effect != LoseReply {
		return nil
	}
	return f.cause()
}
