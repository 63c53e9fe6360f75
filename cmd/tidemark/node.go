package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/tidemark-io/tidemark/capture"
	"github.com/tidemark-io/tidemark/cmd/tidemark/internal/child"
	"github.com/tidemark-io/tidemark/leaser"
	"github.com/tidemark-io/tidemark/s3"
	"github.com/tidemark-io/tidemark/storage"
)

// node is a process under a lease: it follows the primary of its databases, or
// is the primary.
type node struct {
	cfg       Config
	log       *slog.Logger
	buckets   *buckets // to read
	workshop  *workshop
	identity  *leaser.Node
	leaser    *leaser.Leaser
	lock      storage.Bucket // of the lease
	databases []*followed
	started   time.Time
	outlets
	acceptLoss atomic.Bool // databases are served though files of their replicas are missing

	current
}

// outlets are who is told of the role.
type outlets struct {
	file      *roleFile
	onPromote hook
	onDemote  hook
	app       *application
	appEnded  chan struct{} // closed when the child that runs in any role has ended
	reaper    *child.Reaper // of the first process of a container; nil: it is none
	troubles  *troubles
}

// current is what a node is at, for others to look at.
type current struct {
	mu    sync.Mutex
	term  *term
	told  string // the role that was told last
	quit  context.CancelCauseFunc
	ended error // why the node itself is to end
	over  bool
}

func newNode(ctx context.Context, cfg Config, log *slog.Logger) (*node, error) {
	n := &node{cfg: cfg, log: log, started: time.Now().UTC(), buckets: newBuckets(newMetrics(cfg.ownSeries()), log)}
	command, err := cfg.command()
	if err != nil {
		return nil, err
	}
	if n.outlets, err = newOutlets(cfg, command, log); err != nil {
		return nil, err
	}
	for _, d := range cfg.Databases {
		d.warnRetention(log)
		f, err := newFollowed(ctx, d, n)
		if err != nil {
			return nil, err
		}
		f.log.Info("replicating under a lease", "to", f.remote.place.String(), "bucket", logged(f.remote.bucket))
		n.databases = append(n.databases, f)
	}
	if n.workshop, err = newWorkshop(cfg.Scratch); err != nil {
		return nil, err
	}
	if err := n.join(ctx); err != nil {
		return nil, errors.Join(err, n.workshop.Close())
	}
	return n, nil
}

func newOutlets(cfg Config, command []string, log *slog.Logger) (outlets, error) {
	if err := cfg.HA.findRoleFile(); err != nil {
		return outlets{}, err
	}
	promote, err := commandLine(keyOnPromote, cfg.HA.OnPromote)
	if err != nil {
		return outlets{}, err
	}
	demote, err := commandLine(keyOnDemote, cfg.HA.OnDemote)
	if err != nil {
		return outlets{}, err
	}
	var reaper *child.Reaper
	if os.Getpid() == 1 {
		reaper = child.NewReaper()
	}
	o := outlets{
		reaper:    reaper,
		file:      &roleFile{path: cfg.HA.RoleFile},
		onPromote: hook{name: keyOnPromote, command: promote, timeout: cfg.HA.HookTimeout, reaper: reaper, log: log},
		onDemote:  hook{name: keyOnDemote, command: demote, timeout: cfg.HA.HookTimeout, reaper: reaper, log: log},
		app:       &application{command: command, reaper: reaper, log: log, changed: make(chan struct{}, 1)},
		appEnded:  make(chan struct{}),
		troubles:  &troubles{},
	}
	return o, errors.Join(o.onPromote.find(), o.onDemote.find())
}

// join takes the identity of the node and prepares its part in the election.
func (n *node) join(ctx context.Context) error {
	name, err := n.cfg.HA.Lease.node()
	if err != nil {
		return err
	}
	place, err := n.cfg.leasePlace()
	if err != nil {
		return err
	}
	place.s3.Retry = s3.Retry{Attempts: 1} // a repetition that is refused tells nothing about the first attempt
	r, err := n.buckets.remote(ctx, place, n.log)
	if err != nil {
		return err
	}
	n.lock = r.bucket
	if n.identity, err = leaser.OpenNode(n.directory(), name); err != nil {
		if errors.Is(err, leaser.ErrNodeLocked) {
			err = fmt.Errorf("%w: another sidecar replicates these databases; stop it first", err)
		}
		return err
	}
	n.identity.Advertise = n.cfg.HA.Lease.Advertise
	n.leaser = leaser.New(n.lock, n.identity, n.cfg.HA.Lease.Times, leaser.Options{
		Log: n.log, Metrics: leaser.NewMetrics(n.buckets.metrics.registry), Floor: n.floor, Clock: leaseClock(),
	})
	n.log.Info("lease", "lock", place.String()+"/"+leaser.Key, "node", name)
	return nil
}

// directory is where a node keeps what it knows of itself.
func (n *node) directory() string {
	return filepath.Join(capture.StateDir(n.cfg.Databases[0].Path), "node")
}

// floor is the highest generation that the replicas tell of.
func (n *node) floor(ctx context.Context) (highest uint64, err error) {
	for _, f := range n.databases {
		generation, err := f.remote.replica.Generation(ctx)
		if err != nil {
			return 0, err
		}
		highest = max(highest, generation)
	}
	return highest, nil
}

// headName names a database in the lock, which knows the only one by no name.
func (n *node) headName(d Database) string {
	if len(n.cfg.Databases) == 1 {
		return ""
	}
	return d.Replica.where()
}

// letAll closes what the databases have open.
func (n *node) letAll() error {
	errs := make([]error, len(n.databases))
	for i, f := range n.databases {
		errs[i] = f.Close()
	}
	return errors.Join(errs...)
}

// Close gives all free.
func (n *node) Close() error {
	var group errgroup.Group
	group.Go(n.letAll)
	group.Go(n.workshop.Close)
	group.Go(n.identity.Close)
	return group.Wait()
}

// watch tells of the role when it changes by itself, until ctx ends.
func (n *node) watch(ctx context.Context) {
	tick := time.NewTicker(min(250*time.Millisecond, n.cfg.HA.Lease.Times.Renew/2))
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			n.publish()
		}
	}
}
