package main

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

func noteOfRole(t *testing.T, path string) (note roleNote) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err == nil {
		err = json.Unmarshal(text, &note)
	}
	if err != nil {
		t.Fatal(err)
	}
	return note
}

func TestRoleFileIsReplacedWhenTheRoleOrTheLeaseMoves(t *testing.T) {
	path := filepath.Join(t.TempDir(), "role")
	f := &roleFile{path: path}
	inode := func() fs.FileInfo {
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		return info
	}
	write := func(r RoleReport) {
		if err := f.Write(r); err != nil {
			t.Fatal(err)
		}
	}
	primary := RoleReport{Role: rolePrimary, Generation: 7, Remaining: time.Hour.Milliseconds()}
	write(primary)
	first := inode()
	if note := noteOfRole(t, path); note.Role != rolePrimary || note.Generation != 7 || time.Until(note.Until) > time.Hour {
		t.Errorf("got %+v", note)
	}
	if first.Mode().Perm() != 0o644 {
		t.Errorf("mode %v; applications of other users cannot read it", first.Mode())
	}
	write(primary)
	if !os.SameFile(first, inode()) {
		t.Error("written though nothing moved")
	}
	primary.Remaining *= 2
	write(primary)
	if os.SameFile(first, inode()) {
		t.Error("not written though the lease was renewed")
	}
	write(RoleReport{Role: roleFollower, Generation: 8, Primary: "http://b:1"})
	if note := noteOfRole(t, path); note.Role != roleFollower || !note.Until.IsZero() || note.Primary != "http://b:1" {
		t.Errorf("got %+v", note)
	}
	left, err := os.ReadDir(filepath.Dir(path))
	if err != nil || len(left) != 1 {
		t.Errorf("left %v, %v", left, err)
	}
}

func TestRoleFileThatCannotBeWrittenIsNamed(t *testing.T) {
	path := filepath.Join(t.TempDir(), "missing", "role")
	if err := (&roleFile{path: path}).Write(RoleReport{}); err == nil || !strings.Contains(err.Error(), "role-file: ") {
		t.Errorf("got %v", err)
	}
}

func TestPrimaryAnswers200OnlyWhilePrimary(t *testing.T) {
	for role, want := range map[string]int{
		rolePrimary: http.StatusOK, roleFollower: http.StatusServiceUnavailable, roleCutOff: http.StatusServiceUnavailable,
	} {
		report := RoleReport{Role: role, Node: "a", Generation: 3, Primary: "http://a:1"}
		h := primaryHandler(http.NotFoundHandler(), func() RoleReport { return report })
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/primary", nil))
		var got RoleReport
		if err := json.NewDecoder(w.Body).Decode(&got); err != nil || got != report || w.Code != want {
			t.Errorf("%s: got %d, %+v, %v", role, w.Code, got, err)
		}
		w = httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/other", nil))
		if w.Code != http.StatusNotFound {
			t.Errorf("another page answered %d", w.Code)
		}
	}
}

func TestPagesNameThatOfThePrimary(t *testing.T) {
	pages := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("/status\n")) })
	w := httptest.NewRecorder()
	primaryHandler(pages, func() RoleReport { return RoleReport{} }).ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/", nil))
	if got := w.Body.String(); got != "/status\n/primary\n" {
		t.Errorf("got %q", got)
	}
}

func TestOneOfThreeRolesIsAMetric(t *testing.T) {
	for _, role := range []string{rolePrimary, roleFollower, roleCutOff} {
		reg := prometheus.NewRegistry()
		reg.MustRegister(newRoleCollector(func() RoleReport { return RoleReport{Role: role, Degraded: true} }))
		families, err := reg.Gather()
		if err != nil {
			t.Fatal(err)
		}
		got := map[string]float64{}
		for _, f := range families {
			for _, m := range f.GetMetric() {
				name := f.GetName()
				for _, l := range m.GetLabel() {
					name += " " + l.GetValue()
				}
				got[name] = m.GetGauge().GetValue()
			}
		}
		want := map[string]float64{"tidemark_role primary": 0, "tidemark_role follower": 0, "tidemark_role cut off": 0, "tidemark_role_degraded": 1}
		want["tidemark_role "+role] = 1
		if !maps.Equal(got, want) {
			t.Errorf("%s: got %v", role, got)
		}
	}
}

func TestARoleIsToldInOneLine(t *testing.T) {
	for want, r := range map[string]RoleReport{
		"node a: primary, generation 3, lease for another 9.8s": {Role: rolePrimary, Node: "a", Generation: 3, Remaining: 9812, Holder: "a"},
		"node b: follower, generation 3, primary a":             {Role: roleFollower, Node: "b", Generation: 3, Holder: "a"},
		"node b: cut off, generation 0: no route":               {Role: roleCutOff, Node: "b", Error: "no route"},
		"node a: follower, generation 3, handing over to b":     {Role: roleFollower, Node: "a", Generation: 3, Succession: Succession{true, "b"}},
		"node a: follower, generation 3, handing over":          {Role: roleFollower, Node: "a", Generation: 3, Succession: Succession{true, ""}},
	} {
		if got := r.String(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestHooksLearnTheRoleAndMustEndInTime(t *testing.T) {
	out := filepath.Join(t.TempDir(), "out")
	for _, c := range []struct{ script, want string }{
		{`echo "$TIDEMARK_ROLE $TIDEMARK_GENERATION" > "$0"`, ""},
		{`exit 3`, `on-promote "sh": it ended with exit code 3`},
		{`while :; do sleep 0.01; done`, `on-promote "sh": not done within hook-timeout, 300ms`},
	} {
		h := hook{name: "on-promote", command: []string{"sh", "-c", c.script, out}, timeout: 300 * time.Millisecond, log: slog.New(slog.DiscardHandler)}
		if c.want == "" {
			h.timeout = time.Minute
		}
		err := h.Run(t.Context(), RoleReport{Role: rolePrimary, Generation: 12})
		if (err == nil) != (c.want == "") || err != nil && err.Error() != c.want {
			t.Errorf("%s: got %v, want %q", c.script, err, c.want)
		}
	}
	if text, err := os.ReadFile(out); err != nil || string(text) != "primary 12\n" {
		t.Errorf("got %q, %v", text, err)
	}
	if err := (hook{}).Run(t.Context(), RoleReport{}); err != nil {
		t.Errorf("no hook: got %v", err)
	}
}

func TestCommandLinesAreCheckedWithTheirKey(t *testing.T) {
	for line, want := range map[string]string{
		"":            "[] <nil>",
		"a 'b c'":     "[a b c] <nil>",
		"''":          "[] on-demote: it names no program; give the command to run, or remove the key",
		"'unfinished": "[] on-demote: it is no command line: Unterminated single-quoted string",
	} {
		args, err := commandLine("on-demote", line)
		if got := fmt.Sprintf("%v %v", args, err); got != want {
			t.Errorf("%q: got %q, want %q", line, got, want)
		}
	}
}
