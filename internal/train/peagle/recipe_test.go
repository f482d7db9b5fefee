package peagle

import (
	"math"
	"reflect"
	"testing"

	"github.com/grovellm/grove/internal/train"
	"github.com/grovellm/grove/internal/train/traintest"
)

// A recipe that cannot be completed is refused before anything is done.
func TestRecipeRefuses(t *testing.T) {
	s := traintest.Shape()
	shape := s.Config()
	traintest.Refuses(t, func() Recipe { return tiny(40) }, func(r *Recipe) error { return r.Check(&shape) },
		map[string]func(r *Recipe){
			"no block 2":             func(r *Recipe) { r.From = []int{2} },
			"whole blocks":           func(r *Recipe) { r.FFN = 48 },
			"taps layers":            func(r *Recipe) { r.Taps = []int{1, 3} },
			"precision":              func(r *Recipe) { r.Precision = "f16" },
			"depths are 1":           func(r *Recipe) { r.Depths = 1 },
			"room":                   func(r *Recipe) { r.Depths = 17 },
			"share 0 of":             func(r *Recipe) { r.Keep = 0 },
			"share NaN":              func(r *Recipe) { r.Keep = math.NaN() },
			"and 1.5 at least":       func(r *Recipe) { r.KeepLeast = 1.5 },
			"--places 0":             func(r *Recipe) { r.Places = 0 },
			"vocabulary of 999":      func(r *Recipe) { r.DraftVocab = 999 },
			"4 heads do not share 3": func(r *Recipe) { r.KVHeads = 3 },
		})
	shipped, r := train.TargetRecipe().Shape, NewRecipe()
	c := shipped.Config()
	if err := r.Check(&c); err != nil {
		t.Error(err)
	}
}

// Flags change what they name, and nothing else, in the recipe, which is the one for its target.
func TestFlags(t *testing.T) {
	m := traintest.Shipped(t)
	two := 2
	half := 0.5
	source := "go"
	for _, c := range []struct {
		cmd    Flags
		change func(r *Recipe)
	}{
		{Flags{}, func(*Recipe) {}},
		{Flags{Depths: &two, Keep: &half, KeepLeast: &half},
			func(r *Recipe) {
				r.Depths = 2
				r.Keep = 0.5
				r.KeepLeast = 0.5
			}},
		{Flags{From: []int{-1}, Taps: []int{0, 2, 4}, Layers: &two},
			func(r *Recipe) {
				r.From = nil
				r.Taps = []int{0, 2, 4}
				r.Layers = 2
			}},
		{Flags{Masks: true, DraftVocab: &two, TextFlags: train.TextFlags{Only: &source}},
			func(r *Recipe) {
				r.Masks = true
				r.DraftVocab = 2
				r.Only = "go"
			}},
	} {
		want := NewRecipe()
		c.change(&want)
		if got, err := c.cmd.Recipe(m); err != nil || !reflect.DeepEqual(got, train.HeadRecipe(&want)) {
			t.Errorf("%+v\nmakes the recipe\n%+v\nwant\n%+v", c.cmd, got, want)
		}
	}
}
