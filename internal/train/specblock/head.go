// Package specblock trains SpecBlock heads.
package specblock

import (
	"fmt"
	"slices"

	"github.com/grovellm/grove/internal/autograd"
	"github.com/grovellm/grove/internal/drafters/specblock"
	"github.com/grovellm/grove/internal/heads/headfile"
	"github.com/grovellm/grove/internal/kernels/gemm"
	"github.com/grovellm/grove/internal/model"
	"github.com/grovellm/grove/internal/nn"
	"github.com/grovellm/grove/internal/train"
)

// Head is a SpecBlock head in training over a frozen target (SpecBlock §3.3).
//
// The first blocks of all entries of a text are computed in one pass, since each sees the rows of
// those before it. Of some, drawn at random, the rows are trained, and later blocks go on from them:
// a second from a row of the first, a third from one of the second, on the head's own states and
// the text's tokens. All that start after as many blocks run in one pass, over the keys and values
// that the passes before it left, and the gradient goes back through all passes.
type Head struct {
	train.OverTarget

	net     *specblock.Network
	outputs train.Output
	texts   [][]int32 // of the last pass
	layouts []*specblock.Layout
	rounds  []*round
	bufs    specblock.Buffers
	soft    autograd.Soft
	first   int // place of a text whose distribution is the first of its ones in soft
	judging judging
}

// start is where blocks are trained: the place of the token that the first is given, the last
// committed one, and for every block after that how far along the rows of the block before it, from 0
// to below 1, it starts.
type start struct {
	at   int
	cuts []float64
}

// round is blocks that as many others come before.
type round struct {
	pass   specblock.Pass
	states nn.Mat // of all rows of the pass
	blocks []block
	said   []said  // by the rows of the blocks, in their order
	from   []int32 // rows of the round before that its blocks start from

	x, cond, trained, features, scores nn.Buffer
}

// block is a block that is trained: row k of it is to say token at+1+k of a text.
type block struct {
	text, at int
	row      int // its first, in the states of its round
	node     int // the same in the text's layout
	start    int // number of the start that it belongs to, counted through all texts
}

// NewHead returns a head of zeros over a target, whose products run as kind (F32 or BF16). tokens
// are those of its draft vocabulary; nil: all. Its output matrix is its own, and trained, or the target's.
func NewHead(c specblock.Config, tokens []int32, own bool, target *model.Model, kind gemm.Type) (*Head, error) {
	h := &Head{OverTarget: train.NewOverTarget(target, c.Taps, kind), judging: newJudging(target.Pool())}
	var err error
	if h.outputs, err = h.Target.OutputOf(tokens, kind); err != nil {
		return nil, err
	}
	w := train.Trained{Params: h.Params, Output: h.outputs.W, Own: own}
	if h.net, err = specblock.NewNetwork(c, w, tokens, &target.Network); err != nil {
		return nil, err
	}
	h.Made(h.net.Pages)
	return h, headfile.Fits(&c, &target.Config)
}

// Config is the head's shape.
func (h *Head) Config() *specblock.Config { return &h.net.Config }

// forward runs the first blocks of all entries of some texts of one length, and as many rounds of
// blocks in all. Afterwards rounds[b].states are the rows of round b before the last norm,
// rounds[b].said is what they say, and soft has the target's distributions from place h.first on.
// Blocks whose token the text does not have, or not the one after it, are left out.
//
// onPath keeps to starts that drafting comes to: where the row of a cut comes after a wrong one of
// its block, the block starts from an earlier one. What the text has there is that row's first
// guess or an alternative.
func (h *Head) forward(texts [][]int32, starts [][]start, rounds int, onPath bool) error {
	length := len(texts[0])
	h.first = length
	for i, list := range starts {
		for _, s := range list {
			if s.at < 1 || s.at > length-2 || len(s.cuts) < rounds-1 ||
				slices.ContainsFunc(s.cuts, func(c float64) bool { return !(c >= 0 && c < 1) }) {
				return fmt.Errorf("text %d of %d tokens: a start at %d with cuts %v: want a place after the first token and before the last, and %d cuts from 0 to below 1",
					i, length, s.at, s.cuts, rounds-1)
			}
			h.first = min(h.first, s.at)
		}
	}
	h.texts = texts
	for len(h.rounds) < rounds {
		h.rounds = append(h.rounds, new(round))
	}
	for _, r := range h.rounds {
		r.blocks, r.said = r.blocks[:0], r.said[:0]
	}
	h.runFirst(starts)
	for b := 1; b < rounds && h.goOn(b, starts, onPath); b++ {
	}
	return nil
}

