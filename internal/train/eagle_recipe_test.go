package train

import (
	"math"
	"testing"
)

// An EAGLE recipe that cannot be followed to its end is refused before anything is done.
func TestEagleRecipeRefuses(t *testing.T) {
	shape := tinyShape()
	refuses(t, func() EagleRecipe { return tinyEagle(3, 40) }, func(r *EagleRecipe) error { return r.check(&shape) }, map[string]func(r *EagleRecipe){
		"no block 2":          func(r *EagleRecipe) { r.From = []int{2} },
		"EAGLE version":       func(r *EagleRecipe) { r.Version = 1 },
		"the last alone":      func(r *EagleRecipe) { r.Version = 2 },
		"whole blocks":        func(r *EagleRecipe) { r.FFN = 48 },
		"tapped layers":       func(r *EagleRecipe) { r.Taps = []int{1, 3} },
		"precision":           func(r *EagleRecipe) { r.Precision = "f16" },
		"0 rows each":         func(r *EagleRecipe) { r.Places = 0 },
		"0 test steps":        func(r *EagleRecipe) { r.TestSteps = 0 },
		"later ones of 0":     func(r *EagleRecipe) { r.Later = 0 },
		"decay":               func(r *EagleRecipe) { r.Decay = math.NaN() },
		"no room for them":    func(r *EagleRecipe) { r.TestSteps = 19 },
		"no room for 8":       func(r *EagleRecipe) { r.Held.Length = 14 },
		"draft vocabulary of": func(r *EagleRecipe) { r.DraftVocab = 300 },
		"in parts of 2":       func(r *EagleRecipe) { r.Rows = 3 },
	})
	target := TargetRecipe().Shape
	for _, version := range []int{2, 3} {
		if r := tinyEagle(version, 40); r.check(&shape) != nil {
			t.Error(r.check(&shape))
		}
		if r := NewEagleRecipe(version); r.check(&target) != nil {
			t.Error(r.check(&target))
		}
	}
}
