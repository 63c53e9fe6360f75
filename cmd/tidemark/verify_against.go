package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/tidemark-io/tidemark/cmd/tidemark/internal/live"
	"github.com/tidemark-io/tidemark/ltx"
	"github.com/tidemark-io/tidemark/replica"
)

const (
	meetWithin = 10 * time.Second       // how long database and replica may take to be equal
	meetPause  = 200 * time.Millisecond // between two looks at the replica
	pagesShown = 20
)

// LiveReport is a comparison with a live database.
type LiveReport struct {
	Path     string   `json:"path"`
	Equal    bool     `json:"equal"`
	TXID     uint64   `json:"txid"` // that the database was compared with last
	Differ   int      `json:"pages_differ,omitempty"`
	Pages    []uint32 `json:"first_pages,omitempty"` // the lowest of them
	Size     uint32   `json:"pages"`                 // of the database
	SizeThen uint32   `json:"pages_replicated"`
}

func (r *LiveReport) text() string {
	if r.Equal {
		return fmt.Sprintf("%s equals transaction %d in all %d pages\n", r.Path, r.TXID, r.Size)
	}
	text := fmt.Sprintf("%s is not what transaction %d left: ", r.Path, r.TXID)
	if r.Size != r.SizeThen {
		text += fmt.Sprintf("it has %d pages, not %d; ", r.Size, r.SizeThen)
	}
	numbers := strings.Trim(fmt.Sprint(r.Pages), "[]")
	if r.Differ > len(r.Pages) {
		numbers += " ..."
	}
	return text + fmt.Sprintf("%d pages differ: %s\n"+
		"       if no sidecar runs, or it lags (see tidemark status), these are commits that are not on the replica yet; try again when all\n"+
		"       is uploaded; if they still differ then, the database was changed behind SQLite's back, or is damaged\n", r.Differ, numbers)
}

// compareLive compares a live database with page sums of the replica. The
// sidecar goes on meanwhile, so each look at the database is compared with
// every state that the replica reaches for a while.
func compareLive(ctx context.Context, r *replica.Replica, sums *ltx.PageSums, path string) (*LiveReport, error) {
	for deadline := time.Now().Add(meetWithin); ; {
		report, sum, err := look(ctx, sums, path)
		if err != nil || report.Equal {
			return report, err
		}
		// What was seen may be on its way to the replica.
		for waited := time.Duration(0); waited < meetWithin/4; waited += meetPause {
			met := false
			err := r.Advance(ctx, sums, func(pos ltx.Pos) bool {
				met = pos.PostApplyChecksum == sum
				return met
			})
			if err != nil {
				return nil, fmt.Errorf("compare with %s: %w", path, err)
			}
			if met {
				return &LiveReport{Path: path, Equal: true, TXID: uint64(sums.Pos().TXID), Size: report.Size, SizeThen: sums.Pages()}, nil
			}
			if err := pause(ctx, meetPause); err != nil {
				return nil, err
			}
		}
		if time.Now().After(deadline) {
			report, _, err := look(ctx, sums, path)
			return report, err
		}
	}
}

// look compares the database once and returns its checksum.
func look(ctx context.Context, sums *ltx.PageSums, path string) (report *LiveReport, total ltx.Checksum, err error) {
	v, err := live.Open(path)
	if err != nil {
		return nil, 0, err
	}
	defer func() { err = errors.Join(err, v.Close()) }()
	report = &LiveReport{Path: path, TXID: uint64(sums.Pos().TXID), Size: v.Pages(), SizeThen: sums.Pages()}
	if v.PageSize() != sums.PageSize() {
		return nil, 0, fmt.Errorf("%s has pages of %d bytes, the replica of %d: it is another database, or was rebuilt and is not uploaded yet",
			path, v.PageSize(), sums.PageSize())
	}
	lock := ltx.LockPgno(v.PageSize())
	err = v.Each(ctx, func(pgno uint32, page []byte) error {
		if pgno == lock {
			return nil
		}
		sum := ltx.ChecksumPage(pgno, page)
		total ^= sum
		then, err := sums.Sum(pgno)
		if err == nil && then != sum && pgno <= report.SizeThen {
			if report.Differ++; len(report.Pages) < pagesShown {
				report.Pages = append(report.Pages, pgno)
			}
		}
		return err
	})
	report.Equal = report.Differ == 0 && report.Size == report.SizeThen
	return report, total | ltx.ChecksumFlag, err
}

func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(d):
		return nil
	}
}
