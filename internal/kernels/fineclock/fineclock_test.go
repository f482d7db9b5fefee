package fineclock_test

import (
	"testing"
	"time"

	"github.com/grovellm/grove/internal/kernels/fineclock"
)

// The clock goes on from reading to reading, not by the milliseconds of a system's ticks, and with time.Now.
func TestTicks(t *testing.T) {
	begin := time.Now()
	steps, last := 0, fineclock.Now()
	for range 10_000 {
		now := fineclock.Now()
		switch d := now.Sub(last); {
		case d < 0:
			t.Fatalf("the clock goes back by %v", -d)
		case d > 0:
			steps++
		}
		last = now
	}
	if steps < 1000 {
		t.Errorf("of 10,000 readings %d are later than the one before", steps)
	}
	if apart := time.Since(begin) - fineclock.Since(begin); apart.Abs() > time.Second {
		t.Errorf("the clock is %v behind time.Now", apart)
	}
}
