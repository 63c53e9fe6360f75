package main

import (
	"errors"
	"fmt"
	"math"
	"time"
)

// notSet is a time that the file does not name; 0s, which it may, is another
// one.
const notSet = time.Duration(math.MinInt64)

// times are the times of a lease, by key.
func (l *Lease) times() map[string]*time.Duration {
	t := &l.Times
	return map[string]*time.Duration{
		"ttl": &t.TTL, "renew": &t.Renew, "request-timeout": &t.Request, "soft": &t.Soft, "deadline": &t.Deadline,
		"stop": &t.Stop, "poll": &t.Poll, "wait": &t.Wait, "jitter": &t.Jitter,
	}
}

// forget comes before a file is read, and settle after it.
func (l *Lease) forget() {
	for _, d := range l.times() {
		*d = notSet
	}
}

// settle refuses times of 0s, which would stand for the default in silence.
func (l *Lease) settle() error {
	var errs []error
	for key, d := range l.times() {
		switch *d {
		case notSet:
			*d = 0
		case 0:
			errs = append(errs, fmt.Errorf("lease.%s: 0s is no time; use more, or remove the key to have it follow from ttl", key))
		}
	}
	return errors.Join(errs...)
}
