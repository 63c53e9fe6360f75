package leaser

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"

	"github.com/tidemark-io/tidemark/internal/filelock"
)

// ErrNodeLocked is wrapped when another process uses the directory of a node.
var ErrNodeLocked = errors.New("another process uses the directory of this node")

const nodeFile = "node.json"

// Node is the identity of a process among those that share a replica, kept in a
// directory that one process at a time may use. It survives restarts.
type Node struct {
	Name      string // for people, and for naming it as a successor
	Owner     string // as locks have it
	BootID    string // of the machine since it started, and of the directory; empty: a lock is never known for that of an earlier process
	Advertise string // URL for others; set it before New

	dir  string
	held *os.File // the directory, locked

	mu    sync.Mutex
	state nodeState
}

// nodeState is what node.json keeps.
type nodeState struct {
	ID         string `json:"id"`
	Cluster    string `json:"cluster,omitempty"`
	Generation uint64 `json:"generation,omitempty"` // highest ever seen
}

// OpenNode takes the directory dir, which is made if need be, for the node
// name. It wraps ErrNodeLocked. A crash frees the directory.
func OpenNode(dir, name string) (*Node, error) {
	if name == "" || len(name) > 200 {
		return nil, fmt.Errorf("node name %.40q: want 1 to 200 characters", name)
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("make node directory: %w", err)
	}
	held, err := os.Open(dir)
	if err != nil {
		return nil, fmt.Errorf("open node directory: %w", err)
	}
	n := &Node{Name: name, dir: dir, held: held}
	if err := n.open(); err != nil {
		return nil, errors.Join(fmt.Errorf("node directory %s: %w", dir, err), held.Close())
	}
	return n, nil
}

func (n *Node) open() error {
	err := filelock.Exclusive(n.held)
	if errors.Is(err, filelock.ErrHeld) {
		return ErrNodeLocked
	}
	if err != nil {
		return err
	}
	if n.BootID, err = placeID(n.held); err != nil {
		return err
	}
	text, err := os.ReadFile(filepath.Join(n.dir, nodeFile))
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return err
	case json.Unmarshal(text, &n.state) != nil:
		n.state = nodeState{} // a torn file tells nothing; the lock tells the rest
	}
	if n.state.ID == "" {
		n.state.ID = rand.Text()
		if err := n.save(); err != nil {
			return err
		}
	}
	n.Owner = n.Name + "/" + n.state.ID
	return nil
}

// Close gives the directory up.
func (n *Node) Close() error { return n.held.Close() }

// Cluster names the set of nodes that share the replica; empty until the node
// has seen a lock.
func (n *Node) Cluster() string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.state.Cluster
}

// Generation is the highest generation that this node has seen.
func (n *Node) Generation() uint64 {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.state.Generation
}

// remember keeps what a lock told, if it is new.
func (n *Node) remember(cluster string, generation uint64) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	next := n.state
	if next.Cluster == "" {
		next.Cluster = cluster
	}
	next.Generation = max(next.Generation, generation)
	if next == n.state {
		return nil
	}
	n.state = next
	return n.save()
}

// save replaces node.json, all or nothing.
func (n *Node) save() error {
	text, err := json.Marshal(n.state)
	if err != nil {
		return err
	}
	path := filepath.Join(n.dir, nodeFile)
	f, err := os.OpenFile(path+".new", os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("write node: %w", err)
	}
	_, err = f.Write(append(text, '\n'))
	if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
		return fmt.Errorf("write node: %w", err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		return fmt.Errorf("write node: %w", err)
	}
	return n.held.Sync()
}
