package main

import (
	"cmp"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/tidemark-io/tidemark/leaser"
)

// Words of the configuration.
const (
	probeOn    = "on"
	probeSkip  = "skip"
	execAny    = "any" // the other one is rolePrimary
	fenceLock  = "lock"
	fenceChmod = "chmod"
	fenceOff   = "off"
)

// Lease says whether several nodes share the databases, one of which at a time
// is the primary.
type Lease struct {
	Enabled   bool          `yaml:"enabled"`
	URL       string        `yaml:"url"`       // where lock.json is kept; empty: see place
	Node      string        `yaml:"node"`      // name of this node; empty: that of the machine
	Advertise string        `yaml:"advertise"` // URL at which others reach this node
	Probe     string        `yaml:"probe"`     // on or skip
	Times     leaser.Config `yaml:",inline"`
}

// Availability is what the databases of a node do by its role.
type Availability struct {
	Lease          Lease         `yaml:"lease"`
	FollowInterval time.Duration `yaml:"follow-interval"`
	ExecRole       string        `yaml:"exec-role"`  // primary or any: when the child runs
	RoleFile       string        `yaml:"role-file"`  // empty: none
	OnPromote      string        `yaml:"on-promote"` // command lines
	OnDemote       string        `yaml:"on-demote"`
	HookTimeout    time.Duration `yaml:"hook-timeout"`
	FenceLocal     string        `yaml:"fence-local"` // lock, chmod or off
}

func defaultAvailability() Availability {
	return Availability{
		Lease:          Lease{Probe: probeOn}, // its times follow from ttl
		FollowInterval: time.Second, ExecRole: rolePrimary, HookTimeout: 10 * time.Second, FenceLocal: fenceLock,
	}
}

// validateLease names what is not possible with a lease, or without one.
func (c Config) validateLease() error {
	if !c.HA.Lease.Enabled {
		return c.HA.needless()
	}
	errs := []error{c.HA.Lease.validate(), c.HA.validate(), c.checkRoleFile()}
	if c.HA.ExecRole == execAny && c.Exec == "" {
		errs = append(errs, errors.New("exec-role: there is no exec that it could be about; remove the key"))
	}
	for i, d := range c.Databases {
		if d.Dir != "" {
			errs = append(errs, fmt.Errorf("dbs[%d].dir: databases of a directory cannot have a lease yet; list each with path", i))
		}
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	_, err := c.leasePlace()
	return err
}

// needless refuses what would do nothing.
func (h Availability) needless() error {
	d := defaultAvailability()
	d.Lease = h.Lease
	if h != d {
		return errors.New("lease.enabled: it is false, so follow-interval, exec-role, role-file, on-promote, on-demote, hook-timeout " +
			"and fence-local do nothing; remove them, or enable the lease")
	}
	return nil
}

func (l Lease) validate() error {
	var errs []error
	if err := l.Times.Validate(); err != nil {
		errs = append(errs, err)
	}
	if l.Probe != probeOn && l.Probe != probeSkip {
		errs = append(errs, fmt.Errorf("lease.probe: %q; use on, or skip", l.Probe))
	}
	if strings.ContainsFunc(l.Node, func(r rune) bool { return r <= ' ' || r == '/' || r == 0x7f }) || len(l.Node) > 200 {
		errs = append(errs, fmt.Errorf("lease.node: %q; use a name of up to 200 letters without spaces and slashes", l.Node))
	}
	if u, err := url.Parse(l.Advertise); l.Advertise != "" && (err != nil || u.Host == "" || u.User != nil || u.Scheme != "http" && u.Scheme != "https") {
		errs = append(errs, fmt.Errorf("lease.advertise: %q; use a URL such as http://10.0.0.3:9090", withoutQuery(l.Advertise)))
	}
	return errors.Join(errs...)
}

func (h Availability) validate() error {
	var errs []error
	if h.FollowInterval < 10*time.Millisecond || h.FollowInterval > time.Hour {
		errs = append(errs, fmt.Errorf("follow-interval: %s; use 10ms to 1h", h.FollowInterval))
	}
	if h.HookTimeout < 10*time.Millisecond || h.HookTimeout > time.Hour {
		errs = append(errs, fmt.Errorf("hook-timeout: %s; use 10ms to 1h", h.HookTimeout))
	}
	if h.ExecRole != rolePrimary && h.ExecRole != execAny {
		errs = append(errs, fmt.Errorf("exec-role: %q; use primary, or any", h.ExecRole))
	}
	if h.FenceLocal != fenceLock && h.FenceLocal != fenceChmod && h.FenceLocal != fenceOff {
		errs = append(errs, fmt.Errorf("fence-local: %q; use lock, chmod or off", h.FenceLocal))
	}
	if h.RoleFile != "" && !filepath.IsAbs(h.RoleFile) {
		errs = append(errs, fmt.Errorf("role-file: %q is not an absolute path", h.RoleFile))
	}
	for key, line := range map[string]string{"on-promote": h.OnPromote, "on-demote": h.OnDemote} {
		if _, err := commandLine(key, line); err != nil {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// node is the name of this node.
func (l Lease) node() (string, error) {
	if l.Node != "" {
		return l.Node, nil
	}
	name, err := os.Hostname()
	if err != nil || name == "" {
		return "", fmt.Errorf("lease.node: this machine has no name; set one: %w", cmp.Or(err, errors.New("it is empty")))
	}
	return name, nil
}
