//go:build bench

package bench_test

import (
	"strings"
	"testing"

	"github.com/tidemark-io/tidemark/internal/e2e/rig"
	"github.com/tidemark-io/tidemark/internal/testbucket"
)

func TestMain(m *testing.M) { rig.Main(m) }

// tool is one of the two programs that are measured.
type tool struct {
	name      string
	replicate func(t testing.TB, db string, p rig.Place) *rig.Process
	restore   func(t testing.TB, p rig.Place, out string) rig.Exit
}

func tools() [2]tool {
	return [2]tool{
		{
			"tidemark",
			func(t testing.TB, db string, p rig.Place) *rig.Process { return rig.Replicate(t, db, p) },
			func(t testing.TB, p rig.Place, out string) rig.Exit {
				return rig.TryRestore(t, p, out, "-integrity-check", "none")
			},
		}, {
			"litestream",
			func(t testing.TB, db string, p rig.Place) *rig.Process { return rig.Litestream(t, db, p, "") },
			func(t testing.TB, p rig.Place, out string) rig.Exit { return rig.TryLitestreamRestore(t, p, out) },
		},
	}
}

// place is a new prefix on the one server.
func place(t testing.TB, server *testbucket.Server) rig.Place {
	t.Helper()
	return rig.At(t, server, strings.ReplaceAll(t.Name(), "/", "-"))
}
