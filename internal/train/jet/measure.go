package jet

import (
	"fmt"
	"math"

	"github.com/grovellm/grove/draft/jet"
	"github.com/grovellm/grove/internal/train"
	"github.com/grovellm/grove/nn"
	"github.com/grovellm/grove/sample"
	"github.com/grovellm/grove/tree"
)

// heldBudget is the nodes of a tree that held-out text is drafted with, the root included.
const heldBudget = 64

// Validate measures on every held-out source the loss, the share of right first guesses by depth, and τ: the tokens that a
// verified chain, or tree, of the head's brings per round.
func (l *learner) Validate() (losses, figures map[string]float64, err error) {
	return l.Heads.Validate(func(t *train.HeldText, figure func(string, float64)) (nn.Loss, error) {
		m, err := l.head.measure(t, l.r.objective())
		if err != nil {
			return nn.Loss{}, err
		}
		for s, shape := range m.shapes {
			figure(shape.name, m.tokens[s]/m.rounds[s])
		}
		for k := 1; k < l.r.Block; k++ {
			figure(fmt.Sprintf("depth %02d", k), float64(m.right[k])/float64(m.blocks))
		}
		return m.loss, nil
	})
}

// measure is what a head makes of held-out text.
type measure struct {
	loss   nn.Loss
	blocks int
	right  []int // first guesses by depth

	shapes         []namedShape
	tokens, rounds []float64 // of each shape
}

type namedShape struct {
	name string
	*jet.Shape
}

func newMeasure(block int) (*measure, error) {
	m := &measure{right: make([]int, block)}
	for _, s := range []struct{ name, shape string }{{"chain", jet.Chain}, {fmt.Sprintf("tree of %d", heldBudget), jet.DDTree}} {
		shape, err := jet.NewShape(s.shape, 0, 0)
		if err != nil {
			return nil, err
		}
		m.shapes = append(m.shapes, namedShape{s.name, shape})
	}
	m.tokens, m.rounds = make([]float64, len(m.shapes)), make([]float64, len(m.shapes))
	return m, nil
}

// measure has the head draft at every token that the target said.
func (h *Head) measure(t *train.HeldText, o objective) (*measure, error) {
	h.Tape.Detach()
	m, err := newMeasure(h.net.Block)
	if err != nil {
		return nil, err
	}
	err = t.Each(train.HeldTexts, train.HeldTokens, h.net.Block, func(text []int32, anchors []int) error {
		x, err := h.forward([][]int32{text}, [][]int{anchors}, h.net.Block, o)
		if err != nil {
			return err
		}
		head := nn.Source{X: x, Norm: &h.net.Norm}
		m.loss.Add(h.Exec.CrossEntropy(head, &h.net.Head, h.targets, 1))
		m.drafts(text, anchors[0], h.rank(x, m.shapes))
		return nil
	})
	return m, err
}

// rank lists for every block row its likeliest tokens, as many as a shape looks at.
func (h *Head) rank(x nn.Mat, shapes []namedShape) [][]sample.Candidate {
	n := 1
	for _, s := range shapes {
		n = max(n, s.Ranked(heldBudget))
	}
	ranked := make([][]sample.Candidate, x.Rows)
	samplers := make([]*sample.Sampler, h.Exec.Threads())
	for i := range samplers {
		samplers[i], _ = sample.New(sample.Params{}, h.net.Vocab) // the zero Params are valid
	}
	var buf nn.Buffer
	const part = 256 // rows whose logits live at a time
	for from := 0; from < x.Rows; from += part {
		rows := min(part, x.Rows-from)
		logits := buf.Mat(rows, h.net.Vocab)
		h.Exec.Linear(nn.Source{X: x.Slice(from, from+rows), Norm: &h.net.Norm}, nn.Proj{Linear: &h.net.Head, Dst: logits})
		h.Exec.Pool().Run(rows, train.Tasks(func(worker, i int) {
			ranked[from+i] = samplers[worker].Top(make([]sample.Candidate, 0, n), logits.Row(i), 0, nil)
		}))
	}
	return ranked
}

// drafts goes through a text as decoding would with each shape, given the ranked rows of a block at every token from first on.
func (m *measure) drafts(text []int32, first int, ranked [][]sample.Candidate) {
	block := len(m.right)
	blocks := len(ranked) / block
	for n := range blocks {
		m.blocks++
		for k := 1; k < block; k++ {
			if ranked[n*block+k][0].Token == text[first+n+k] {
				m.right[k]++
			}
		}
	}
	var t tree.Tree
	for s, shape := range m.shapes {
		for n := 0; n < blocks; {
			t.Reset(text[first+n])
			shape.Build(&t, ranked[n*block+1:(n+1)*block], heldBudget, nil)
			node, k := 0, 1
			for ; k < block; k++ {
				if node = t.Child(node, text[first+n+k]); node < 0 {
					break
				}
			}
			m.rounds[s]++
			m.tokens[s] += math.Min(float64(k), float64(blocks-n)) // those accepted, and the target's own
			n += k
		}
	}
}
