package main

import (
	"strconv"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/tidemark-io/tidemark/ltx"
)

// restoreWhen reads which state is asked for: that of a transaction, that of a
// time, or, with neither, the newest.
func restoreWhen(c *cli.Context, now time.Time) (ltx.TXID, time.Time, error) {
	txid, err := parseTXID(c.String("txid"))
	if err != nil {
		return 0, time.Time{}, err
	}
	at, err := parseTime(c.String("timestamp"), now)
	if err != nil {
		return 0, time.Time{}, err
	}
	if txid != 0 && !at.IsZero() {
		return 0, time.Time{}, usagef("-txid and -timestamp exclude each other")
	}
	return txid, at, nil
}

func parseTXID(s string) (ltx.TXID, error) {
	if s == "" {
		return 0, nil
	}
	digits, base := s, 10
	if hex, ok := strings.CutPrefix(strings.ToLower(s), "0x"); ok || len(s) == 16 {
		digits, base = hex, 16
	}
	n, err := strconv.ParseUint(digits, base, 64)
	if err != nil || n == 0 {
		return 0, usagef("-txid %q: give a decimal number from 1, or 16 hexadecimal digits", s)
	}
	return ltx.TXID(n), nil
}

// parseTime reads a time with its zone, or how long before now.
func parseTime(s string, now time.Time) (time.Time, error) {
	if s == "" {
		return time.Time{}, nil
	}
	if strings.HasPrefix(s, "-") {
		ago, err := time.ParseDuration(s)
		if err != nil {
			return time.Time{}, usagef("-timestamp %q: give how long ago as in -90s, -10m or -1h30m", s)
		}
		return now.Add(ago), nil
	}
	at, err := time.Parse(time.RFC3339, s)
	switch {
	case err != nil && zoneless(s):
		return time.Time{}, usagef("-timestamp %q: the zone is missing; write %sZ for UTC, or an offset such as +02:00", s, s)
	case err != nil:
		return time.Time{}, usagef("-timestamp %q: give a time with its zone as in %s, or how long ago as in -10m", s, now.UTC().Format(time.RFC3339))
	case at.After(now):
		return time.Time{}, usagef("-timestamp %q: that is in the future; now is %s", s, now.In(at.Location()).Format(time.RFC3339))
	}
	return at, nil
}

func zoneless(s string) bool {
	_, err := time.Parse("2006-01-02T15:04:05", s)
	return err == nil
}
