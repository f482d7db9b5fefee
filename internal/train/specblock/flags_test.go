package specblock

import (
	"reflect"
	"testing"

	"github.com/grovellm/grove/internal/train"
	"github.com/grovellm/grove/internal/train/traintest"
)

// Flags change what they name, and nothing else, in the shipped head's recipe, which is the one for
// its target. The command has flags for whatever can be turned off.
func TestFlags(t *testing.T) {
	m := traintest.Shipped(t)
	three := 3
	half := 0.5
	yes, no := true, false
	source := "go"
	for _, c := range []struct {
		flags  Flags
		change func(r *Recipe)
	}{
		{Flags{}, func(r *Recipe) {}},
		{Flags{Blocks: &three, RankTexts: &three, RankSteps: &three},
			func(r *Recipe) {
				r.Rounds = 3
				r.Ranks.Texts = 3
				r.Ranks.Steps = 3
			}},
		{Flags{From: []int{1, 2}, Balance: &half, TextFlags: train.TextFlags{Only: &source}},
			func(r *Recipe) {
				r.From = []int{1, 2}
				r.Layers = 2
				r.Balance = 0.5
				r.Only = "go"
			}},
		{Flags{From: []int{-1}, Taps: []int{2}}, func(r *Recipe) { r.From, r.Taps = nil, []int{2} }},
		{Flags{Broadcast: &yes, Shift: &no}, func(r *Recipe) { r.Broadcast, r.Shift = true, false }},
	} {
		want := NewRecipe()
		c.change(&want)
		if got, err := c.flags.Recipe(m); err != nil || !reflect.DeepEqual(got, train.HeadRecipe(&want)) {
			t.Errorf("%+v\nmakes the recipe\n%+v\nwant\n%+v", c.flags, got, want)
		}
	}
}
