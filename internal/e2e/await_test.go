//go:build e2e

package e2e_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/tidemark-io/tidemark/internal/e2e/rig"
)

// awaitFile waits for the first file of a replica.
func awaitFile(t *testing.T, p rig.Place) {
	t.Helper()
	awaitTXID(t, p, 1)
}

// awaitTXID waits until a transaction is stored.
func awaitTXID(t *testing.T, p rig.Place, txid uint64) {
	t.Helper()
	rig.Eventually(t, rig.Limit, func(context.Context) error {
		if n := p.Newest(t); n < txid {
			return fmt.Errorf("the newest file of %s has TXID %d, want %d", p.URL, n, txid)
		}
		return nil
	})
}
