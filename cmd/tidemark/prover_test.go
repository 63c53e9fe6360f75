package main

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/tidemark-io/tidemark/capture"
	"github.com/tidemark-io/tidemark/compaction"
)

func TestWhatIsWrongCountsUntilARoundDidNotFindIt(t *testing.T) {
	var s proofState
	more, end := compaction.Cursor{Level: 1, Min: 5, Max: 9}, compaction.Cursor{}
	bad := []compaction.SourceError{{Key: "k", Err: errors.New("broken")}}
	for i, c := range []struct {
		found compaction.Proof
		wrong bool
	}{
		{compaction.Proof{Files: 2, Next: more}, false},
		{compaction.Proof{Files: 2, Next: end}, false},
		{compaction.Proof{Files: 2, Next: more, Damaged: bad}, true},
		{compaction.Proof{Files: 2, Next: end}, true},
		{compaction.Proof{Files: 2, Next: more}, true},
		{compaction.Proof{Files: 2, Next: end}, false},
		{compaction.Proof{Files: 2, Next: end, Damaged: bad}, true},
		{compaction.Proof{Files: 2, Next: end}, false},
	} {
		s.note(c.found, nil)
		if got := s.report.bad() != ""; got != c.wrong || s.report.Since.IsZero() == c.wrong {
			t.Errorf("slice %d: wrong is %v since %s, want %v", i, got, s.report.Since, c.wrong)
		}
	}
	if s.report.Files != 16 || s.report.Whole.IsZero() {
		t.Errorf("got %+v", s.report)
	}
	s.note(compaction.Proof{}, fmt.Errorf("snapshot: %w", capture.ErrDiffers))
	r := DatabaseReport{State: stateReplicating}
	r.proven(&s.report)
	if p, bad := r.problem(); !bad || !strings.Contains(p.Error, capture.ErrDiffers.Error()) {
		t.Errorf("got %+v", p)
	}
	s.note(compaction.Proof{}, nil)
	r = DatabaseReport{State: stateReplicating, Uploaded: Position{TXID: 1}}
	if r.proven(&s.report); r.State != stateReplicating {
		t.Errorf("got %+v", r)
	}
}
