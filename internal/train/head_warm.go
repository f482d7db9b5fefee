package train

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/grovellm/grove/nn"
)

// Begun as random numbers a block head learns as slowly as any language model: all that its mask rows know of the anchor must
// come through attention that looks everywhere at first. But the target's blocks are layers of the same kind, and nearly do
// what a head is for. With the mean of the taps in place of each block's own residual stream the anchor's row, which is
// discarded, says what the target says in nine places of ten before any training.
//
// So a head begins as the target: its layers are some of the target's blocks, with the most active units of their MLPs where the
// head's are narrower; and before them a layer whose attention hands the anchor's embedding to all rows.

// hand is the number, in the list of blocks, of the layer that hands on the anchor's embedding.
const hand = -1

// blocksOf is the blocks of a list.
func blocksOf(from []int) []int {
	return slices.DeleteFunc(slices.Clone(from), func(b int) bool { return b == hand })
}

// checkFrom refuses layers that cannot begin as From has it.
func (r *HeadRecipe) checkFrom(target *Shape) error {
	if len(r.From) == 0 {
		return nil
	}
	if err := r.layering().checkFrom(r.From, target); err != nil {
		return err
	}
	blocks := blocksOf(r.From)
	switch {
	case len(blocks) == 0:
		return fmt.Errorf("layers begin as %v: want a block of the target among them, or no list for random weights", r.From)
	case len(blocks) < len(r.From) && r.KVHeads*r.HeadDim > target.Hidden:
		return fmt.Errorf("values are %d wide, the hidden state %d: want no wider ones in a layer that hands on the anchor", r.KVHeads*r.HeadDim, target.Hidden)
	}
	return nil
}

// warm makes layer i begin as block from[i] of the target, which checkFrom has passed. Its texts are examples of what the head
// will read.
func (h *BlockHead) warm(from []int, texts [][]int32) error {
	w := warming{head: byName(h.Params), target: byName(h.target.Params)}
	w.fuse("fc.weight", 0.1)
	w.meanNorm("enc.output_norm.weight", blocksOf(from))
	w.copy("output_norm.weight", "output_norm.weight")
	for layer, b := range from {
		if b != hand {
			w.block(layer, b)
		}
	}
	h.Pack()
	for layer, b := range from {
		if b == hand {
			if err := h.handOn(&w, layer, texts); err != nil {
				return err
			}
		}
	}
	h.Pack()
	return nil
}

func byName(params *nn.Params) map[string]*nn.Param {
	m := map[string]*nn.Param{}
	for _, p := range params.All() {
		m[p.Name] = p
	}
	return m
}

// warming makes the parameters of a head begin as what those of its target are.
type warming struct{ head, target map[string]*nn.Param }

func (w *warming) copy(name, from string) { copy(w.head[name].Data, w.target[from].Data) }

// fuse makes a projection of joined taps their mean, beside a little of what was drawn.
func (w *warming) fuse(name string, drawn float32) {
	fc := w.head[name]
	taps := fc.Cols / fc.Rows
	for i := range fc.Data {
		fc.Data[i] *= drawn
	}
	for t := range taps {
		for i := range fc.Rows {
			fc.Data[i*fc.Cols+t*fc.Rows+i] += 1 / float32(taps)
		}
	}
}

// meanNorm makes a norm the mean of those before the attention of some blocks: what it normalises is to be read by layers that
// begin as these.
func (w *warming) meanNorm(name string, blocks []int) {
	norm := w.head[name]
	clear(norm.Data)
	for _, b := range blocks {
		for i, v := range w.target[fmt.Sprintf("blk.%d.attn_norm.weight", b)].Data {
			norm.Data[i] += v / float32(len(blocks))
		}
	}
}

// block copies a block of the target.
func (w *warming) block(layer, b int) {
	name := func(part string) (head, target string) {
		return fmt.Sprintf("blk.%d.%s.weight", layer, part), fmt.Sprintf("blk.%d.%s.weight", b, part)
	}
	for _, part := range []string{"attn_norm", "attn_q", "attn_k", "attn_v", "attn_output", "attn_q_norm", "attn_k_norm", "ffn_norm"} {
		w.copy(name(part))
	}
	w.mlp(layer, b)
}

// mlp makes the MLP of a layer that of some blocks, of whose units it takes those whose weights are longest.
func (w *warming) mlp(layer int, blocks ...int) {
	at := func(m map[string]*nn.Param, layer int, part string) *nn.Param {
		return m[fmt.Sprintf("blk.%d.%s.weight", layer, part)]
	}
	gate, up, down := at(w.head, layer, "ffn_gate"), at(w.head, layer, "ffn_up"), at(w.head, layer, "ffn_down")
	type unit struct {
		block, row int
		size       float64
	}
	var units []unit
	for _, b := range blocks {
		gateT, upT, downT := at(w.target, b, "ffn_gate"), at(w.target, b, "ffn_up"), at(w.target, b, "ffn_down")
		for u := range gateT.Rows {
			// A unit's weight in the output is, for inputs of one length, about the product of the lengths of its weights.
			var d float64
			for i := range downT.Rows {
				d += float64(downT.Data[i*downT.Cols+u]) * float64(downT.Data[i*downT.Cols+u])
			}
			units = append(units, unit{b, u, length(row(gateT, u)) * length(row(upT, u)) * math.Sqrt(d)})
		}
	}
	slices.SortStableFunc(units, func(a, b unit) int { return cmp.Compare(b.size, a.size) })
	for i, u := range units[:min(gate.Rows, len(units))] {
		downT := at(w.target, u.block, "ffn_down")
		copy(row(gate, i), row(at(w.target, u.block, "ffn_gate"), u.row))
		copy(row(up, i), row(at(w.target, u.block, "ffn_up"), u.row))
		for j := range down.Rows {
			down.Data[j*down.Cols+i] = downT.Data[j*downT.Cols+u.row]
		}
	}
}

func row(p *nn.Param, i int) []float32 { return p.Data[i*p.Cols : (i+1)*p.Cols] }

func length(v []float32) float64 {
	sum := 0.0
	for _, x := range v {
		sum += float64(x) * float64(x)
	}
	return math.Sqrt(sum)
}
