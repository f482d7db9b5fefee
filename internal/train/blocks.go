package train

import (
	"fmt"
	"math"

	"github.com/grovellm/grove/internal/autograd"
	"github.com/grovellm/grove/internal/drafters/onepass"
	"github.com/grovellm/grove/internal/drafters/textrank"
	"github.com/grovellm/grove/internal/nn"
	"github.com/grovellm/grove/sample"
	"github.com/grovellm/grove/tree"
)

// HeldBudget is the number of nodes, including the root, of the tree with which held-out text is drafted.
const HeldBudget = 64

// HeldTree is the name of that tree in interim measures.
var HeldTree = fmt.Sprintf("tree of %d", HeldBudget)

// Blocks is the result on held-out text of a head that drafts all depths in one pass.
type Blocks struct {
	Loss autograd.Loss

	blocks int
	right  []int // first guesses by depth, from 0

	shapes         []heldShape
	tokens, rounds []float64 // of each shape
}

type heldShape struct {
	name string
	*onepass.Shape
}

// NewBlocks measures blocks of the given number of depths.
func NewBlocks(depths int) (*Blocks, error) {
	m := &Blocks{right: make([]int, depths)}
	for _, s := range []struct{ name, shape string }{{"chain", onepass.Chain}, {HeldTree, onepass.DDTree}} {
		shape, err := onepass.NewShape(s.shape, 0, 0)
		if err != nil {
			return nil, err
		}
		m.shapes = append(m.shapes, heldShape{s.name, shape})
	}
	m.tokens, m.rounds = make([]float64, len(m.shapes)), make([]float64, len(m.shapes))
	return m, nil
}

// Rank lists for every row its likeliest tokens, as many as a shape considers. tokens are those of
// a draft vocabulary, for a target with vocab tokens; nil: it is the whole vocabulary.
func (m *Blocks) Rank(e *nn.Exec, src nn.Source, head *nn.Linear, tokens []int32, vocab int) [][]sample.Candidate {
	n := 1
	for _, s := range m.shapes {
		n = max(n, s.Ranked(HeldBudget))
	}
	ranked := make([][]sample.Candidate, src.X.Rows)
	samplers, _ := textrank.Samplers(e.Pool(), vocab) // the zero Params are valid
	EachLogits(e, new(nn.Buffer), src, head, func(worker, i int, logits []float32) {
		c := make([]sample.Candidate, 0, n)
		if tokens != nil {
			ranked[i] = samplers[worker].TopOf(c, logits, tokens, math.Inf(-1), 0, nil)
		} else {
			ranked[i] = samplers[worker].Top(c, logits, 0, nil)
		}
	})
	return ranked
}

// EachLogits computes the logits of a source's rows in the memory of buf, and calls do with those
// of each row, on all workers. Only a few rows' logits exist at a time.
func EachLogits(e *nn.Exec, buf *nn.Buffer, src nn.Source, head *nn.Linear, do func(worker, row int, logits []float32)) {
	const part = 256
	x, at := src.X, src.At
	n := x.Rows
	if at != nil {
		n = len(at)
	}
	for from := 0; from < n; from += part {
		to := min(from+part, n)
		if at != nil {
			src.At = at[from:to]
		} else {
			src.X = x.Slice(from, to)
		}
		logits := buf.Mat(to-from, head.W.Out())
		e.Linear(src, nn.Proj{Linear: head, Dst: logits})
		e.Pool().Run(logits.Rows, Tasks(func(worker, i int) { do(worker, from+i, logits.Row(i)) }))
	}
}

// Add goes through a text as decoding would with each shape. levels are the candidates by depth of
// the block at every token from first on.
func (m *Blocks) Add(text []int32, first int, levels [][][]sample.Candidate) {
	for n, level := range levels {
		m.blocks++
		for d := range m.right {
			if level[d][0].Token == text[first+n+1+d] {
				m.right[d]++
			}
		}
	}
	var t tree.Tree
	for s, shape := range m.shapes {
		for n := 0; n < len(levels); {
			t.Reset(text[first+n])
			shape.Build(&t, levels[n], HeldBudget, nil)
			node, k := 0, 1
			for ; k <= len(m.right); k++ {
				node = t.Child(node, text[first+n+k])
				if node < 0 {
					break
				}
			}
			m.rounds[s]++
			m.tokens[s] += math.Min(float64(k), float64(len(levels)-n)) // those accepted, and the target's own
			n += k
		}
	}
}

// Figures reports τ of every shape, and the share of right first guesses by depth.
func (m *Blocks) Figures(figure func(name string, v float64)) {
	for s, shape := range m.shapes {
		figure(shape.name, m.tokens[s]/m.rounds[s])
	}
	for d, n := range m.right {
		figure(fmt.Sprintf("depth %02d", d+1), float64(n)/float64(m.blocks))
	}
}
