package testdb

import "testing"

func TestLockPageIsNotCompared(t *testing.T) {
	const size = 65536
	a, b := make([]byte, 2*size), make([]byte, 2*size)
	b[5] = 1
	if pg := firstDiff(a, b, lockByte, size); pg != 0 {
		t.Errorf("page %d differs, want only the lock page to", pg)
	}
	b[size] = 1
	if pg, want := firstDiff(a, b, lockByte, size), int64(lockByte/size+2); pg != want {
		t.Errorf("page %d differs, want %d", pg, want)
	}
}
