package medusa

import (
	"github.com/grovellm/grove/internal/autograd"
	"github.com/grovellm/grove/internal/nn"
	"github.com/grovellm/grove/internal/train"
	"github.com/grovellm/grove/sample"
)

// Validate measures, on each held-out source, the loss, the share of correct first guesses by
// depth, and τ: the tokens per round when verifying chains or trees.
func (l *learner) Validate() (losses, figures map[string]float64, err error) {
	return l.Heads.Validate(func(t *train.HeldText, figure func(string, float64)) (autograd.Loss, error) {
		m, err := l.heads.measure(t, l.r.goal())
		if err != nil {
			return autograd.Loss{}, err
		}
		m.Figures(figure)
		return m.Loss, nil
	})
}

// measure makes the heads draft after every token that the target generated.
func (h *Heads) measure(t *train.HeldText, o goal) (*train.Blocks, error) {
	h.Tape.Detach()
	depths := h.net.Depths
	m, err := train.NewBlocks(depths)
	if err != nil {
		return nil, err
	}
	err = t.Each(train.HeldTexts, train.HeldTokens, depths+1, func(text []int32, places []int) error {
		texts, at := [][]int32{text}, [][]int{places}
		m.Loss.Add(h.gradient(texts, at, o, 1))
		y, n := h.run(h.target(texts, at, goal{})), len(places)
		levels := make([][][]sample.Candidate, n)
		for i := range depths {
			src := nn.Source{X: y.Slice(i*n, (i+1)*n)}
			for k, candidates := range m.Rank(h.Exec, src, h.net.Matrix(i), nil, h.net.Vocab) {
				levels[k] = append(levels[k], candidates)
			}
		}
		m.Add(text, places[0], levels)
		return nil
	})
	return m, err
}

// ranked is the number of a head's candidates that a tree template can use, as in the authors' code.
const ranked = 10

// ranks returns, for every place of a text, the right token's rank for each head, or -1 if it is
// not among the first ranked.
func (h *Heads) ranks(text []int32, places []int) [][]int {
	h.Tape.Detach()
	y, n := h.run(h.target([][]int32{text}, [][]int{places}, goal{})), len(places)
	ranks := make([][]int, n)
	logits := nn.NewMat(n, h.net.Vocab)
	for i := range h.net.Depths {
		h.Exec.Linear(nn.Source{X: y.Slice(i*n, (i+1)*n)}, nn.Proj{Linear: h.net.Matrix(i), Dst: logits})
		h.Exec.Pool().Run(n, train.Tasks(func(_, k int) {
			row, rank := logits.Row(k), 0
			right := row[text[places[k]+1+i]]
			for _, v := range row {
				if v > right {
					rank++
				}
			}
			if rank >= ranked {
				rank = -1
			}
			ranks[k] = append(ranks[k], rank)
		}))
	}
	return ranks
}
