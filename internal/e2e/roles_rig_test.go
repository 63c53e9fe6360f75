//go:build e2e

package e2e_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-io/tidemark/internal/e2e/rig"
	"github.com/tidemark-io/tidemark/internal/testdb"
)

// leaseTimes are short, and still such that a loaded machine keeps them.
const leaseTimes = "ttl: 5s, renew: 1s, request-timeout: 900ms, deadline: 4s, stop: 500ms, poll: 300ms, jitter: 200ms"

// failover is within what a crash takes with leaseTimes: a look, the wait and
// its jitter, and what the machine takes on top.
const failover = 300*time.Millisecond + 5500*time.Millisecond + 200*time.Millisecond

// peer is one node of several that share the databases of a place.
type peer struct {
	name  string
	place rig.Place
	dir   string   // of its databases
	names []string // of its databases, each with a replica of that name below the place
	more  string   // lines of its configuration
	probe string   // on or skip
	proc  *rig.Process
}

// peerStatus is what a test wants of a status.
type peerStatus struct {
	Lease struct {
		Role       string `json:"role"`
		Generation uint64 `json:"generation"`
		Remaining  int64  `json:"remaining_ms"`
		Holder     string `json:"holder"`
	} `json:"lease"`
	Databases []struct {
		Path        string `json:"path"`
		State       string `json:"state"`
		Error       string `json:"error"`
		Quarantined uint64 `json:"quarantined_transactions"`
		Captured    struct {
			TXID uint64 `json:"txid"`
		} `json:"captured"`
		Uploaded struct {
			TXID uint64 `json:"txid"`
		} `json:"uploaded"`
	} `json:"databases"`
}

// newPeer makes a node that is not started yet.
func newPeer(t *testing.T, name string, p rig.Place, more string) *peer {
	t.Helper()
	dir, err := os.MkdirTemp("", "peer") // short: a socket is in it
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { remove(t, dir) })
	return &peer{name: name, place: p, dir: dir, names: []string{"live.db"}, more: more, probe: "skip"}
}

func (p *peer) path(name string) string { return filepath.Join(p.dir, name) }
func (p *peer) live() string            { return p.path("live.db") }
func (p *peer) socket() string          { return p.path("socket") }

// replicaOf is where a database is replicated: at the place itself, if it is the
// only one.
func (p *peer) replicaOf(name string) rig.Place {
	place := p.place
	if len(p.names) > 1 {
		place.Dir = filepath.Join(place.Dir, name)
		before, query, found := strings.Cut(place.URL, "?")
		place.URL = before + "/" + name
		if found {
			place.URL += "?" + query
		}
	}
	return place
}

// create makes the databases of the node, with some commits.
func (p *peer) create(t *testing.T, commits int64) {
	t.Helper()
	for _, name := range p.names {
		db := testdb.Create(t, p.path(name), testdb.Options{})
		commit(t, db, commits)
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// start starts the node.
func (p *peer) start(t *testing.T) {
	t.Helper()
	text := fmt.Sprintf("socket: %s\nfollow-interval: 100ms\nlease: {enabled: true, probe: %s, node: %s, %s}\n%s\ndbs:\n",
		p.socket(), p.probe, p.name, leaseTimes, p.more)
	for _, name := range p.names {
		text += fmt.Sprintf("  - {path: %q, replica: {url: %q}}\n", p.path(name), p.replicaOf(name).URL)
	}
	conf := p.path("tidemark.yml")
	if err := os.WriteFile(conf, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	p.proc = rig.Tidemark(t, p.place.Env, "replicate", "-config", conf)
}

// order runs a command against the node.
func (p *peer) order(t *testing.T, command string, args ...string) rig.Exit {
	t.Helper()
	return rig.Tidemark(t, p.place.Env, append([]string{command, "-socket", p.socket()}, args...)...).Wait(t, rig.Limit)
}

// status asks the node.
func (p *peer) status(t *testing.T) (s peerStatus, err error) {
	t.Helper()
	if !p.proc.Alive() {
		t.Fatalf("node %s has ended:\n%s", p.name, p.proc.Output())
	}
	client := http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{
		DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", p.socket())
		},
	}}
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://peer/status", nil)
	if err != nil {
		return s, err
	}
	reply, err := client.Do(request)
	if err != nil {
		return s, err
	}
	return s, errors.Join(json.NewDecoder(reply.Body).Decode(&s), reply.Body.Close())
}

// await waits until the node has a role.
func (p *peer) await(t *testing.T, role string) (s peerStatus) {
	t.Helper()
	rig.Eventually(t, rig.Limit, func(context.Context) (err error) {
		if s, err = p.status(t); err == nil && s.Lease.Role != role {
			err = fmt.Errorf("node %s is %q, want %q", p.name, s.Lease.Role, role)
		}
		return err
	})
	return s
}

// awaitCopy waits until a follower has applied what the primary confirms now.
func (p *peer) awaitCopy(t *testing.T, primary *peer) {
	t.Helper()
	for _, name := range p.names {
		primary.mustSync(t, name)
	}
	want, err := primary.status(t)
	if err != nil {
		t.Fatal(err)
	}
	rig.Eventually(t, rig.Limit, func(context.Context) error {
		got, err := p.status(t)
		if err != nil {
			return err
		}
		for i, d := range got.Databases {
			if d.State != "following" || d.Captured.TXID < want.Databases[i].Captured.TXID {
				return fmt.Errorf("%s of %s is %s at %d, want %d (%s)", d.Path, p.name, d.State, d.Captured.TXID, want.Databases[i].Captured.TXID, d.Error)
			}
		}
		return nil
	})
}

// mustSync confirms what is committed now.
func (p *peer) mustSync(t *testing.T, name string) {
	t.Helper()
	if e := p.order(t, "sync", "-wait", "-timeout", "60s", p.path(name)); e.Code != 0 {
		t.Fatalf("sync of %s on %s ended with %d: %s", name, p.name, e.Code, e.Output)
	}
}

// write makes commits on the database of a node from another process's view.
func (p *peer) write(t *testing.T, name string, commits int64) {
	t.Helper()
	db := testdb.Open(t, p.path(name))
	commit(t, db, commits)
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
}

// isLast compares the restored replicas with the databases of the last primary.
func (p *peer) isLast(t *testing.T) {
	t.Helper()
	for _, name := range p.names {
		restoresEqual(t, p.replicaOf(name), p.path(name))
	}
}

// allUploaded waits until the node says that all it has is on the replica.
func (p *peer) allUploaded(t *testing.T) {
	t.Helper()
	rig.Eventually(t, rig.Limit, func(context.Context) error {
		s, err := p.status(t)
		if err != nil {
			return err
		}
		for _, d := range s.Databases {
			if d.State != "replicating" || d.Uploaded.TXID == 0 || d.Uploaded != d.Captured {
				return fmt.Errorf("%s is %s, captured to %d, uploaded to %d", d.Path, d.State, d.Captured.TXID, d.Uploaded.TXID)
			}
		}
		return nil
	})
}
