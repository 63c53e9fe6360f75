package main

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// gathered returns the values of all series by "name label=value ...".
func gathered(t *testing.T, reg prometheus.Gatherer) map[string]float64 {
	t.Helper()
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]float64{}
	for _, family := range families {
		for _, m := range family.GetMetric() {
			name := family.GetName()
			for _, label := range m.GetLabel() {
				name += fmt.Sprintf(" %s=%s", label.GetName(), label.GetValue())
			}
			all[name] = m.GetCounter().GetValue() + m.GetGauge().GetValue()
		}
	}
	return all
}

func TestTheFirstDatabasesHaveMetricsOfTheirOwn(t *testing.T) {
	m := newMetrics(2)
	a, b, c, d := m.capture("/a"), m.capture("/b"), m.capture("/c"), m.capture("/d")
	if a == b || a == c || c != d || m.capture("/a") != a {
		t.Error("the metrics of a and b are not their own, or those of c and d not shared")
	}
	got := gathered(t, m.registry)
	for name, want := range map[string]bool{
		"tidemark_capture_commits_total db=/a":     true,
		"tidemark_capture_wal_frames db=/a":        true,
		"tidemark_capture_commits_total db=/c":     false,
		"tidemark_capture_commits_total db=others": true,
		"tidemark_capture_wal_frames db=others":    false,
	} {
		if _, there := got[name]; there != want {
			t.Errorf("%s: there %t, want %t", name, there, want)
		}
	}
	m.forget("/a")
	m.forget("/c")
	if e := m.capture("/e"); e == c || m.label("/e") != "/e" || m.label("/a") != labelOthers {
		t.Error("the room of a forgotten database is lost")
	}
	if _, there := gathered(t, m.registry)["tidemark_capture_commits_total db=/a"]; there {
		t.Error("a forgotten database is still shown")
	}
	m.capture("/a") // again, now without room
	gathered(t, m.registry)
}

func TestMetricsOfManyDatabasesAreFew(t *testing.T) {
	m := newMetrics(ownSeries)
	r := Report{}
	for i := range 10_000 {
		d := DatabaseReport{
			Path: fmt.Sprint("/db/", i), State: stateReplicating, Uploaded: Position{TXID: 3},
			LagSeconds: float64(i % 7), SpoolFiles: 1, SpoolBytes: 10,
		}
		if i == 9_000 {
			d.State, d.Error = stateFailing, "disk full"
		}
		m.capture(d.Path)
		r.Databases = append(r.Databases, d)
	}
	m.registry.MustRegister(newReportCollector(func() Report { return r }, m.label))
	got := gathered(t, m.registry)
	if len(got) > 30*ownSeries {
		t.Errorf("%d series", len(got))
	}
	for name, want := range map[string]float64{
		"tidemark_databases state=replicating":  9_999,
		"tidemark_databases state=failing":      1,
		"tidemark_databases state=waiting":      0,
		"tidemark_ready":                        0,
		"tidemark_database_failing db=others":   1,
		"tidemark_database_failing db=/db/0":    0,
		"tidemark_spool_bytes db=others":        98_000,
		"tidemark_upload_lag_seconds db=others": 6,
		"tidemark_upload_lag_seconds db=/db/3":  3,
		"tidemark_uploaded_txid db=/db/3":       3,
	} {
		if value, there := got[name]; !there || value != want {
			t.Errorf("%s: got %v (%t), want %v", name, value, there, want)
		}
	}
	for name := range got {
		if strings.HasPrefix(name, "tidemark_build_info") && strings.Contains(name, "sqlite=3.") {
			return
		}
	}
	t.Error("no build info")
}

func TestProblemsNameWhatIsNotOnItsReplica(t *testing.T) {
	since := time.Unix(1, 0)
	for _, c := range []struct {
		state string
		txid  uint64
		want  string
	}{
		{stateReplicating, 1, ""},
		{stateReplicating, 0, "no full copy is on the replica yet"},
		{stateWaiting, 0, ""},
		{stateStarting, 0, "starting"},
		{stateFailing, 1, "broken"},
		{stateFenced, 1, "broken"},
	} {
		d := DatabaseReport{Path: "/a", State: c.state, Uploaded: Position{TXID: c.txid}}
		if c.want == "broken" {
			d.Trouble = Trouble{Error: "broken", FailingSince: since}
		}
		p, bad := d.problem()
		if bad != (c.want != "") || bad && (p.Error != c.want || p.Name != "/a" || !p.Since.Equal(d.FailingSince)) {
			t.Errorf("%s at %d: got %+v, %t; want %q", c.state, c.txid, p, bad, c.want)
		}
		if all := (Report{Databases: []DatabaseReport{d, d}}).problems(); bad && len(all) != 2 || !bad && len(all) != 0 {
			t.Errorf("%s: the problems of two are %v", c.state, all)
		}
	}
}
