package main

import (
	"strings"
	"testing"
	"time"

	"github.com/tidemark-io/tidemark/ltx"
)

func TestTimesAreReadWithTheirZoneOrAsAgo(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	for s, want := range map[string]time.Time{
		"-10m": now.Add(-10 * time.Minute), "-1h30m": now.Add(-90 * time.Minute), "-0.5s": now.Add(-time.Second / 2),
		"2026-03-01T11:00:00Z": now.Add(-time.Hour), "2026-03-01T12:30:00.25+01:00": now.Add(-30*time.Minute + time.Second/4),
		"2026-03-01T12:00:00Z": now, "": {},
	} {
		if got, err := parseTime(s, now); err != nil || !got.Equal(want) {
			t.Errorf("%q: got %v, %v; want %v", s, got, err, want)
		}
	}
	for s, want := range map[string]string{
		"2026-03-01T11:00:00": "zone is missing", "2026-03-01": "with its zone", "yesterday": "with its zone", "-10": "how long ago",
		"10m": "with its zone", "-": "how long ago", "2026-03-01T12:00:01Z": "in the future", "1767225600": "with its zone",
	} {
		if got, err := parseTime(s, now); err == nil || !strings.Contains(err.Error(), want) || exitCode(err) != exitUsage {
			t.Errorf("%q: got %v, %v; want %q", s, got, err, want)
		}
	}
}

func TestTransactionsAreReadInBothSpellings(t *testing.T) {
	for s, want := range map[string]ltx.TXID{"17": 17, "0000000000000017": 0x17, "0x17": 0x17, "0X1f": 0x1f, "": 0} {
		if got, err := parseTXID(s); err != nil || got != want {
			t.Errorf("%q: got %d, %v; want %d", s, got, err, want)
		}
	}
	for _, s := range []string{"0", "-1", "1f", "0x", "zz", "0000000000000000", "12345678901234567890123"} {
		if got, err := parseTXID(s); exitCode(err) != exitUsage {
			t.Errorf("%q: got %d, %v; want a usage error", s, got, err)
		}
	}
}

func TestProgressTellsRateAndTimeLeft(t *testing.T) {
	got := progressLine("restoring", 100<<20, 500<<20, 10*time.Second)
	if want := "restoring: 100 MiB of 500 MiB, 10 MiB/s, 40s left"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := progressLine("verifying", 0, 1<<20, 0); got != "verifying: 0 B of 1.0 MiB" {
		t.Errorf("got %q", got)
	}
}
