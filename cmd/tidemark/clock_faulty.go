//go:build faultyclock

package main

import (
	"fmt"
	"os"
	"time"

	"github.com/tidemark-io/tidemark/leaser"
)

// faultyClockVariable names a file that holds how far the wall clock is off, in
// seconds, and the rate of the clocks. It is read again at each look.
const faultyClockVariable = "TIDEMARK_FAULTY_CLOCK"

// leaseClock is a clock that tests can set, in a binary made for that. No
// release has it.
func leaseClock() leaser.Clock {
	c := faultyClock{file: os.Getenv(faultyClockVariable), start: leaser.SystemClock{}.Now()}
	_, c.rate = c.read()
	return c
}

type faultyClock struct {
	file  string
	start leaser.Reading
	rate  float64 // as it was at the start
}

func (c faultyClock) read() (ahead time.Duration, rate float64) {
	var seconds float64
	text, err := os.ReadFile(c.file)
	if err != nil {
		return 0, 1
	}
	if _, err := fmt.Sscan(string(text), &seconds, &rate); err != nil {
		return 0, 1
	}
	return time.Duration(seconds * float64(time.Second)), rate
}

// Now runs at the rate from the start on.
func (c faultyClock) Now() leaser.Reading {
	now := leaser.SystemClock{}.Now()
	ahead, _ := c.read()
	run := time.Duration(float64(now.Boot-c.start.Boot) * c.rate)
	return leaser.Reading{Boot: c.start.Boot + run, Wall: c.start.Wall.Add(run + ahead)}
}
