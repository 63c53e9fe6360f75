package main

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"time"

	"github.com/tidemark-io/tidemark/internal/loop"
	"github.com/tidemark-io/tidemark/s3"
)

// probeHolds is how long a bucket is trusted after it was tested.
const probeHolds = 7 * 24 * time.Hour

// probed is what a node keeps of a test that ended well.
type probed struct {
	Place string    `json:"place"`
	At    time.Time `json:"at"`
}

// probe tests, once a week, whether the bucket keeps its word on conditional
// writes, without which two nodes may be primary at once. It is tried again
// while the bucket cannot be reached.
func (n *node) probe(ctx context.Context) error {
	if n.cfg.HA.Lease.Probe == probeSkip {
		n.log.Warn("the bucket is trusted with conditional writes and not tested", "lease.probe", probeSkip)
		return nil
	}
	place, err := n.cfg.leasePlace()
	if err != nil {
		return err
	}
	path := filepath.Join(n.directory(), "probe.json")
	if text, err := os.ReadFile(path); err == nil {
		var last probed
		if json.Unmarshal(text, &last) == nil && last.Place == place.key() && time.Since(last.At).Abs() < probeHolds {
			return nil
		}
	}
	err = loop.Run(ctx, loop.Options{Name: "probe", MinBackoff: time.Second, MaxBackoff: 15 * time.Second, Log: n.log},
		func(ctx context.Context) error {
			result, err := s3.Probe(ctx, n.lock, n.log)
			if errors.Is(err, s3.ErrUnfit) {
				return loop.Fatal(err)
			}
			if err == nil {
				n.log.Info("conditional writes work as they must", "after", result.Took.Round(time.Millisecond), "checks", len(result.Checks))
				return loop.Fatal(errProbed)
			}
			n.leaser.Hindered(err)
			return err
		})
	if !errors.Is(err, errProbed) {
		return err
	}
	n.leaser.Hindered(nil)
	text, err := json.Marshal(probed{Place: place.key(), At: time.Now().UTC()})
	if err != nil {
		return err
	}
	return replaceFile(path, text)
}

// errProbed ends the tests of a bucket: one ended well.
var errProbed = errors.New("conditional writes work")
