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
// The first blocks of all of a text's entries are computed in one pass, since each sees the rows of
// the blocks before it. The rows of some, drawn at random, are trained, and later blocks continue from
// them: a second from a row of the first, a third from a row of the second, on the head's own states
// and the text's tokens. All blocks with the same number of blocks before them run in one pass, over
// the keys and values that earlier passes left, and the gradient flows back through all passes.
type Head struct {
	train.OverTarget

	net     *specblock.Network
	outputs train.Output
	texts   [][]int32 // of the last pass
	layouts []*specblock.Layout
	rounds  []*round
	bufs    specblock.Buffers
	soft    autograd.Soft
	first   int // the place of a text whose distribution is the text's first in soft
	judging judging
}

// start is where blocks are trained: at is the place of the first block's input token, the last
// committed one; cuts has, for every later block, how far along the rows of the block before it the
// block starts, from 0 to below 1.
type start struct {
	at   int
	cuts []float64
}

// round is the blocks that have the same number of blocks before them.
type round struct {
	pass   specblock.Pass
	states nn.Mat // of all rows in the pass
	blocks []block
	said   []said  // for the rows of the blocks, in order
	from   []int32 // the previous round's rows that the blocks start from

	x, cond, trained, features, scores nn.Buffer
}

// block is a block in training: its row k has to predict token at+1+k of a text.
type block struct {
	text, at int
	row      int // its first row, in the states of its round
	node     int // the same row in the text's layout
	start    int // index of its start, counted through all texts
}

// NewHead returns a head of zeros over a target; its matrix products run as kind (F32 or BF16). tokens is its
// draft vocabulary; nil means all. With own, its output matrix is its own and trained, else the target's.
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

// forward runs several rounds of blocks on some texts of one length; the first has the blocks of
// all entries. Afterwards rounds[b].states has the rows of round b before the last norm,
// rounds[b].said their predictions, and soft the target's distributions from place h.first on.
// Blocks whose token, or the token after it, is beyond the text are left out.
//
// onPath allows only starts that drafting reaches: if the row of a cut comes after a wrong row of
// its block, the new block starts from an earlier row. The text's token there is then that row's
// first guess or an alternative.
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

// runFirst runs the first blocks. A text's last token has no entry, since nothing comes after it.
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

// cutRow maps a cut to a row, from 1 to rows, each with the same probability.
func cutRow(cut float64, rows int) int { return 1 + int(cut*float64(rows)) }

// goOn runs round b, the blocks that start from those of the previous round, and
// reports whether it has any.
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
