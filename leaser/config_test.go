package leaser_test

import (
	"strings"
	"testing"
	"time"

	"github.com/goccy/go-yaml"

	"github.com/tidemark-io/tidemark/leaser"
)

func TestDefaultsAreThoseOfTheProtocol(t *testing.T) {
	const ms = time.Millisecond
	want := leaser.Config{
		TTL: 15000 * ms, Renew: 4000 * ms, Request: 2000 * ms, Soft: 7000 * ms, Deadline: 10000 * ms, Stop: 2000 * ms,
		Poll: 2000 * ms, Wait: 16500 * ms, Jitter: 1000 * ms,
	}
	if got := leaser.DefaultConfig(); got != want {
		t.Errorf("got %+v", got)
	}
	if err := want.Validate(); err != nil {
		t.Error(err)
	}
}

func TestTimesFollowTheTTL(t *testing.T) {
	for _, ttl := range []time.Duration{3 * time.Second, 6 * time.Second, 15 * time.Second, time.Minute, 10 * time.Minute} {
		c := leaser.Config{TTL: ttl}.WithDefaults()
		if late := (leaser.Config{TTL: ttl, Renew: ttl * 4 / 15 * 11 / 10}).WithDefaults(); ttl > 6*time.Second && late.Validate() != nil {
			t.Errorf("ttl %v, renew %v: %v", ttl, late.Renew, late.Validate())
		}
		if err := c.Validate(); err != nil {
			t.Errorf("ttl %v: %v", ttl, err)
		}
	}
	small := leaser.Config{
		TTL: 6 * time.Second, Renew: 1500 * time.Millisecond, Request: 700 * time.Millisecond, Deadline: 4100 * time.Millisecond,
		Stop: time.Second, Wait: 6600 * time.Millisecond,
	}
	if err := small.WithDefaults().Validate(); err != nil {
		t.Error(err)
	}
}

func TestUnsafeTimesAreRefused(t *testing.T) {
	for name, test := range map[string]struct {
		set  string
		want string
	}{
		"no room for two attempts":  {"deadline: 9s\nrequest-timeout: 2s", "deadline 9s: want at least 9.4s"},
		"attempts that take long":   {"request-timeout: 3s", "want at least 11.4s"},
		"a deadline after the wait": {"deadline: 14s", "ttl 15s: too short"},
		"too long to stop":          {"stop: 4s", "ttl 15s: too short"},
		"a short wait":              {"wait: 15s", "wait 15s: want at least 16.5s"},
		"a wait below the ttl":      {"wait: 1s", "wait 1s: want 15s to"},
		"no time to warn":           {"soft: 11s", "soft 11s"},
		"a ttl of an instant":       {"ttl: 10ms", "ttl 10ms"},
		"a ttl of a week":           {"ttl: 168h", "ttl 168h"},
		"a negative jitter":         {"jitter: -1s", "jitter -1s"},
		"a fast poll":               {"poll: 1ms", "poll 1ms"},
		"renewals after the end":    {"renew: 20s", "renew 20s: too long for a deadline of 10s: want 100ms to 8.09s"},
		"renewals that come late":   {"renew: 10s", "renew 10s: too long"},
		"a short ttl alone":         {"ttl: 1s", "ttl 1s: too short: want at least 3s"},
		"a shorter ttl":             {"ttl: 2900ms", "ttl 2.9s: too short: want at least 3s"},
		"a short ttl for a renewal": {"ttl: 1s\nrenew: 300ms", "ttl 1s: too short: want at least 3s"},
		"a negative ttl":            {"ttl: -5s", "ttl -5s: too short: want at least 3s"},
		"a negative poll":           {"poll: -1s", "poll -1s"},
		"a short deadline":          {"deadline: 4s", "deadline 4s: too short for a renewal after 4s: want at least 5.5s"},
	} {
		t.Run(name, func(t *testing.T) {
			var c leaser.Config
			if err := yaml.Unmarshal([]byte(test.set), &c); err != nil {
				t.Fatal(err)
			}
			if err := c.WithDefaults().Validate(); err == nil || !strings.Contains(err.Error(), test.want) || strings.Contains(err.Error(), "\n") {
				t.Errorf("got %v, want %q", err, test.want)
			}
		})
	}
}
