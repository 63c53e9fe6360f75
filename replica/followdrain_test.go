package replica_test

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-io/tidemark/ltx"
	"github.com/tidemark-io/tidemark/replica"
)

func TestABaseWithAnotherPageSizeIsTakenOnceItIsThere(t *testing.T) {
	p := newPrimary(t, 1024)
	f := p.follow()
	f.options.Interval = time.Millisecond
	f.reopen()
	other := newPrimary(t, 4096)
	p.image, p.pageSize = other.image, 4096
	p.pos = ltx.Pos{TXID: p.pos.TXID + 1, PostApplyChecksum: p.sum()}
	claim := &ltx.Spec{Header: p.header(p.pos.TXID, p.pos.TXID)}
	claim.Header.Flags, claim.Header.PreApplyChecksum = ltx.FlagNoChecksum, 0
	var b bytes.Buffer
	if _, err := claim.WriteTo(&b); err != nil {
		t.Fatal(err)
	}
	p.put(file(0, p.pos.TXID, p.pos.TXID), b.Bytes())
	polls := 0
	f.run(t, "some looks", func() bool { _, polls = f.bucket.count(); return polls > 20 && f.Status().LastError != nil })
	if err := f.Status().LastError; !strings.Contains(err.Error(), "only marks where a full copy was written") {
		t.Errorf("got %v", err)
	}
	if n := strings.Count(f.log.String(), "\n"); n > 2 {
		t.Errorf("%d lines of log:\n%s", n, f.log.String())
	}
	p.put(file(9, 1, p.pos.TXID), p.snapshot())
	f.run(t, "the base", func() bool { return f.isCurrent() && f.Status().LastError == nil })
	f.catchUp()
	f.promote()
}

func TestAStrayFileBelowWhatWasMergedIsNotTaken(t *testing.T) {
	p := newPrimary(t, 1024)
	f := p.follow()
	f.catchUp()
	fork := bytes.Clone(p.image)
	at := p.pos
	p.exec("UPDATE t SET v = 1 WHERE id < 10")
	stray := p.read(file(0, 2, 2))
	p.image, p.pos = fork, at
	p.exec("UPDATE t SET v = 2 WHERE id > 10")
	p.exec("UPDATE t SET v = 3 WHERE id > 20")
	p.exec("UPDATE t SET v = 4 WHERE id > 30")
	p.merge(1, 2, 3)
	p.put(file(0, 2, 2), stray)
	f.catchUp()
	if n := f.Status().Reseeds; n != 0 {
		t.Errorf("%d comparisons with a whole state", n)
	}
	f.promote()
}

func TestAReplicaThatContradictsItselfIsAnError(t *testing.T) {
	p := newPrimary(t, 1024)
	f := p.follow()
	fork := bytes.Clone(p.image)
	at := p.pos
	p.exec("UPDATE t SET v = 1 WHERE id < 10")
	other := p.read(file(0, 2, 2))
	p.image, p.pos = fork, at
	p.exec("UPDATE t SET v = 2 WHERE id > 10")
	p.exec("UPDATE t SET v = 3 WHERE id > 20")
	p.put(file(0, 2, 2), other)
	if _, err := f.CatchUp(t.Context()); err == nil {
		t.Errorf("at %v", f.copy.Pos())
	}
	if f.copy.Pos() != at && f.copy.Pos().TXID != 2 {
		t.Errorf("at %v", f.copy.Pos())
	}
}

func TestAnEmptyReplicaIsToldApart(t *testing.T) {
	p := newPrimary(t, 1024)
	f := p.follow()
	p.remove(file(0, 1, 1))
	if _, err := f.CatchUp(t.Context()); !errors.Is(err, replica.ErrNoBackup) {
		t.Errorf("got %v", err)
	}
	if f.copy.Pos() != p.pos {
		t.Errorf("at %v, want %v", f.copy.Pos(), p.pos)
	}
}
