package check

import (
	"math/rand/v2"
	"strings"

	"github.com/grovellm/grove/draft"
	"github.com/grovellm/grove/internal/drafters/learn"
	"github.com/grovellm/grove/internal/drafters/synthetic"
	"github.com/grovellm/grove/internal/heads/headfile"
	"github.com/grovellm/grove/tensor"
)

// swap gives a drafter that learns while it serves other weights under way, sometimes: random ones,
// which none learned from text.
func swap(d draft.Drafter, rng *rand.Rand) error {
	l, ok := d.(learn.Learner)
	if !ok || rng.IntN(8) > 0 {
		return nil
	}
	h := l.Head()
	w := &synthetic.Weights{Type: tensor.F32, Seed: rng.Uint64()}
	h.Tensors().Weights(func(x headfile.Weight) {
		if strings.HasSuffix(x.Name, ".bias") {
			w.Extra = append(w.Extra, x.Name)
		}
	})
	other, err := h.Rebuild(w)
	if err == nil {
		l.Use(other)
	}
	return err
}
