package replica_test

import (
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/tidemark-io/tidemark/ltx"
	"github.com/tidemark-io/tidemark/replica"
)

// file is short for a file of a level.
func file(level int, minTXID, maxTXID ltx.TXID) ltx.FileInfo {
	return ltx.FileInfo{Level: level, Min: minTXID, Max: maxTXID, Size: 1000}
}

func TestPlanTakesTheFewestFilesThatReachTheTarget(t *testing.T) {
	l0 := []ltx.FileInfo{file(0, 1, 1), file(0, 2, 2), file(0, 3, 3), file(0, 4, 4), file(0, 5, 5)}
	tests := []struct {
		name         string
		files        []ltx.FileInfo
		from, target ltx.TXID
		want         []ltx.FileInfo
	}{
		{"a first full file at level 0", l0[:1], 0, 0, l0[:1]},
		{"increments only", l0, 0, 0, l0},
		{"an exact target", l0, 0, 3, l0[:3]},
		{"the newest snapshot", append(l0, file(9, 1, 2), file(9, 1, 4)), 0, 0, []ltx.FileInfo{file(9, 1, 4), l0[4]}},
		{"no snapshot beyond the target", append(l0, file(9, 1, 2), file(9, 1, 5)), 0, 3, []ltx.FileInfo{file(9, 1, 2), l0[2]}},
		{"merged files", append(l0, file(1, 2, 3), file(2, 2, 4)), 0, 0, []ltx.FileInfo{l0[0], file(2, 2, 4), l0[4]}},
		{"a merged file that overlaps", []ltx.FileInfo{file(9, 1, 4), file(1, 3, 6), file(0, 7, 7)}, 0, 0,
			[]ltx.FileInfo{file(9, 1, 4), file(1, 3, 6), file(0, 7, 7)}},
		{"no subsumed file", []ltx.FileInfo{file(9, 1, 9), file(1, 3, 6), file(0, 7, 7)}, 0, 0, []ltx.FileInfo{file(9, 1, 9)}},
		{"a snapshot over a hole", []ltx.FileInfo{file(9, 1, 2), file(0, 3, 3), file(0, 6, 6), file(9, 1, 5)}, 0, 0,
			[]ltx.FileInfo{file(9, 1, 5), file(0, 6, 6)}},
		{"the higher of two equal files", []ltx.FileInfo{file(1, 1, 1), l0[0], file(1, 2, 2), l0[1]}, 0, 0,
			[]ltx.FileInfo{file(1, 1, 1), file(1, 2, 2)}},
		{"nothing from the newest state", l0, 5, 0, nil},
		{"nothing without files", nil, 5, 0, nil},
		{"what follows a state", l0, 3, 0, l0[3:]},
		{"increments rather than a snapshot", append(l0, file(9, 1, 5)), 3, 0, l0[3:]},
		{"a snapshot where increments have a hole", []ltx.FileInfo{l0[3], file(9, 1, 5), file(0, 6, 6)}, 1, 0,
			[]ltx.FileInfo{file(9, 1, 5), file(0, 6, 6)}},
		{"the last TXID there is", []ltx.FileInfo{file(9, 1, ^ltx.TXID(0)-1), file(0, ^ltx.TXID(0), ^ltx.TXID(0))}, 0, 0,
			[]ltx.FileInfo{file(9, 1, ^ltx.TXID(0)-1), file(0, ^ltx.TXID(0), ^ltx.TXID(0))}},
	}
	for _, tt := range tests {
		got, err := replica.Plan(tt.files, tt.from, tt.target)
		if err != nil || !reflect.DeepEqual(got, tt.want) {
			t.Errorf("%s: got %v, %v; want %v", tt.name, got, err, tt.want)
		}
	}
}

func TestPlanNamesWhatIsMissing(t *testing.T) {
	tests := []struct {
		name         string
		files        []ltx.FileInfo
		from, target ltx.TXID
		want         replica.UnreachableError
		text         string
	}{
		{"a hole before the newest", []ltx.FileInfo{file(9, 1, 4), file(0, 5, 5), file(0, 8, 8), file(0, 9, 9)}, 0, 0,
			replica.UnreachableError{Target: 9, Missing: 6, Earlier: 5}, "transaction 0000000000000006 is missing"},
		{"no snapshot", []ltx.FileInfo{file(0, 2, 2), file(0, 3, 3)}, 0, 0,
			replica.UnreachableError{Target: 3, Missing: 1}, "no snapshot to start from"},
		{"a target inside a merged file", []ltx.FileInfo{file(9, 1, 4), file(1, 5, 9)}, 0, 7,
			replica.UnreachableError{Target: 7, Earlier: 4, Later: 9}, "no file ends there"},
		{"a target before the first snapshot", []ltx.FileInfo{file(9, 1, 4), file(0, 3, 3)}, 0, 3,
			replica.UnreachableError{Target: 3, Later: 4}, "nearest earlier state: none"},
		{"a target in a hole", []ltx.FileInfo{file(9, 1, 4), file(0, 7, 7), file(9, 1, 9)}, 0, 7,
			replica.UnreachableError{Target: 7, Earlier: 4, Later: 9}, "no file ends there"},
		{"a target in the future", []ltx.FileInfo{file(9, 1, 4)}, 0, 5,
			replica.UnreachableError{Target: 5, Earlier: 4}, "newer than all files"},
		{"a hole ahead of a follower", []ltx.FileInfo{file(9, 1, 4), file(0, 8, 8)}, 6, 0,
			replica.UnreachableError{Target: 8, Missing: 7}, "0000000000000007 is missing"},
		{"a target behind a follower", []ltx.FileInfo{file(9, 1, 4)}, 4, 2,
			replica.UnreachableError{Target: 2, Later: 4}, "no file ends there"},
	}
	for _, tt := range tests {
		got, err := replica.Plan(tt.files, tt.from, tt.target)
		var e *replica.UnreachableError
		if !errors.As(err, &e) || !errors.Is(err, replica.ErrUnreachable) || *e != tt.want || got != nil {
			t.Errorf("%s: got %v, %+v; want %+v", tt.name, got, err, tt.want)
			continue
		}
		if !strings.Contains(err.Error(), tt.text) {
			t.Errorf("%s: error %q does not say %q", tt.name, err, tt.text)
		}
	}
}

func TestPlanOfNothingIsNoBackup(t *testing.T) {
	for _, target := range []ltx.TXID{0, 7} {
		if plan, err := replica.Plan(nil, 0, target); !errors.Is(err, replica.ErrNoBackup) {
			t.Errorf("target %d: got %v, %v; want ErrNoBackup", target, plan, err)
		}
	}
}
