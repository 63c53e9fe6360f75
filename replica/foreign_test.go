package replica_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"hash/crc64"
	"strings"
	"testing"

	"github.com/pierrec/lz4/v4"

	"github.com/tidemark-io/tidemark/ltx"
)

// newPlainHistory is a replica as Litestream writes it: no database checksums,
// the first full file at level 0.
func newPlainHistory(t testing.TB) *history {
	h := newHistory(t, 4096)
	h.plain = true
	h.write(1, 600)
	b := h.commit(580, 1800)
	h.put(file(0, 2, 2), b)
	h.write(3, 590)
	return h
}

func TestFilesWithoutChecksumsAreRestored(t *testing.T) {
	h := newPlainHistory(t)
	for txid := range h.pos.TXID + 1 {
		h.check(txid)
	}
	tip, err := h.Tip(t.Context())
	if err != nil || tip.Pos.TXID != h.pos.TXID || tip.Pos.PostApplyChecksum != 0 {
		t.Errorf("got tip %+v, %v; want an unknown checksum", tip, err)
	}
}

func TestChecksumsMayBeginInTheMiddle(t *testing.T) {
	h := newPlainHistory(t)
	h.plain = false
	h.write(2, 570)
	for _, txid := range []ltx.TXID{4, 6, 0} {
		h.check(txid)
	}
	h.put(file(9, 1, 7), h.snapshot())
	h.check(0)
}

func TestDamageToAFileWithoutChecksumsIsFoundByItsOwn(t *testing.T) {
	h := newPlainHistory(t)
	for _, txid := range []ltx.TXID{1, 4} {
		f := file(0, txid, txid)
		whole := h.read(f)
		for at, damaged := range damages(whole) {
			h.put(f, damaged)
			_, _, err := h.restore(0)
			if !isDamage(err) || !strings.Contains(err.Error(), h.Key(f)) {
				t.Errorf("transaction %d of %d bytes, damage at %d: got %v", txid, len(whole), at, err)
			}
		}
		h.put(f, whole)
	}
	h.check(0)
}

func TestFramesOfTheOldFormAreRestored(t *testing.T) {
	h := newHistory(t, 4096)
	for _, h.plain = range []bool{true, false} {
		b := h.commit(600, 1800)
		h.put(file(0, h.pos.TXID, h.pos.TXID), oldForm(t, b))
	}
	h.write(2, 610)
	for txid := range h.pos.TXID + 1 {
		h.check(txid)
	}
}

// oldForm rewrites a file with frames that carry no size, as early versions of
// the format had them.
func oldForm(t *testing.T, whole []byte) []byte {
	t.Helper()
	var spec ltx.Spec
	if _, err := spec.ReadFrom(bytes.NewReader(whole)); err != nil {
		t.Fatal(err)
	}
	sum := crc64.New(crc64.MakeTable(crc64.ISO))
	out, index := bytes.NewBuffer(whole[:ltx.HeaderSize:ltx.HeaderSize]), []byte{}
	sum.Write(out.Bytes())
	for _, p := range spec.Pages {
		start := out.Len()
		header := binary.BigEndian.AppendUint32(nil, p.Pgno)
		header = append(header, 0, 0)
		sum.Write(header)
		sum.Write(p.Data)
		out.Write(header)
		zw := lz4.NewWriter(out)
		if err := zw.Apply(lz4.BlockSizeOption(lz4.Block64Kb)); err != nil {
			t.Fatal(err)
		}
		if _, err := zw.Write(p.Data); err != nil {
			t.Fatal(err)
		}
		if err := zw.Close(); err != nil {
			t.Fatal(err)
		}
		for _, v := range []int{int(p.Pgno), start, out.Len() - start} {
			index = binary.AppendUvarint(index, uint64(v))
		}
	}
	index = append(index, 0)
	rest := append(make([]byte, ltx.PageHeaderSize), index...)
	rest = binary.BigEndian.AppendUint64(rest, uint64(len(index)))
	rest = binary.BigEndian.AppendUint64(rest, uint64(spec.PostApply))
	sum.Write(rest)
	out.Write(rest)
	return binary.BigEndian.AppendUint64(out.Bytes(), sum.Sum64()|uint64(ltx.ChecksumFlag))
}

func TestMissingPagesAreNamed(t *testing.T) {
	h := newHistory(t, 512)
	h.plain = true
	h.write(2, 20)
	h.commit(5, 1)
	first := []ltx.PageSpec{{Pgno: 1, Data: h.page(1)}}
	h.put(file(0, 3, 3), h.encode(&ltx.Spec{Header: h.header(3, 3), Pages: first}))
	h.pos.TXID = 4
	header := h.header(4, 4)
	header.Commit = 20
	h.put(file(0, 4, 4), h.encode(&ltx.Spec{Header: header, Pages: first}))
	_, _, err := h.restore(0)
	if !errors.Is(err, ltx.ErrCorrupt) || !strings.Contains(err.Error(), "page 6 of 20") {
		t.Errorf("pages that were cut off came back: got %v", err)
	}
}
