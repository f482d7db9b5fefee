package falcon

import (
	"fmt"

	"github.com/grovellm/grove/draft"
	"github.com/grovellm/grove/internal/autograd"
	"github.com/grovellm/grove/internal/drafters/falcon"
	"github.com/grovellm/grove/internal/drafters/grow"
	"github.com/grovellm/grove/internal/train"
)

// Validate measures, on each held-out source, the loss; the share of correct first guesses by their
// number in a block, with all places before the block read by the target; and τ, the tokens per
// round with a chain or with a tree.
func (l *learner) Validate() (losses, figures map[string]float64, err error) {
	return l.Heads.Validate(func(t *train.HeldText, figure func(string, float64)) (autograd.Loss, error) {
		m, err := l.head.measure(t, l.r.objective())
		if err != nil {
			return autograd.Loss{}, err
		}
		m.grown.Figures(figure)
		for d, l := range m.slots {
			figure(fmt.Sprintf("depth %02d", d+1), float64(l.Correct)/float64(l.Rows))
		}
		return m.loss, nil
	})
}

// measure is the result of a head on held-out text.
type measure struct {
	loss  autograd.Loss
	slots []autograd.Loss // by the number in a block
	grown train.Grown
}

// measure makes the head draft after every token that the target generated.
func (h *Head) measure(t *train.HeldText, o objective) (*measure, error) {
	m := &measure{slots: make([]autograd.Loss, h.net.Block)}
	open := func(s grow.Shape) (draft.Drafter, error) {
		return falcon.New(h.net, s, false, nil, h.Exec.Pool())
	}
	err := t.Each(train.HeldTexts, train.HeldTokens, train.HeldDepth, func(text []int32, places []int) error {
		all := texts{list: [][]int32{text}, places: [][]int{places}}
		h.read(&all, o.temperature)
		x := h.run(&all, nil)
		for slot := range m.slots {
			l := h.loss(&all, x, h.rowsOf(&all, slot), o, 1, false)
			m.slots[slot].Add(l)
			m.loss.Add(l)
		}
		return m.grown.Add(open, h.Target.Taps, h.net.Hidden, text, places[0], len(places))
	})
	return m, err
}
