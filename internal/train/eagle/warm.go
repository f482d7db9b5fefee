package eagle

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/grovellm/grove/internal/drafters/eagle"
	"github.com/grovellm/grove/internal/nn"
	"github.com/grovellm/grove/internal/train"
)

// An EAGLE head with random initial weights long predicts little more than token frequencies. But its
// target is known: the state that it has to find after a token is, for about seven tenths, a linear
// function of the token's embedding and the previous state. So the head starts as that function, fitted
// to examples: fc computes a place's state from its taps; one query head of each group looks at its own
// row, whose values predict, from embedding and feature, the rows between the two halves of the
// target's last block; and the MLP is that block's, which turns such rows into the last state. Other
// query heads start small. In a native head fc reads embedding and state, and is by itself the function
// to these rows; in an EAGLE-2 head it is the function to the last state, and the MLP starts small too.

// warmStart is a head whose layer gets a warm start.
type warmStart struct {
	*train.OverTarget
	net *eagle.Network
}

// Warm starts the first layer of a head over a target as the linear function, and its MLP as the units
// of some blocks' MLPs that have the greatest norms. The examples are the target's tokens in the texts.
func Warm(ctx context.Context, over *train.OverTarget, net *eagle.Network, from []int, seed uint64,
	texts []train.Conversation) error {
	h := &warmStart{over, net}
	w, s := h.Begin(), h.samples(ctx, texts)
	if err := ctx.Err(); err != nil {
		return err
	}
	w.Copy("blk.0.ffn_norm.weight", fmt.Sprintf("blk.%d.ffn_norm.weight", from[0]))
	clear(w.Head["blk.0.ffn_down.weight"].Data) // for units beyond those of the blocks
	w.MLP(0, from...)
	begin := h.warm2
	if h.net.Version == 3 {
		begin = h.warm3
	}
	if err := begin(w, s, rand.New(rand.NewPCG(seed, 1))); err != nil {
		return err
	}
	h.Pack()
	return w.Err
}

// warm2 solves for fc in an EAGLE-2 head, whose features and outputs are states after the
// target's last norm. A native head has norms before fc, which start as ones, and the
// target's last norm after the layer.
func (h *warmStart) warm2(w *train.WarmStart, s *samples, _ *rand.Rand) error {
	norm := func(v []float32) []float32 { // the target's last norm
		u := train.Unit(v)
		for i, g := range h.net.GNorm.Weight {
			u[i] *= g
		}
		return u
	}
	var rows, here [][]float32
	native := h.net.Version == eagle.Native
	for i := range s.here {
		if native {
			rows = append(rows, append(train.Unit(s.embed[i]), train.Unit(norm(s.before[i]))...))
			here = append(here, s.halfway[i])
			continue
		}
		rows, here = append(rows, append(slices.Clone(s.embed[i]), norm(s.before[i])...)), append(here, norm(s.here[i]))
	}
	w.Scale("blk.0.attn_output.weight", 0.1)
	if native {
		w.Copy(eagle.NativeNorm+".weight", "output_norm.weight")
		return w.Fit(eagle.NativeFuse+".weight", rows, here)
	}
	w.Scale("blk.0.ffn_down.weight", 0.1)
	return w.Fit("fc.weight", rows, here)
}

// warm3 solves for fc and attention in an EAGLE-3 head.
func (h *warmStart) warm3(w *train.WarmStart, s *samples, r *rand.Rand) error {
	w.Copy("output_norm.weight", "output_norm.weight")
	m, err := train.Regress(s.taps, s.before)
	if err != nil {
		return err
	}
	train.Solved(w.Head["fc.weight"], m, 0)
	return h.lookAtSelf(w, s, train.Products(s.taps, m), r)
}

// samples are rows of text: the taps and the target's last state at the previous token, the token's
// embedding, the input of the last block's MLP there, and the last state there.
type samples struct{ taps, before, embed, halfway, here [][]float32 }

// sampleBytes is about the memory that samples may take.
const sampleBytes = 1 << 30

func (h *warmStart) samples(ctx context.Context, texts []train.Conversation) *samples {
	layers, hidden := h.Target.Config.Layers, h.net.Hidden
	look := train.NewFrozen(h.Target.Model, append(slices.Clone(h.net.Taps), layers, layers-1))
	width := h.net.Width()
	s := new(samples)
	for _, t := range texts {
		text := t.Tokens
		look.Read([][]int32{text})
		rows := make([][]float32, len(text))
		halfway := nn.NewMat(len(text), hidden)
		for p := range rows {
			rows[p] = append(rows[p], look.Taps.Row(p)...)
			copy(halfway.Row(p), rows[p][width+hidden:])
		}
		look.Halfway(layers-1, halfway)
		for p := max(t.From-1, 1); p < len(text); p++ {
			e := make([]float32, hidden)
			h.net.Embed.Row(e, int(text[p]))
			s.taps, s.before = append(s.taps, rows[p-1][:width]), append(s.before, rows[p-1][width:width+hidden])
			s.embed, s.here = append(s.embed, e), append(s.here, rows[p][width:width+hidden])
			s.halfway = append(s.halfway, halfway.Row(p))
		}
		if ctx.Err() != nil || 4*len(s.taps)*(width+4*hidden) > sampleBytes {
			break
		}
	}
	return s
}

// A query equal to the key of its own row scores about 8·sharpness there and about 0 elsewhere:
// enough to single it out among a few hundred.
const sharpness = 1.25

// lookAtSelf makes the first query head of every group read its own row, and sets its values
// to what the feature lacks of the next state. The other queries start as they were drawn,
// scaled down, and output less.
func (h *warmStart) lookAtSelf(w *train.WarmStart, s *samples, features [][]float32, r *rand.Rand) error {
	hidden, dim := h.net.Hidden, h.net.HeadDim
	var rows, missing [][]float32
	for i, g := range features {
		d := make([]float32, hidden)
		for o := range g {
			d[o] = s.halfway[i][o] - g[o]
		}
		rows, missing = append(rows, append(train.Unit(s.embed[i]), train.Unit(g)...)), append(missing, d)
	}
	fit, err := train.Regress(rows, missing)
	if err != nil {
		return err
	}
	// the heads may have fewer values than the fit has directions: they take the main ones
	basis, err := train.Principal(train.Products(rows, fit))
	if err != nil {
		return err
	}
	q, k := w.Head["blk.0.attn_q.weight"], w.Head["blk.0.attn_k.weight"]
	v, out := w.Head["blk.0.attn_v.weight"], w.Head["blk.0.attn_output.weight"]
	w.Scale(q.Name, 0.3)
	w.Scale(k.Name, 0.3)
	w.Scale(out.Name, 0.1)
	group := h.net.Heads / h.net.KVHeads
	for n := range v.Rows {
		head, d := n/dim, n%dim
		query, key := train.Row(q, head*group*dim+d), train.Row(k, n)
		for i := range hidden {
			x := float32(r.NormFloat64() * math.Sqrt(sharpness/float64(hidden)))
			query[i], key[i] = x, x
		}
		if n >= hidden {
			continue
		}
		direction := hidden - 1 - n // eigenvectors come in ascending order of eigenvalue
		value := train.Row(v, n)
		clear(value)
		for o := range hidden {
			b := basis.At(o, direction)
			for i := range value {
				value[i] += float32(fit.At(i, o) * b)
			}
			out.Data[o*out.Cols+head*group*dim+d] = float32(b)
		}
	}
	return nil
}
