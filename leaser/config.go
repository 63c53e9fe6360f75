package leaser

import (
	"cmp"
	"errors"
	"fmt"
	"time"
)

const (
	// retryPause is the pause after the first failed write in a row, twice as
	// long after the next ones.
	retryPause = 500 * time.Millisecond
	// renewJitter is how much earlier or later a renewal may come, in percent.
	renewJitter = 10
	// rateError is how far the rate of a clock may be off, in percent.
	rateError = 10
	// leastRequest and leastRenew are what makes sense at all.
	leastRequest = 50 * time.Millisecond
	leastRenew   = 100 * time.Millisecond
	// maxTTL keeps what a lock says about itself within reason.
	maxTTL = 24 * time.Hour
)

// Config has the times of a lease. All processes that share a replica should
// have the same; one with a longer ttl is waited for longer.
type Config struct {
	TTL      time.Duration `yaml:"ttl,omitempty"`             // advertised
	Renew    time.Duration `yaml:"renew,omitempty"`           // from the answer to one renewal to the next
	Request  time.Duration `yaml:"request-timeout,omitempty"` // for one attempt
	Soft     time.Duration `yaml:"soft,omitempty"`            // without a renewal: degraded
	Deadline time.Duration `yaml:"deadline,omitempty"`        // from before a renewal was sent to the end of belief
	Stop     time.Duration `yaml:"stop,omitempty"`            // to have stopped the application after the deadline
	Poll     time.Duration `yaml:"poll,omitempty"`            // between two looks of a follower
	Wait     time.Duration `yaml:"wait,omitempty"`            // a lock unchanged for so long may be taken
	Jitter   time.Duration `yaml:"jitter,omitempty"`          // at most, added to Wait
	// AgeCredit shortens the wait by the time since the lock was written, where
	// the service tells it by its own clock; nil: yes.
	AgeCredit *bool `yaml:"age-credit,omitempty"`
}

// DefaultConfig has the times for a ttl of 15 s.
func DefaultConfig() Config { return Config{}.WithDefaults() }

// WithDefaults fills in the times that are zero, in proportion to the ttl.
func (c Config) WithDefaults() Config {
	c.TTL = cmp.Or(c.TTL, 15*time.Second)
	c.Renew = cmp.Or(c.Renew, c.part(40))
	c.Deadline = cmp.Or(c.Deadline, c.part(100))
	c.Soft = cmp.Or(c.Soft, max(c.part(70), min(c.lateRenewal(), c.Deadline)))
	c.Request = cmp.Or(c.Request, c.request())
	c.Stop = cmp.Or(c.Stop, c.part(20))
	c.Poll = cmp.Or(c.Poll, min(2*time.Second, c.part(20)))
	c.Wait = cmp.Or(c.Wait, c.part(165))
	c.Jitter = cmp.Or(c.Jitter, min(time.Second, c.part(10)))
	return c
}

// part is so many 150th of the ttl.
func (c Config) part(n time.Duration) time.Duration {
	return time.Duration(float64(c.TTL) * float64(n) / 150).Round(time.Millisecond)
}

// request is the time for one attempt that follows from the others.
func (c Config) request() time.Duration {
	return min(c.part(20), (c.Deadline-c.lateRenewal())/2-retryPause)
}

// lateRenewal is the longest time to the next renewal.
func (c Config) lateRenewal() time.Duration { return c.Renew * (100 + renewJitter) / 100 }

// Validate checks the times and their relations.
func (c Config) Validate() error {
	if err := cmp.Or(c.checkTTL(), c.checkRoom()); err != nil {
		return err // the others follow from it
	}
	errs := []error{
		c.within("renew", c.Renew, leastRenew, c.TTL),
		c.within("request-timeout", c.Request, leastRequest, c.TTL),
		c.within("soft", c.Soft, c.Renew, c.Deadline),
		c.within("deadline", c.Deadline, c.Renew, c.TTL),
		c.within("stop", c.Stop, 0, c.TTL),
		c.within("poll", c.Poll, 100*time.Millisecond, maxTTL),
		c.within("wait", c.Wait, c.TTL, 2*maxTTL),
		c.within("jitter", c.Jitter, 0, c.Wait),
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	return errors.Join(c.checkAttempts(), c.checkMargin())
}

func (c Config) checkTTL() error {
	if c.TTL < time.Second {
		return fmt.Errorf("lease ttl %s: too short: want at least %s", c.TTL, leastTTL())
	}
	return c.within("ttl", c.TTL, time.Second, maxTTL)
}

// checkRoom names what leaves no time for an attempt where nobody has set one.
func (c Config) checkRoom() error {
	if c.Request >= leastRequest || c.Request != c.request() {
		return nil
	}
	room := 2 * (leastRequest + retryPause)
	latest := (c.Deadline - room) * 100 / (100 + renewJitter)
	switch {
	case c.Renew != c.part(40) && latest >= leastRenew:
		return fmt.Errorf("lease renew %s: too long for a deadline of %s: want %s to %s", c.Renew, c.Deadline, leastRenew,
			latest.Truncate(time.Millisecond))
	case c.Deadline != c.part(100):
		return fmt.Errorf("lease deadline %s: too short for a renewal after %s: want at least %s", c.Deadline, c.Renew, c.lateRenewal()+room)
	}
	return fmt.Errorf("lease ttl %s: too short: want at least %s", c.TTL, leastTTL())
}

// leastTTL is the shortest ttl with which all other times may follow from it.
func leastTTL() time.Duration {
	const step = 100 * time.Millisecond
	ttl := time.Second
	for c := (Config{TTL: ttl}).WithDefaults(); c.Request < leastRequest; c = (Config{TTL: ttl}).WithDefaults() {
		ttl += step
	}
	return ttl
}

func (c Config) within(name string, d, low, high time.Duration) error {
	if d < low || d > high {
		return fmt.Errorf("lease %s %s: want %s to %s", name, d, low, high)
	}
	return nil
}

// checkAttempts makes room for two attempts between a renewal that is due and
// the deadline.
func (c Config) checkAttempts() error {
	if need := c.lateRenewal() + 2*(c.Request+retryPause); c.Deadline < need {
		return fmt.Errorf("lease deadline %s: want at least %s, for a renewal after %s and two attempts of %s",
			c.Deadline, need, c.Renew, c.Request)
	}
	return nil
}

// checkMargin makes sure that a primary has stopped before another one starts,
// although one clock runs slow and the other one fast. Another process may know
// the ttl alone, so the ttl must tell enough.
func (c Config) checkMargin() error {
	held := c.Deadline*(100+rateError)/100 + c.Stop
	if free := waitFor(c.TTL) * (100 - rateError) / 100; held > free {
		return fmt.Errorf("lease ttl %s: too short for a deadline of %s and %s to stop, which may take %s: want at least %s",
			c.TTL, c.Deadline, c.Stop, held, (held * 1000 / 990).Round(time.Millisecond))
	}
	if c.Wait < waitFor(c.TTL) {
		return fmt.Errorf("lease wait %s: want at least %s for a ttl of %s", c.Wait, waitFor(c.TTL), c.TTL)
	}
	return nil
}

// waitFor is the shortest wait that is safe with a holder that advertises ttl.
func waitFor(ttl time.Duration) time.Duration { return min(ttl, maxTTL) * 110 / 100 }

func (c Config) ageCredit() bool { return c.AgeCredit == nil || *c.AgeCredit }
