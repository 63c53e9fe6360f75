package main

import (
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/tidemark-io/tidemark/capture"
	"github.com/tidemark-io/tidemark/compaction"
)

func TestWhatIsWrongCountsUntilARoundDidNotFindIt(t *testing.T) {
	p, s := prover{log: slog.New(slog.DiscardHandler)}, proofState{}
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
		p.update("a.db", &s, nil, func() bool { return s.read(c.found) })
		if got := s.report.bad() != ""; got != c.wrong || s.report.Since.IsZero() == c.wrong {
			t.Errorf("slice %d: wrong is %v since %s, want %v", i, got, s.report.Since, c.wrong)
		}
	}
	if s.report.Files != 16 || s.report.Whole.IsZero() {
		t.Errorf("got %+v", s.report)
	}
}

func TestADatabaseThatDiffersFailsUntilItIsComparedAgain(t *testing.T) {
	p, s := prover{log: slog.New(slog.DiscardHandler)}, proofState{}
	for i, c := range []struct {
		next  uint32
		err   error
		page  uint32
		wrong bool
		whole bool
	}{
		{next: 100, page: 100},
		{next: 100, err: errors.New("put off"), page: 100},
		{next: 150, err: fmt.Errorf("prove: %w", capture.ErrDiffers), page: 150, wrong: true},
		{next: 150, err: errors.New("put off"), page: 150, wrong: true},
		{next: 0, page: 0, whole: true},
		{next: 100, page: 100, whole: true},
	} {
		p.update("a.db", &s, c.err, func() bool { return s.compared(c.next, c.err) })
		r := DatabaseReport{State: stateReplicating, Uploaded: Position{TXID: 1}}
		r.proven(&s.report)
		problem, bad := r.problem()
		if bad != c.wrong || s.page != c.page || s.report.Compared.IsZero() == c.whole || s.report.Since.IsZero() == c.wrong {
			t.Errorf("slice %d: next page %d, %+v", i, s.page, s.report)
		}
		if bad && !strings.Contains(problem.Error, capture.ErrDiffers.Error()) {
			t.Errorf("slice %d: got %+v", i, problem)
		}
	}
}
