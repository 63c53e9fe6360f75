package main

import "testing"

func TestCallersShareTheLookThatBeginsNext(t *testing.T) {
	l := newLooks()
	first := l.join()
	if l.join() != first || len(l.wanted) != 1 {
		t.Error("two callers wait for two looks")
	}
	if l.take() != first || l.take() != nil {
		t.Error("another look was begun")
	}
	if l.join() == first {
		t.Error("a caller waits for a look that began before it came")
	}
	moved := l.moves()
	if l.moves() != moved {
		t.Error("two callers wait for different uploads")
	}
	l.move()
	select {
	case <-moved:
	default:
		t.Error("an upload wakes nobody")
	}
	l.move()
}
