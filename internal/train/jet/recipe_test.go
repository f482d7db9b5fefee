package jet

import (
	"math"
	"testing"

	"github.com/grovellm/grove/internal/train"
	"github.com/grovellm/grove/internal/train/traintest"
)

// A recipe that cannot be completed is refused before anything is done.
func TestHeadRecipeRefuses(t *testing.T) {
	tiny := traintest.Shape()
	shape := tiny.Config()
	traintest.Refuses(t, func() Recipe { return tinyHead(true, 40) },
		func(r *Recipe) error { return r.Prepare(traintest.Over(shape)) }, map[string]func(r *Recipe){
			"no block 2":           func(r *Recipe) { r.From = []int{0, 2} },
			"as many of":           func(r *Recipe) { r.From = []int{0} },
			"a block of":           func(r *Recipe) { r.From = []int{train.Hand, train.Hand} },
			"no wider":             func(r *Recipe) { r.From, r.FFN = []int{0, 1}, 96 },
			"attention of":         func(r *Recipe) { r.From, r.KVHeads = []int{train.Hand, 1}, 2 },
			"whole blocks":         func(r *Recipe) { r.FFN = 48 },
			"taps layers":          func(r *Recipe) { r.Taps = []int{1, 3} },
			"taps 0 layers":        func(r *Recipe) { r.Taps = nil },
			"precision":            func(r *Recipe) { r.Precision = "f16" },
			"--rows 3":             func(r *Recipe) { r.Rows = 3 },
			"--rows 1":             func(r *Recipe) { r.Rows, r.MicroRows = 1, 1 },
			"every 1-th":           func(r *Recipe) { r.LongEvery = 1 },
			"blocks of 5":          func(r *Recipe) { r.ShortBlock = 5 },
			"room":                 func(r *Recipe) { r.Block = 18 },
			"loss \"mse\"":         func(r *Recipe) { r.Loss = "mse" },
			"text \"web\"":         func(r *Recipe) { r.Text = "web" },
			"temperature":          func(r *Recipe) { r.Temperature = 0 },
			"gamma":                func(r *Recipe) { r.Gamma = math.NaN() },
			"repeated positions":   func(r *Recipe) { r.Repeats = 1.5 },
			"0 files":              func(r *Recipe) { r.Short.Files = 0 },
			"48 tokens, 47 of":     func(r *Recipe) { r.Long.Prompt = 47 },
			"24 tokens, 1 of":      func(r *Recipe) { r.Short.Prompt = 1 },
			"0 blocks each":        func(r *Recipe) { r.Anchors = 0 },
			"key/value head count": func(r *Recipe) { r.KVHeads = 3 },
		})
	for _, r := range []Recipe{tinyHead(true, 40), tinyHead(false, 1)} {
		if err := r.Prepare(traintest.Over(shape)); err != nil {
			t.Error(err)
		}
	}
	shipped := train.TargetRecipe().Shape
	target := shipped.Config()
	for _, causal := range []bool{true, false} {
		r := NewRecipe(causal)
		if err := r.Prepare(traintest.Over(target)); err != nil {
			t.Error(err)
		}
	}
}

// A run continues from a checkpoint only if the recipe's fingerprint is the same. It
// covers the names and the order of fields: changing these makes all runs that were
// stopped before unable to continue.
func TestFingerprintStays(t *testing.T) {
	r := tinyHead(true, 7)
	if got := train.Fingerprint(&r); got != "53f4f75d5bcf3e45" {
		t.Errorf("fingerprint %q", got)
	}
}
