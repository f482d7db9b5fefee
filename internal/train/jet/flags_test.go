package jet

import (
	"reflect"
	"testing"

	"github.com/grovellm/grove/internal/train"
	"github.com/grovellm/grove/internal/train/traintest"
)

// Flags change what they name, and nothing else, in the shipped heads' recipe, which
// is the one for their target.
func TestFlags(t *testing.T) {
	m := traintest.Shipped(t)
	three := 3
	half := 0.5
	none := 0.0
	rate := float32(1e-3)
	ce := "ce"
	adamw := "adamw"
	for _, c := range []struct {
		cmd    Flags
		change func(r *Recipe)
	}{
		{Flags{Head: "causal"}, func(r *Recipe) {}},
		{Flags{Head: "bidirectional"}, func(r *Recipe) { r.Causal = false }},
		{Flags{Head: "causal", BlockFlags: BlockFlags{Gamma: &half}, LossFlags: LossFlags{Loss: &ce}},
			func(r *Recipe) { r.Gamma, r.Loss = 0.5, "ce" }},
		{Flags{Head: "causal",
			CourseFlags: train.CourseFlags{OptimizerFlags: train.OptimizerFlags{Optimizer: &adamw, Rate: &rate}},
			BlockFlags:  BlockFlags{ShortTime: &none, Gamma: &none}}, func(r *Recipe) {
			r.Optimizer.Muon = false
			r.Optimizer.Rate = 1e-3
			r.ShortUntil = 0
			r.Gamma = 0
		}},
		{Flags{Head: "causal", ShapeFlags: ShapeFlags{From: []int{-1}, Layers: &three}},
			func(r *Recipe) { r.From, r.Layers = nil, 3 }},
		{Flags{Head: "causal", ShapeFlags: ShapeFlags{From: []int{-1, 5}}},
			func(r *Recipe) { r.From, r.Layers = []int{-1, 5}, 2 }},
		{Flags{Head: "causal", ShapeFlags: ShapeFlags{Taps: []int{0, 6}}, TextFlags: train.TextFlags{Steps: &three}},
			func(r *Recipe) { r.Taps, r.Steps = []int{0, 6}, 3 }},
		// short blocks are never longer than blocks
		{Flags{Head: "causal", ShapeFlags: ShapeFlags{Block: &three}}, func(r *Recipe) { r.Block, r.ShortBlock = 3, 3 }},
	} {
		want := NewRecipe(true)
		c.change(&want)
		if got, err := c.cmd.Recipe(m); err != nil || !reflect.DeepEqual(got, train.HeadRecipe(&want)) {
			t.Errorf("%+v\nmakes the recipe\n%+v\nwant\n%+v", c.cmd, got, want)
		}
	}
}
