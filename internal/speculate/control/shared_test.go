package control

import (
	"sync"
	"testing"

	"github.com/grovellm/grove/tree"
)

// Loops that step at the same time may share a controller, whichever of them proposes: run with -race.
func TestLoopsShareAController(t *testing.T) {
	for round := range 100 {
		c := New()
		var loops sync.WaitGroup
		for range 2 {
			loops.Go(func() {
				turn := Turn{Group: c.Join("drafter"), Class: Class(round % int(Classes)), Rows: 1, Budget: 8, Depth: 2}
				turns, groups := []*Turn{&turn}, []*Group{turn.Group}
				plan := Plan{LogitRows: 64}
				for range 12 {
					step(c, &plan, turns, groups, round%2)
				}
			})
		}
		loops.Wait()
	}
}

// step makes one step of a loop whose drafter proposes two tokens after the given number of levels.
func step(c *Controller, plan *Plan, turns []*Turn, groups []*Group, levels int) {
	turn := turns[0]
	turn.Skips(c)
	plan.Begin(c, turns, groups)
	turn.Tree = tree.New(1)
	if turn.Asked && (levels == 0 || turn.Guide().Deeper(0, 1)) {
		turn.Tree.Append(turn.Tree.Append(0, 2, -.1), 3, -.1)
		turn.Levels = levels
	}
	turn.Forced = turn.Tree.Len()
	plan.Cut(c, turns, 1e-3)
	verified := tree.New(1)
	if len(turn.Kept) > 1 {
		turn.Tree.Pick(verified, turn.Kept, nil)
	}
	turn.Tree, turn.Forced = verified, verified.Len()
	turn.Path, turn.Emitted = []int32{0}, []int32{2}
	plan.Learn(c, turns, groups, Pass{Verify: 1e-2 + 1e-4*float64(verified.Len()), Rest: 1e-3})
}
