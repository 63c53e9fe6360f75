//go:build e2e

package e2e_test

import (
	"testing"
	"time"

	"github.com/tidemark-io/tidemark/internal/e2e/rig"
	"github.com/tidemark-io/tidemark/internal/testbucket"
)

func TestServerKilledAgainAndAgainLosesNothing(t *testing.T) {
	t.Parallel()
	p := rig.S3(t)
	l := startLoop(t, p)
	sidecar := rig.Replicate(t, l.path, p)
	awaitFile(t, p)
	for range 8 {
		rig.Pause(t, time.Duration(l.rnd.IntN(1500))*time.Millisecond)
		p.Server.Kill()
		rig.Pause(t, time.Duration(l.rnd.IntN(1500))*time.Millisecond)
		p.Server.Start()
		l.check(t)
	}
	l.end(t, sidecar)
}

func TestRepliesLostAfterTheObjectWasStored(t *testing.T) {
	t.Parallel()
	p := rig.S3(t)
	proxy := testbucket.NewProxy(t, p.Meter.Endpoint())
	l := startLoop(t, p)
	proxy.LoseReplies(1) // that of the base
	sidecar := rig.Replicate(t, l.path, p.Via(proxy.Endpoint()))
	awaitFile(t, p)
	for i := range 20 {
		proxy.LoseReplies(1)
		rig.Pause(t, time.Duration(l.rnd.IntN(500))*time.Millisecond)
		if i%5 == 4 {
			l.check(t)
		}
		if i%7 == 6 { // a kill while it is unclear what was stored
			sidecar.Kill(t)
			sidecar = rig.Replicate(t, l.path, p.Via(proxy.Endpoint()))
		}
	}
	proxy.Heal()
	l.end(t, sidecar)
}

func TestServerThatStallsAndFailsForAWhile(t *testing.T) {
	t.Parallel()
	p := rig.S3(t)
	proxy := testbucket.NewProxy(t, p.Meter.Endpoint())
	l := startLoop(t, p)
	sidecar := rig.Replicate(t, l.path, p.Via(proxy.Endpoint()))
	for _, fault := range []func(){
		proxy.Drop, func() { proxy.Status(503) }, func() { proxy.Status(429) }, func() { proxy.Lag(700 * time.Millisecond) },
	} {
		fault()
		rig.Pause(t, time.Second)
		proxy.Heal()
		rig.Pause(t, time.Second)
	}
	l.check(t)
	l.end(t, sidecar)
}