// runFirst runs the first blocks. The last token of a text has no entry: nothing comes after it.
func (h *Head) runFirst(starts [][]start) {
	n, entries := h.net, len(h.texts[0])-1
	read := make([][]int32, len(h.texts))
	for i, text := range h.texts {
		read[i] = text[:entries]
	}
	x := h.Target.Read(read)
	h.soft.Temperature = 1
	h.Target.Distributions(&h.soft, x, len(h.texts), h.first, entries, h.outputs.Says)

	r := h.rounds[0]
	r.pass.Reset()
	number := 0
	for i, text := range h.texts {
		if i == len(h.layouts) {
			h.layouts = append(h.layouts, new(specblock.Layout))
		}
		n.Text(h.layouts[i], 0, text[1:])
		n.Add(&r.pass, h.layouts[i], h.Cache(i), 0)
		for _, s := range starts[i] {
			entry := s.at - 1
			r.blocks = append(r.blocks, block{text: i, at: s.at, row: (i*entries + entry) * n.Block,
				node: entry * n.Block, start: number})
			number++
		}
	}
	c := h.Exec.Mat(&r.cond, h.Target.Taps.Rows, n.Hidden)
	n.Condition(h.Exec, h.Target.Taps, c)
	r.states = h.Exec.Mat(&r.x, len(r.pass.Tokens)*n.Block, n.Hidden)
	n.Run(h.Exec, &r.pass, c, r.states, &h.bufs)
	h.judge(r)
}

// cutRow is the row, from 1, of so many that a cut stands for: each with the same chance.
func cutRow(cut float64, rows int) int { return 1 + int(cut*float64(rows)) }

// goOn runs the blocks that start from those of the round before b, and reports whether there are
// any.
func (h *Head) goOn(b int, starts [][]start, onPath bool) bool {
	n := h.net
	r := h.rounds[b]
	last := h.rounds[b-1]
	r.pass.Reset()
	r.from = r.from[:0]
	from := make([]int, len(h.texts))
	for i, l := range h.layouts[:len(h.texts)] {
		from[i] = l.Tree.Len()
	}
	cuts := slices.Concat(starts...)
	for i, p := range last.blocks {
		rows := n.Block
		if onPath {
			rows = valid(last.said[i*n.Block : (i+1)*n.Block])
		}
		cut := cutRow(cuts[p.start].cuts[b-1], rows)
		at := p.at + cut
		if at > len(h.texts[p.text])-2 {
			continue
		}
		token := h.texts[p.text][at]
		r.blocks = append(r.blocks, block{text: p.text, at: at, row: len(r.blocks) * n.Block, start: p.start,
			node: n.Branch(h.layouts[p.text], p.node+cut-1, token, n.Block)})
		r.from = append(r.from, int32(p.row+cut-1))
	}
	if len(r.blocks) == 0 {
		return false
	}
	for i, l := range h.layouts[:len(h.texts)] {
		n.Add(&r.pass, l, h.Cache(i), from[i])
	}
	c := h.Exec.Mat(&r.cond, len(r.blocks), n.Hidden)
	h.Exec.Gather(last.states, r.from, c)
	r.states = h.Exec.Mat(&r.x, len(r.blocks)*n.Block, n.Hidden)
	n.Run(h.Exec, &r.pass, c, r.states, &h.bufs)
	h.judge(r)
	return true
}
