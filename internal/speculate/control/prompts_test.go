package control

import (
	"math"
	"testing"

	"github.com/grovellm/grove/tree"
)

// A node costs as many tokens alongside a prompt as without one, however long the prompt's rows take.
func TestPromptsAreNoCostOfNodes(t *testing.T) {
	const row = .08
	costs := func(prompt int, slower float64) (cost, over float64) {
		c := New()
		for range 2 * majority {
			for n := 63; n >= 0; n-- {
				c.passed(n+1, 1+row*float64(n), false)
			}
		}
		round := &Turn{Group: c.Join("drafter"), Rows: 1, Budget: 8, Depth: 2}
		turns, groups := []*Turn{round}, []*Group{round.Group}
		if prompt > 0 {
			turns = append(turns, &Turn{Prompt: true, Rows: prompt})
		}
		plan := Plan{LogitRows: 64}
		plan.Begin(c, turns, groups)
		pair := tree.New(1)
		pair.Append(0, 2, 0)
		round.Tree, round.Forced = pair, 2
		round.Path, round.Emitted = []int32{0}, []int32{3}
		if prompt > 0 {
			turns[1].Tree = tree.New(1)
			for range prompt - 1 {
				turns[1].Tree.Append(turns[1].Tree.Len()-1, 1, 0)
			}
		}
		plan.Learn(c, turns, groups, Pass{Verify: slower * (1 + row*float64(1+prompt))})
		k := round.allowance(byText)
		if k.proposals != 1 {
			t.Fatalf("%d proposals were booked, want 1", k.proposals)
		}
		return k.cost, k.over
	}
	want, _ := costs(0, 1)
	if math.Abs(want-row) > 1e-3 {
		t.Fatalf("a node costs %.4f tokens, want %.4f", want, row)
	}
	for _, prompt := range []int{1, 6, 12} {
		for _, slower := range []float64{.5, 1, 1.4} {
			if cost, over := costs(prompt, slower); math.Abs(cost-want) > 1e-3 || math.Abs(over) > 1e-3 {
				t.Errorf("beside %d rows of a prompt that take %.1f of the time: a node costs %.4f tokens and %.4f more, want %.4f",
					prompt, slower, cost, over, want)
			}
		}
	}
}
