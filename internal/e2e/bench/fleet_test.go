//go:build bench

package bench_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-io/tidemark/internal/e2e/rig"
	"github.com/tidemark-io/tidemark/internal/testbucket"
	"github.com/tidemark-io/tidemark/internal/testdb"
)

const (
	fleetBytes   = 40 << 10
	fleetCommits = 40
)

// fleet is a program with very many idle databases in directories of a hundred.
type fleet struct {
	t       *testing.T
	p       rig.Place
	size    int
	dir     string
	command rig.Command
}

// fleets are how many databases each program gets: litestream takes no more on
// a small machine.
func fleets() [2]int { return [2]int{10_000, 200} }

func TestFleet(t *testing.T) {
	server := testbucket.Gateway(t)
	rows := []row{
		{name: "databases of 40 KB", more: true},
		{name: "first copies of all", unit: "s"},
		{name: "restart until the last one replicates", unit: "s", aim: "< 60 s"},
		{name: "resident memory", unit: "MB", aim: "<= 300 MB"},
		{name: "descriptors", aim: "< 512"},
		{name: "of a core, idle for a minute", unit: "%", aim: "< 0.5 %"},
		{name: "requests in that minute", aim: "0"},
		{name: "commit to bucket p50", unit: "ms"},
		{name: "commit to bucket, worst", unit: "ms", aim: "< 1000 ms"},
		{name: "peak memory", unit: "MB"},
	}
	for i, name := range []string{"tidemark", "litestream"} {
		t.Run(name, func(t *testing.T) {
			f := newFleet(t, name, place(t, server), fleets()[i])
			for k, v := range f.measure() {
				rows[k].figures[i] = v
			}
		})
	}
	printTable(t, fmt.Sprintf("%d idle databases (litestream: %d)", fleets()[0], fleets()[1]), rows)
}

