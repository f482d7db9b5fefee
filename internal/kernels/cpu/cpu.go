// Package cpu says which implementation of the kernels runs. Each architecture has a list of levels
// in order, of which a processor may lack some; at start the highest it has is chosen. The
// environment variable GROVE_CPU names a lower one, for tests and for finding a fault.
//
// A level is declared where its architecture is: code for all of them knows Portable, and that more is higher.
//
// Every level computes the same bits (docs/design.md, law 1); a level is a matter of speed alone.
package cpu

import (
	"fmt"
	"os"
	"runtime"
	"strings"
	"sync/atomic"
)

// Level is a set of instructions the kernels may use. A higher one is faster.
type Level int32

// Portable is plain Go, for any processor.
const Portable Level = 0

func (l Level) String() string {
	if l < 0 || int(l) >= len(names) {
		return fmt.Sprintf("Level(%d)", int32(l))
	}
	return names[l]
}

var active atomic.Int32

func init() {
	best := Best()
	active.Store(int32(best))
	if s := os.Getenv("GROVE_CPU"); s != "" {
		l, err := Parse(s)
		switch {
		case err != nil:
			fmt.Fprintf(os.Stderr, "grove: GROVE_CPU: %v; using %v\n", err, best)
		case !Has(l):
			fmt.Fprintf(os.Stderr, "grove: GROVE_CPU=%v: this processor does not have that; using %v\n", l, best)
		default:
			active.Store(int32(l))
		}
	}
}

// Parse reads a level's name.
func Parse(s string) (Level, error) {
	for i, n := range names {
		if strings.EqualFold(s, n) {
			return Level(i), nil
		}
	}
	return 0, fmt.Errorf("unknown level %q: on %s want %s", s, runtime.GOARCH, Names())
}

// Names lists the names of the architecture's levels, lowest first, whatever this processor has.
func Names() string {
	if n := len(names) - 1; n > 0 {
		return strings.Join(names[:n], ", ") + " or " + names[n]
	}
	return names[0]
}

// Best is the highest level this processor has.
func Best() Level {
	levels := Levels()
	return levels[len(levels)-1]
}

// Active is the level in use.
func Active() Level { return Level(active.Load()) }

// Levels lists the levels this processor can run, lowest first.
func Levels() []Level {
	var ls []Level
	for l := range Level(len(names)) {
		if Has(l) {
			ls = append(ls, l)
		}
	}
	return ls
}

// Use switches to l and returns a function that switches back. It is for checks that
// compare levels; no pass may be under way. It panics when the processor lacks l.
func Use(l Level) (restore func()) {
	if !Has(l) {
		panic(fmt.Sprintf("cpu: level %v is not available here (best: %v)", l, Best()))
	}
	old := active.Swap(int32(l))
	return func() { active.Store(old) }
}
