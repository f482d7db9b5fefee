package specblock

import (
	"fmt"
	"math"

	"github.com/grovellm/grove/internal/nn"
	"github.com/grovellm/grove/internal/train"
)

// A SpecBlock head, too, starts as its target. Layer i starts as block from[i], and a row passes
// from one to the next unchanged. The input that the first of these blocks would get at a
// block's token is unknown, since the target has not read that token yet. But it is nearly a
// linear function of the token's embedding and of the target's last state at the previous token,
// and that state is nearly one of the taps. Both functions are solved for, and are the initial
// W_fuse and W_cond. So a block's first row predicts from the start what the target predicts;
// its own last state is nearly the target's, and a later block can continue from it at once.
// Training has to teach the other rows.

// warm starts layer i as block from[i] of the target. The texts are examples of the head's input.
//
// slots is the root mean square of a slot query's contribution to the first layer's input, relative
// to that of the target block's input. 0 means a tenth of the weights that were drawn; with the
// prefix broadcast, the rows of a block then start nearly alike.
func (h *Head) warm(from []int, texts [][]int32, slots float64) error {
	h.Tape.Detach()
	w := h.Begin()
	for layer, b := range from {
		w.Block(layer, b)
	}
	w.Copy("output_norm.weight", "output_norm.weight")
	for i := range h.net.Shifts {
		own := w.Head[fmt.Sprintf("blk.%d.shift_own.weight", i)]
		clear(own.Data)
		for d := range own.Rows {
			own.Data[d*own.Cols+d] = 1
		}
		w.Scale(fmt.Sprintf("blk.%d.shift_prev.weight", i), 0.1)
	}
	w.Scale("fuse_query.weight", 0.1)
	size, err := h.begin(w, from[0], texts)
	if err != nil {
		return err
	}
	if slots > 0 {
		h.sizeSlots(w, slots*size)
	}
	h.Pack()
	return w.Err
}

// sizeSlots scales the part of W_fuse for the slots' queries so that their contribution to the
// first layer's input has root mean square size.
func (h *Head) sizeSlots(w *train.WarmStart, size float64) {
	query, fuse := w.Head["query.weight"], w.Head["fuse_query.weight"]
	var squares float64
	for k := range query.Rows {
		unit := train.Unit(train.Row(query, k))
		for i := range fuse.Rows {
			var sum float64
			for j, v := range train.Row(fuse, i) {
				sum += float64(v) * float64(unit[j])
			}
			squares += sum * sum
		}
	}
	w.Scale("fuse_query.weight", float32(size/math.Sqrt(squares/float64(query.Rows*fuse.Rows))))
}

// begin solves for W_cond, which computes the target's last state at a token from the token's taps,
// and for the parts of W_fuse that compute the input of a target's block at the next token from
// this state and that token's embedding, both normalised. The condition of a later block is such a
// state too: the head's own. size is the root mean square of the target block's input.
func (h *Head) begin(w *train.WarmStart, block int, texts [][]int32) (size float64, err error) {
	hidden, width := h.net.Hidden, len(h.net.Taps)*h.net.Hidden
	look := train.NewFrozen(h.Target.Model, append(append([]int(nil), h.net.Taps...), h.Target.Config.Layers, block))
	entries := len(texts[0]) - 1
	taps, embedded := nn.NewMat(len(texts)*entries, width), make([]float32, hidden)
	var in, state, embeds, read [][]float32
	for t, text := range texts {
		look.Read([][]int32{text})
		for i := range entries {
			here, next := look.Taps.Row(i), look.Taps.Row(i+1)
			in = append(in, taps.Row(t*entries+i))
			copy(in[len(in)-1], here)
			state = append(state, append([]float32(nil), here[width:width+hidden]...))
			h.net.Embed.Row(embedded, int(text[i+1]))
			embeds = append(embeds, train.Unit(embedded))
			read = append(read, append([]float32(nil), next[width+hidden:]...))
		}
	}
	m, err := train.Regress(in, state)
	if err != nil {
		return 0, err
	}
	train.Solved(w.Head["fc.weight"], m, 0)
	h.Pack()
	conditions := nn.NewMat(taps.Rows, hidden)
	h.net.Condition(h.Exec, taps, conditions)
	for i, e := range embeds {
		in[i] = append(e[:hidden:hidden], train.Unit(conditions.Row(i))...)
	}
	if m, err = train.Regress(in, read); err != nil {
		return 0, err
	}
	train.Solved(w.Head["fuse_token.weight"], m, 0)
	train.Solved(w.Head["fuse_cond.weight"], m, hidden)
	for _, v := range read {
		length := train.Length(v)
		size += length * length / float64(len(read)*hidden)
	}
	return math.Sqrt(size), nil
}