func newFleet(t *testing.T, name string, p rig.Place, size int) *fleet {
	t.Helper()
	f := &fleet{t: t, p: p, size: size, dir: t.TempDir()}
	config := filepath.Join(t.TempDir(), name+".yml")
	text := fmt.Sprintf("dbs:\n- dir: %q\n  pattern: '*.db'\n  recursive: true\n  watch: true\n  replica: {url: %q}\n", f.dir, p.URL)
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	f.command = rig.Command{Path: os.Getenv("TIDEMARK_BIN"), Args: []string{"replicate", "-config", config}, Env: p.Env}
	if name == "litestream" {
		f.command.Path = rig.Tool(t, "bin/litestream")
	}
	model := filepath.Join(t.TempDir(), "model.db")
	db := testdb.Create(t, model, testdb.Options{})
	testdb.Exec(t, db, fmt.Sprintf("CREATE TABLE fill AS SELECT randomblob(%d) AS x", fleetBytes-20_000))
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(model)
	if err != nil {
		t.Fatal(err)
	}
	for i := range size {
		path := f.path(i)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return f
}

func (f *fleet) name(i int) string { return fmt.Sprintf("%03d/tenant-%05d.db", i/100, i) }

func (f *fleet) path(i int) string { return filepath.Join(f.dir, f.name(i)) }

func (f *fleet) measure() [10]float64 {
	start := time.Now()
	first := rig.Start(f.t, f.command)
	f.await(func() error {
		if n := f.bases(); n < f.size {
			return fmt.Errorf("%d of %d databases are stored", n, f.size)
		}
		return nil
	})
	bases := time.Since(start)
	first.Stop(f.t, 4*minute)

	start = time.Now()
	sidecar := rig.Start(f.t, f.command)
	f.commit(f.size - 1)
	restart := time.Since(start)
	rig.Pause(f.t, 20*time.Second) // what the start brought along is over
	quiet, ticks := len(f.p.Meter.Requests()), cpu(f.t, sidecar.Pid())
	rig.Pause(f.t, minute)
	requests, percent := f.others(f.p.Meter.Requests()[quiet:], f.size-1), cpu(f.t, sidecar.Pid())-ticks
	memory, files := resident(f.t, sidecar.Pid()), descriptors(f.t, sidecar.Pid())

	var lags []time.Duration
	rnd := rand.New(rand.NewPCG(1, 2))
	for range fleetCommits {
		lags = append(lags, f.commit(rnd.IntN(f.size)))
	}
	peak := sidecar.Peak()
	sidecar.Stop(f.t, 4*minute)
	f.compare(f.size - 1)
	return [10]float64{
		float64(f.size), bases.Seconds(), restart.Seconds(), memory, float64(files), percent / 60, float64(requests),
		milliseconds(lags, 50), milliseconds(lags, 100), float64(peak) / megabyte,
	}
}

func (f *fleet) await(check func() error) {
	f.t.Helper()
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for end := time.Now().Add(8 * minute); ; <-tick.C {
		err := check()
		if err == nil {
			return
		}
		if time.Now().After(end) {
			f.t.Fatal(err)
		}
	}
}

// others counts the requests that are not about a database that was written to:
// its commits are due to be merged.
func (f *fleet) others(requests []rig.Request, written int) (n int) {
	name := filepath.Base(f.path(written))
	for _, r := range requests {
		if !strings.Contains(r.Path+"?"+r.Query, name) {
			f.t.Logf("%s %s?%s", r.Method, r.Path, r.Query)
			n++
		}
	}
	return n
}

// bases counts the databases with a file on the bucket.
func (f *fleet) bases() int {
	name := regexp.MustCompile(`tenant-(\d+)\.db/`)
	there := map[string]struct{}{}
	for _, r := range f.p.Meter.Requests() {
		if m := name.FindStringSubmatch(r.Path); m != nil && r.Stored() {
			there[m[1]] = struct{}{}
		}
	}
	return len(there)
}

// commit commits to a database and returns how long after that an upload of it
// was answered that began later.
func (f *fleet) commit(i int) time.Duration {
	f.t.Helper()
	begin := time.Now()
	db := testdb.Open(f.t, f.path(i))
	testdb.Exec(f.t, db, "INSERT INTO fill VALUES (1)")
	end := time.Now()
	var lag time.Duration
	rig.Eventually(f.t, 5*minute, func(context.Context) error {
		for _, r := range f.p.Meter.Requests() {
			if r.Stored() && strings.Contains(r.Path, f.name(i)+"/") && r.Start.After(begin) {
				lag = r.Done.Sub(end)
				return nil
			}
		}
		return fmt.Errorf("no upload of %s", f.name(i))
	})
	if err := db.Close(); err != nil {
		f.t.Fatal(err)
	}
	return lag
}

// compare restores a database and compares it with the live one.
func (f *fleet) compare(i int) {
	f.t.Helper()
	p := f.p
	before, query, _ := strings.Cut(p.URL, "?")
	p.URL = before + "/" + f.name(i) + "?" + query
	out := filepath.Join(f.t.TempDir(), "restored.db")
	restore := rig.TryRestore
	if strings.HasSuffix(f.command.Path, "litestream") {
		restore = rig.TryLitestreamRestore
	}
	if e := restore(f.t, p, out); e.Code != 0 {
		f.t.Fatalf("restore exited with %d", e.Code)
	}
	testdb.SameDatabase(f.t, out, f.path(i))
}

// proc reads a file of a process.
func proc(t *testing.T, pid int, name string) string {
	t.Helper()
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/%s", pid, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// cpu returns the time of a process in hundredths of a second.
func cpu(t *testing.T, pid int) (ticks float64) {
	t.Helper()
	_, rest, _ := strings.Cut(proc(t, pid, "stat"), ") ")
	for _, field := range strings.Fields(rest)[11:13] { // utime, stime
		n, err := strconv.ParseFloat(field, 64)
		if err != nil {
			t.Fatal(err)
		}
		ticks += n
	}
	return ticks
}

// resident returns the memory of a process in MB.
func resident(t *testing.T, pid int) float64 {
	t.Helper()
	m := regexp.MustCompile(`VmRSS:\s+(\d+) kB`).FindStringSubmatch(proc(t, pid, "status"))
	if m == nil {
		t.Fatal("no VmRSS")
	}
	kb, err := strconv.ParseFloat(m[1], 64)
	if err != nil {
		t.Fatal(err)
	}
	return kb / 1024
}

func descriptors(t *testing.T, pid int) int {
	t.Helper()
	files, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid))
	if err != nil {
		t.Fatal(err)
	}
	return len(files)
}
