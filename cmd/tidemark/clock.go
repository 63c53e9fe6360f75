//go:build !faultyclock

package main

import "github.com/tidemark-io/tidemark/leaser"

// leaseClock is what the lease goes by.
func leaseClock() leaser.Clock { return leaser.SystemClock{} }
