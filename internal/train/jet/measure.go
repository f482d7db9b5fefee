package jet

import (
	"github.com/grovellm/grove/internal/autograd"
	"github.com/grovellm/grove/internal/nn"
	"github.com/grovellm/grove/internal/train"
	"github.com/grovellm/grove/sample"
)

// Validate measures, on each held-out source, the loss, the share of correct first guesses by
// depth, and τ: the tokens per round when verifying the head's chains or trees.
func (l *learner) Validate() (losses, figures map[string]float64, err error) {
	return l.Heads.Validate(func(t *train.HeldText, figure func(string, float64)) (autograd.Loss, error) {
		if c := l.head.correction; c != nil {
			return c.measure(l.head, t, l.objective, figure)
		}
		m, err := l.head.measure(t, l.objective)
		if err != nil {
			return autograd.Loss{}, err
		}
		m.Figures(figure)
		return m.Loss, nil
	})
}

// measure makes the head draft after every token that the target generated.
func (h *Head) measure(t *train.HeldText, o objective) (*train.Blocks, error) {
	h.Tape.Detach()
	block := h.net.Block
	m, err := train.NewBlocks(block - 1)
	if err != nil {
		return nil, err
	}
	err = t.Each(train.HeldTexts, train.HeldTokens, block, func(text []int32, anchors []int) error {
		x, err := h.forward([][]int32{text}, [][]int{anchors}, block, o)
		if err != nil {
			return err
		}
		head := nn.Source{X: x, Norm: &h.net.Norm}
		m.Loss.Add(h.Tape.CrossEntropy(head, &h.net.Head, h.targets, 1))
		ranked := m.Rank(h.Exec, head, &h.net.Head, nil, h.net.Vocab)
		var levels [][][]sample.Candidate
		for n := range anchors {
			levels = append(levels, ranked[n*block+1:(n+1)*block]) // all rows except the anchor's
		}
		m.Add(text, anchors[0], levels)
		return nil
	})
	return m, err
}
