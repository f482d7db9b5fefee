package train

import (
	"math"
	"testing"
)

// A recipe that cannot be followed to its end is refused before anything is done.
func TestHeadRecipeRefuses(t *testing.T) {
	shape := tinyShape()
	refuses(t, func() HeadRecipe { return tinyHead(true, 40) }, func(r *HeadRecipe) error { return r.check(&shape) }, map[string]func(r *HeadRecipe){
		"no block 2":           func(r *HeadRecipe) { r.From = []int{0, 2} },
		"as many of":           func(r *HeadRecipe) { r.From = []int{0} },
		"a block of":           func(r *HeadRecipe) { r.From = []int{hand, hand} },
		"no wider":             func(r *HeadRecipe) { r.From, r.FFN = []int{0, 1}, 96 },
		"attention of":         func(r *HeadRecipe) { r.From, r.KVHeads = []int{hand, 1}, 2 },
		"whole blocks":         func(r *HeadRecipe) { r.FFN = 48 },
		"tapped layers":        func(r *HeadRecipe) { r.Taps = []int{1, 3} },
		"0 tapped layers":      func(r *HeadRecipe) { r.Taps = nil },
		"precision":            func(r *HeadRecipe) { r.Precision = "f16" },
		"in parts of 2":        func(r *HeadRecipe) { r.Rows = 3 },
		"every 4-th step, 0":   func(r *HeadRecipe) { r.Rows, r.MicroRows = 1, 1 },
		"every 1-th":           func(r *HeadRecipe) { r.LongEvery = 1 },
		"blocks of 5":          func(r *HeadRecipe) { r.ShortBlock = 5 },
		"room":                 func(r *HeadRecipe) { r.Block = 18 },
		"loss \"mse\"":         func(r *HeadRecipe) { r.Loss = "mse" },
		"text \"web\"":         func(r *HeadRecipe) { r.Text = "web" },
		"temperature":          func(r *HeadRecipe) { r.Temperature = 0 },
		"gamma":                func(r *HeadRecipe) { r.Gamma = math.NaN() },
		"circles":              func(r *HeadRecipe) { r.Circles = 1.5 },
		"0 files":              func(r *HeadRecipe) { r.Short.Files = 0 },
		"48 tokens, 47 of":     func(r *HeadRecipe) { r.Long.Prompt = 47 },
		"24 tokens, 1 of":      func(r *HeadRecipe) { r.Short.Prompt = 1 },
		"40 steps":             func(r *HeadRecipe) { r.Anchors = 0 },
		"key/value head count": func(r *HeadRecipe) { r.KVHeads = 3 },
	})
	for _, r := range []HeadRecipe{tinyHead(true, 40), tinyHead(false, 1)} {
		if err := r.check(&shape); err != nil {
			t.Error(err)
		}
	}
	target := TargetRecipe().Shape
	for _, causal := range []bool{true, false} {
		r := JetRecipe(causal)
		if err := r.check(&target); err != nil {
			t.Error(err)
		}
	}
}
