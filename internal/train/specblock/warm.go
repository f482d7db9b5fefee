package specblock

import (
	"fmt"
	"math"

	"github.com/grovellm/grove/internal/nn"
	"github.com/grovellm/grove/internal/train"
)

// A SpecBlock head, too, begins as its target. Layer i begins as block from[i], and a row goes from
// one to the next as it is. What the first of these blocks would read at the place of a block's
// token is not known, since the target has not read that token yet; but it is nearly a linear
// function of the token's embedding and of the state that the target ended with at the token
// before, and that state one of its taps. Both functions are solved for: they are what W_fuse and
// W_cond begin as. So the first row of a block begins to say what the target says; its own last
// state is nearly the target's, and a later block can go on from it at once. Training has to teach
// the other rows.

// warm makes layer i begin as block from[i] of the target. Its texts are examples of what the head
// will read.
//
// slots is the root mean square of what a slot's query adds to the first layer's input, over that of
// what the target's block reads. 0: a tenth of the weights that were drawn; with the prefix broadcast
// the rows of a block then begin nearly alike.
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

// sizeSlots scales W_fuse's part for the slots' queries until what they add to the first layer's input
// has this root mean square.
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

// begin solves for W_cond, which is to make of a token's taps the state that the target ends with
// there, and for the parts of W_fuse that make of this state and the next token's embedding, both
// normalised, what a block of the target reads at that token. A later block's condition is such a
// state too: the head's own. size is the root mean square of what that block of the target reads.
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
