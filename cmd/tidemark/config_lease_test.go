package main

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// withLease is a configuration of two databases with lines of a lease.
func withLease(lines string) (Config, error) {
	return parseConfig(fmt.Appendf(nil, `
region: us-east-1
%s
dbs:
  - {path: /a, replica: {url: "s3://one/lake/a"}}
  - {path: /b, replica: {url: "s3://one/lake/b"}}
`, lines), nil)
}

func TestTimesOfALeaseFollowFromItsTTL(t *testing.T) {
	c, err := withLease("lease: {enabled: true, ttl: 30s, poll: 5s}")
	if err != nil {
		t.Fatal(err)
	}
	times := c.HA.Lease.Times
	if times.Renew != 8*time.Second || times.Deadline != 20*time.Second || times.Wait != 33*time.Second || times.Poll != 5*time.Second {
		t.Errorf("got %+v", times)
	}
	if place, err := c.leasePlace(); err != nil || place.String() != "s3://one/lake" {
		t.Errorf("the lock is at %s, %v", place, err)
	}
	c, err = withLease(`lease: {enabled: true, url: "s3://locks/x"}`)
	if err != nil {
		t.Fatal(err)
	}
	if place, err := c.leasePlace(); err != nil || place.String() != "s3://locks/x" {
		t.Errorf("the lock is at %s, %v", place, err)
	}
}

func TestWhatCannotBeWithALeaseIsNamed(t *testing.T) {
	for lines, want := range map[string]string{
		"lease: {enabled: true, ttl: 15s, deadline: 14s}":                           "lease ttl 15s: too short for a deadline of 14s",
		"lease: {enabled: true, renew: 6s, request-timeout: 3s}":                    "lease deadline 10s: want at least",
		"lease: {enabled: true, probe: off}":                                        `lease.probe: "off"; use on, or skip`,
		"lease: {enabled: true, node: a/b}":                                         `lease.node: "a/b"; use a name`,
		"lease: {enabled: true, advertise: here}":                                   `lease.advertise: "here"; use a URL`,
		"lease: {enabled: true, advertise: \"ftp://x\"}":                            `lease.advertise: "ftp://x"; use a URL`,
		"lease: {enabled: true, ttl: 1s}":                                           "lease ttl 1s: too short: want at least 3s",
		"lease: {enabled: true, ttl: 0s}":                                           "lease.ttl: 0s is no time",
		"lease: {enabled: true, poll: 0s}":                                          "lease.poll: 0s is no time",
		"lease: {enabled: true, poll: -1s}":                                         "lease poll -1s: want 100ms",
		"lease: {enabled: true, renew: 10s}":                                        "lease renew 10s: too long for a deadline of 10s",
		"lease: {enabled: true}\nrole-file: /b":                                     "role-file: /b belongs to the database of dbs[1]",
		"lease: {enabled: true}\nrole-file: /a-wal":                                 "role-file: /a-wal belongs to the database of dbs[0]",
		"lease: {enabled: true}\nrole-file: /.a-tidemark/x/role":                    "role-file: /.a-tidemark/x/role belongs to",
		"lease: {enabled: true, hold: 3s}":                                          "lease.hold",
		"lease: {enabled: true}\nexec-role: any":                                    "exec-role: there is no exec",
		"lease: {enabled: true}\nexec: a\nexec-role: all":                           `exec-role: "all"; use primary, or any`,
		"lease: {enabled: true}\nfence-local: both":                                 `fence-local: "both"; use lock, chmod or off`,
		"lease: {enabled: true}\non-demote: \"'\"":                                  "on-demote: it is no command line",
		"lease: {enabled: true}\nfollow-interval: 1ms":                              "follow-interval: 1ms; use 10ms to 1h",
		"lease: {enabled: true}\nhook-timeout: 0s":                                  "hook-timeout: 0s",
		"on-promote: notify":                                                        "lease.enabled: it is false",
		"role-file: /run/role":                                                      "lease.enabled: it is false",
		"lease: {enabled: true}\nverify-interval: 1h\nlogging: {level: info}\nx: 1": "x",
	} {
		if _, err := withLease(lines); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %s", lines, err, want)
		}
	}
	_, err := parseConfig([]byte(`
lease: {enabled: true}
dbs: [{dir: /x, pattern: "*.db", replica: {url: file:///r}}]
`), nil)
	_, inside := parseConfig([]byte("lease: {enabled: true}\nrole-file: /r/lock.json\ndbs: [{path: /x, replica: {url: file:///r}}]"), nil)
	if inside == nil || !strings.Contains(inside.Error(), "role-file: /r/lock.json lies in the replica of dbs[0]") {
		t.Errorf("got %v", inside)
	}
	if err == nil || !strings.Contains(err.Error(), "dbs[0].dir: databases of a directory cannot have a lease yet") {
		t.Errorf("got %v", err)
	}
}

func TestTheCostOfALeaseIsExplained(t *testing.T) {
	c, err := withLease("lease: {enabled: true}")
	if err != nil {
		t.Fatal(err)
	}
	x, err := explain(c, 10)
	if err != nil {
		t.Fatal(err)
	}
	if want := (requests{Put: 648_000}); x.Lease.Primary != want {
		t.Errorf("primary: got %+v, want %+v", x.Lease.Primary, want)
	}
	if want := (requests{Get: 1_296_000, List: 2 * 2_592_000}); x.Lease.Follower != want {
		t.Errorf("follower: got %+v, want %+v", x.Lease.Follower, want)
	}
	var text strings.Builder
	if err := x.print(&text); err != nil || !strings.Contains(text.String(), "648,000 PUT a month, USD 3.24") {
		t.Errorf("got %v, %s", err, text.String())
	}
}

func TestTheDirectoryOfARoleFileMustBeThere(t *testing.T) {
	dir := t.TempDir()
	for path, want := range map[string]string{
		"":                                "",
		filepath.Join(dir, "role"):        "",
		filepath.Join(dir, "none/role"):   "none does not exist; make it, or choose another path",
		dir:                               "is there and no file",
		filepath.Join(dir, "a", "\x00/r"): "role-file: ",
	} {
		err := Availability{RoleFile: path}.findRoleFile()
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %s", path, err, want)
		}
	}
}
