package eagle

import (
	"math"
	"testing"

	"github.com/grovellm/grove/internal/drafters/eagle"
	"github.com/grovellm/grove/internal/train"
	"github.com/grovellm/grove/internal/train/traintest"
)

// An EAGLE recipe that cannot be completed is refused before anything is done.
func TestEagleRecipeRefuses(t *testing.T) {
	tiny := traintest.Shape()
	shape := tiny.Config()
	traintest.Refuses(t, func() Recipe { return tinyEagle(3, 40) }, func(r *Recipe) error { return r.Check(&shape) },
		map[string]func(r *Recipe){
			"no block 2":          func(r *Recipe) { r.From = []int{2} },
			"EAGLE version":       func(r *Recipe) { r.Version = 1 },
			"only the last":       func(r *Recipe) { r.Version = 2 },
			"whole blocks":        func(r *Recipe) { r.FFN = 48 },
			"taps layers":         func(r *Recipe) { r.Taps = []int{1, 3} },
			"precision":           func(r *Recipe) { r.Precision = "f16" },
			"--places 0":          func(r *Recipe) { r.Places = 0 },
			"0 test steps":        func(r *Recipe) { r.TestSteps = 0 },
			"later ones of 0":     func(r *Recipe) { r.Later = 0 },
			"decay":               func(r *Recipe) { r.Decay = math.NaN() },
			"no room for them":    func(r *Recipe) { r.TestSteps = 19 },
			"no room for 8":       func(r *Recipe) { r.Held.Length = 14 },
			"draft vocabulary of": func(r *Recipe) { r.DraftVocab = 300 },
			"--rows 3":            func(r *Recipe) { r.Rows = 3 },
		})
	shipped := train.TargetRecipe().Shape
	target := shipped.Config()
	for _, version := range []int{2, 3, eagle.Native} {
		if r := tinyEagle(version, 40); r.Check(&shape) != nil {
			t.Error(r.Check(&shape))
		}
		if r := NewRecipe(version); r.Check(&target) != nil {
			t.Error(r.Check(&target))
		}
	}
}

// A run continues from a checkpoint only if the recipe's fingerprint is the same. It
// covers the names and the order of fields: changing these makes all runs that were
// stopped before unable to continue.
func TestFingerprintStays(t *testing.T) {
	r := tinyEagle(2, 7)
	if got := train.Fingerprint(&r); got != "5eb89d6850f82af8" {
		t.Errorf("fingerprint %q", got)
	}
}
