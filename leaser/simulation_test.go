package leaser

import (
	"os"
	"runtime"
	"slices"
	"strconv"
	"sync/atomic"
	"testing"

	"golang.org/x/sync/errgroup"
)

// exploration is what came of many schedules.
type exploration struct {
	seed   uint64 // of the first that violated something
	broken string
	run    atomic.Uint64
	met    [sights]atomic.Uint64
}

// explore runs schedules until one violates something.
func explore(r rules, schedules uint64) *exploration {
	var next, first atomic.Uint64
	first.Store(schedules)
	var e exploration
	var group errgroup.Group
	for range runtime.GOMAXPROCS(0) {
		group.Go(func() error {
			for s := next.Add(1) - 1; s < first.Load(); s = next.Add(1) - 1 {
				broken, met := simulate(s, r, nil)
				for f := first.Load(); broken != "" && s < f && !first.CompareAndSwap(f, s); f = first.Load() {
				}
				e.count(met)
			}
			return nil
		})
	}
	_ = group.Wait() // no error is returned
	if e.seed = first.Load(); e.seed < schedules {
		e.broken, _ = simulate(e.seed, r, nil)
	}
	return &e
}

func (e *exploration) count(met [sights]bool) {
	e.run.Add(1)
	for i, yes := range met {
		if yes {
			e.met[i].Add(1)
		}
	}
}

// replay runs the schedule of TIDEMARK_SEED alone, with all that happens.
func replay(t *testing.T, r rules) bool {
	seed, err := strconv.ParseUint(os.Getenv("TIDEMARK_SEED"), 10, 64)
	if err != nil {
		return false
	}
	if broken, _ := simulate(seed, r, t.Logf); broken != "" {
		t.Error(broken)
	}
	return true
}

func TestNoScheduleBreaksTheRules(t *testing.T) {
	for name, test := range map[string]struct {
		rules rules
		share uint64 // of the schedules, in percent
		never []experience
	}{
		"Belief":  {rules{}, 45, []experience{stray, hole}},
		"History": {rules{anyTime: true}, 45, []experience{stray}},
		// R6 and R8 together, and R7, make up for each other.
		"HistoryWithoutR6": {rules{anyTime: true, dropFence: true, verify: no}, 5, []experience{hole}},
		"HistoryWithoutR7": {rules{anyTime: true, noConfirm: true, verify: yes}, 5, []experience{stray}},
	} {
		t.Run(name, func(t *testing.T) {
			if replay(t, test.rules) {
				return
			}
			e := explore(test.rules, schedules*test.share/100)
			if e.broken != "" {
				t.Fatalf("TIDEMARK_SEED=%d: %s", e.seed, e.broken)
			}
			t.Logf("%d schedules", e.run.Load())
			for i := range e.met {
				met := e.met[i].Load()
				t.Logf("%7d of them: %s", met, experience(i))
				if met == 0 && !slices.Contains(test.never, experience(i)) {
					t.Errorf("no schedule came across: %s", experience(i))
				}
			}
		})
	}
}

func TestTheSimulationFindsEachRuleThatIsLeftOut(t *testing.T) {
	history := func(r rules) rules {
		r.anyTime = true
		if r.verify == maybe {
			r.verify = no
		}
		return r
	}
	for name, r := range map[string]rules{
		"TRUSTREMOTE":                       {trustRemote: true},
		"NOOWN":                             {noOwn: true},
		"NODEADLINE":                        {noDeadline: true},
		"MARGIN":                            {margin: true},
		"SUSPEND":                           {suspend: true},
		"ADOPTFULL":                         {adoptFull: true},
		"NONONCE":                           {noNonce: true},
		"FROMRESP":                          {fromResp: true},
		"OBSFROMSEND":                       {obsFromSend: true},
		"RELEASEEARLY":                      {releaseEarly: true},
		"DELETE_UNCOND":                     {deleteUncond: true},
		"PLAINPUT":                          history(rules{plainPut: true}),
		"PIPELINE":                          history(rules{pipeline: true}),
		"NOFENCE":                           history(rules{noFence: true}),
		"NOOWN412":                          history(rules{noOwn412: true}),
		"OWN412ALWAYS":                      history(rules{own412Always: true}),
		"NAIVECOMPACT":                      history(rules{naiveCompact: true}),
		"COMPACTUP":                         history(rules{compactUp: true}),
		"NOGENCHECK":                        history(rules{noGenCheck: true}),
		"TAILISFENCE":                       history(rules{tailIsFence: true}),
		"NOCONFIRM":                         history(rules{noConfirm: true}),
		"NOCONFIRM+R8, fences not kept":     history(rules{noConfirm: true, dropFence: true, verify: yes}),
		"NOCONFIRM+R8, the last fence kept": history(rules{noConfirm: true, keepLastFence: true, verify: yes}),
		"DELNEWEST":                         history(rules{delNewest: true, dropFence: true}),
		"L0FIRST":                           history(rules{l0First: true}),
	} {
		t.Run(name, func(t *testing.T) {
			if replay(t, r) {
				return
			}
			e := explore(r, variantSchedules)
			if e.broken == "" {
				t.Fatalf("not found in %d schedules", e.run.Load())
			}
			t.Logf("TIDEMARK_SEED=%d after %d schedules: %s", e.seed, e.run.Load(), e.broken)
		})
	}
}

// variantSchedules are many more than any rule needs.
const variantSchedules = 400_000
