package eagle

import (
	"reflect"
	"testing"

	"github.com/grovellm/grove/internal/train"
	"github.com/grovellm/grove/internal/train/traintest"
)

// Flags change what they name, and nothing else, in the shipped head's recipe, which
// is the one for its target.
func TestFlags(t *testing.T) {
	m := traintest.Shipped(t)
	two := 2
	three := 3
	wide := 96
	half := 0.25
	source := "go"
	for _, c := range []struct {
		cmd    Flags
		change func(r *Recipe)
	}{
		{Flags{}, func(r *Recipe) {}},
		{Flags{Version: &two}, func(r *Recipe) { *r = NewRecipe(2) }},
		{Flags{TestSteps: &two, Decay: &half}, func(r *Recipe) { r.TestSteps, r.Decay = 2, 0.25 }},
		{Flags{From: []int{-1}, Taps: []int{0, 2, 4}}, func(r *Recipe) { r.From, r.Taps = nil, []int{0, 2, 4} }},
		{Flags{From: []int{4, 5}, DraftVocab: &three, TextFlags: train.TextFlags{Only: &source}},
			func(r *Recipe) {
				r.From = []int{4, 5}
				r.DraftVocab = 3
				r.Only = "go"
			}},
		{Flags{TextFlags: train.TextFlags{GreedyFlag: train.GreedyFlag{Greedy: &half}}},
			func(r *Recipe) { r.Short.Greedy, r.Long.Greedy = 0.25, 0.25 }},
		{Flags{Start: &source}, func(r *Recipe) { r.Start, r.FFN = "go", 0 }},
		{Flags{Start: &source, FFN: &wide}, func(r *Recipe) { r.Start, r.FFN = "go", 96 }},
	} {
		want := NewRecipe(3)
		c.change(&want)
		if got, err := c.cmd.Recipe(m); err != nil || !reflect.DeepEqual(got, train.HeadRecipe(&want)) {
			t.Errorf("%+v\nmakes the recipe\n%+v\nwant\n%+v", c.cmd, got, want)
		}
	}
}
