package eagle

import (
	"math"
	"math/rand/v2"
	"slices"

	"github.com/grovellm/grove/internal/drafters/eagle"
	"github.com/grovellm/grove/internal/kernels/simd"
	"github.com/grovellm/grove/internal/model"
	"github.com/grovellm/grove/internal/nn"
	"github.com/grovellm/grove/internal/train"
	"github.com/grovellm/grove/tree"
)

// drafts runs an EAGLE head as in serving, on text that its target generated, and records a
// router's inputs and the tokens that it should have listed (DynaSpec, appendix A.2).
type drafts struct {
	head   *eagle.Network
	top    int  // how many of a row's likeliest tokens are kept
	output bool // the router reads the rows' outputs, not their features

	target     train.Frozen
	exec       *nn.Exec
	own        *nn.Cache
	tree       tree.Tree
	forest     nn.Forest
	g, in, out nn.Buffer
	states     [2]nn.Buffer
	logits     nn.Buffer
	bufs       eagle.Buffers
}

func newDrafts(target *model.Model, head *eagle.Network, top int, output bool) *drafts {
	pages := head.Pages()
	return &drafts{head: head, top: top, output: output, target: train.NewFrozen(target, head.Taps),
		exec: nn.NewExec(target.Pool()), own: pages.NewCache()}
}

// draftRows are rows of drafts.
type draftRows struct {
	tokens   []int32
	steps    []int     // the draft's step of each row: 0 is a row of the text
	features []float32 // each row's router input in addition to its token
	best     []int32   // each row's likeliest tokens, in order
	chance   []float32 // their probabilities
}

func (s *draftRows) reset() {
	s.tokens = s.tokens[:0]
	s.steps = s.steps[:0]
	s.features = s.features[:0]
	s.best = s.best[:0]
	s.chance = s.chance[:0]
}

// see records the rows of a text at places and, below those that are in later too, chains that the
// head drafts, steps in all including the text's row. A chain's tokens are drawn from the head's
// likeliest by their probability, which is how trees get most of their nodes.
func (d *drafts) see(text []int32, places, later []int, steps int, r *rand.Rand, into *draftRows) {
	g, x := d.read(text)
	first := len(into.tokens)
	tokens := make([]int32, len(places))
	rows := make([]int, len(places))
	for i, p := range places {
		tokens[i], rows[i] = text[p], p-1 // the entry's row, whose feature is that of the token before
	}
	d.keep(into, 0, tokens, pick(&d.in, g, rows), pick(&d.out, x, rows))

	// Of each chain its last node, that node's row in x and its number among the draftRows.
	var nodes, at, seen []int
	for _, p := range later {
		if i, ok := slices.BinarySearch(places, p); ok {
			nodes = append(nodes, p-1)
			at = append(at, p-1)
			seen = append(seen, first+i)
		}
	}
	for step := 1; step < steps && len(nodes) > 0; step++ {
		tokens = tokens[:0]
		from := d.tree.Len()
		for i := range nodes {
			tokens = append(tokens, d.draw(into, seen[i], r))
			nodes[i] = d.tree.AppendApart(nodes[i], tokens[i])
			seen[i] = len(into.tokens) + i
		}
		in := pick(&d.in, x, at)
		x = d.run(from, tokens, in, step)
		d.keep(into, step, tokens, in, x)
		for i := range at {
			at[i] = i
		}
	}
}

// read runs a text through the target and the head, and returns the features and states of its
// entries: all tokens except the first.
func (d *drafts) read(text []int32) (g, x nn.Mat) {
	rows := len(text) - 1
	d.target.Read([][]int32{text[:rows]})
	g = d.g.Mat(rows, d.head.Hidden)
	d.head.Features(d.exec, d.target.Taps, g, &d.bufs)
	d.tree.ResetChain(text[1:])
	return g, d.run(0, text[1:], g, 0)
}

// run computes the tree's rows, starting at row from.
func (d *drafts) run(from int, tokens []int32, g nn.Mat, step int) nn.Mat {
	d.forest.Reset()
	d.own.Reserve(from, len(tokens))
	d.forest.Add(d.own, &d.tree, from)
	x := d.states[step%2].Mat(len(tokens), d.head.Hidden)
	d.head.Run(d.exec, &d.forest, tokens, g, x, &d.bufs)
	return x
}

// pick copies some rows of a matrix.
func pick(buf *nn.Buffer, m nn.Mat, rows []int) nn.Mat {
	p := buf.Mat(len(rows), m.Cols)
	for i, r := range rows {
		copy(p.Row(i), m.Row(r))
	}
	return p
}

// keep records the rows of a step.
func (d *drafts) keep(into *draftRows, step int, tokens []int32, features, states nn.Mat) {
	first := len(into.best)
	into.best = append(into.best, make([]int32, len(tokens)*d.top)...)
	into.chance = append(into.chance, make([]float32, len(tokens)*d.top)...)
	if d.output {
		features = states
	}
	for i, token := range tokens {
		into.tokens, into.steps = append(into.tokens, token), append(into.steps, step)
		into.features = append(into.features, features.Row(i)...)
	}
	train.EachLogits(d.exec, &d.logits, d.head.Output(states), &d.head.Head, func(_, i int, logits []float32) {
		at := first + i*d.top
		d.rank(logits, into.best[at:at+d.top], into.chance[at:at+d.top])
	})
}

// rank finds the likeliest tokens of a row and their probabilities.
func (d *drafts) rank(logits []float32, best []int32, chance []float32) {
	simd.TopK(logits, best, chance)
	sum := float64(simd.LogSumExp(logits))
	for i, l := range chance {
		chance[i] = float32(math.Exp(float64(l) - sum))
		if d.head.Tokens != nil {
			best[i] = d.head.Tokens[best[i]]
		}
	}
}

// draw draws one of a row's best tokens by their probabilities.
func (d *drafts) draw(s *draftRows, row int, r *rand.Rand) int32 {
	best, chance := s.best[row*d.top:(row+1)*d.top], s.chance[row*d.top:(row+1)*d.top]
	sum := float32(0)
	for _, p := range chance {
		sum += p
	}
	u := r.Float32() * sum
	for i, p := range chance {
		u -= p
		if u < 0 {
			return best[i]
		}
	}
	return best[0]
}
