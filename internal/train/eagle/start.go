package eagle

import (
	"cmp"
	"fmt"
	"math"
	"strings"

	"github.com/grovellm/grove/gguf"
	"github.com/grovellm/grove/internal/autograd"
	"github.com/grovellm/grove/internal/drafters/eagle"
	"github.com/grovellm/grove/internal/drafters/registry"
	"github.com/grovellm/grove/internal/heads/headfile"
	"github.com/grovellm/grove/internal/kernels/gemm"
	"github.com/grovellm/grove/internal/model"
	"github.com/grovellm/grove/internal/train"
	"github.com/grovellm/grove/tensor"
)

// OpenStart opens the GGUF file of a target's EAGLE-3 head, from which another head is to start,
// and returns the file's fingerprint too.
func OpenStart(path string, m *model.Model) (h *eagle.Network, fingerprint string, err error) {
	h, err = eagle.Open(registry.Head{Name: path}, registry.Target{Vocab: m.Config.Vocab, Context: m.Context(), Model: m})
	if err != nil {
		return nil, "", err
	}
	if h.Version != 3 {
		return nil, "", fmt.Errorf("%s is an EAGLE-%d head: want an EAGLE-3 head", path, h.Version)
	}
	h.Rope.Neighbours = false // training rotates halves
	fingerprint, err = train.FingerprintFile(path)
	return h, fingerprint, err
}

// Prepare gives a recipe the shape of the head that it starts from, if any, and checks it.
func (r *Recipe) Prepare(j *train.Job) error {
	if r.Start != "" {
		if err := r.follow(j.Target); err != nil {
			return err
		}
	}
	return r.Check(&j.Target.Config)
}

// follow gives a recipe the shape of the EAGLE-3 head that it starts from, except that its MLP may be wider.
func (r *Recipe) follow(m *model.Model) error {
	h, started, err := OpenStart(r.Start, m)
	if err != nil {
		return err
	}
	if r.Version != 3 {
		return fmt.Errorf("an EAGLE-%d head cannot start as the EAGLE-3 head %s: want EAGLE-3, or no start", r.Version, r.Start)
	}
	r.FFN = cmp.Or(r.FFN, h.FFN)
	if r.FFN < h.FFN {
		return fmt.Errorf("an MLP of width %d, where the head %s that it starts as has %d: want as wide a one, or a wider one", r.FFN, r.Start, h.FFN)
	}
	r.Heads, r.KVHeads = h.Heads, h.KVHeads
	r.RopeBase, r.rope = h.Rope.Base, &h.Rope
	r.Taps, r.From = h.Taps, nil
	r.HeadDim, r.DraftVocab = h.HeadDim, len(h.Tokens)
	r.Started, r.tokens = started, h.Tokens
	return nil
}

// Start sets the parameters of a head of a shape over a target to those in an EAGLE head's GGUF
// file, whose draft vocabulary is tokens. A file with an output matrix or embeddings other than the
// target's is refused. Parameters that the file lacks stay as they were drawn, except that later
// layers, and the additional units of an MLP wider than the file's, start by adding nothing.
func Start(over *train.OverTarget, shape headfile.Shape, tokens []int32, path string) error {
	f, err := gguf.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	w := over.Begin()
	for _, info := range f.Tensors {
		if info.Name == "d2t" { // the draft vocabulary, given as tokens
			continue
		}
		t, err := f.Load(info.Name)
		if err != nil {
			return err
		}
		if t, err = headfile.FromGGUF(shape, t); err != nil {
			return err
		}
		v, err := t.Float32s()
		if err != nil {
			return err
		}
		p := w.Head[info.Name]
		switch {
		case p != nil && len(v) <= len(p.Data) && strings.HasPrefix(info.Name, "blk.0.ffn_"):
			widen(p, v, strings.Contains(info.Name, "down"))
		case p != nil && len(v) == len(p.Data):
			copy(p.Data, v)
		case info.Name != "output.weight" || !sameRows(t.Type, v, tokens, over.Target.Head.W):
			return fmt.Errorf("%s: the tensor %s is not the target's: want a head that uses the target's embeddings and output matrix",
				path, info.Name)
		}
	}
	for l := 1; l < shape.Common().Layers; l++ {
		for _, part := range []string{"attn_output", "ffn_down"} {
			clear(w.Head[fmt.Sprintf("blk.%d.%s.weight", l, part)].Data)
		}
	}
	over.Pack()
	return nil
}

// widen sets the first units of an MLP's matrix to those of a narrower one, v. The other units keep
// their input weights, and have zero output weights (down).
func widen(p *autograd.Param, v []float32, down bool) {
	if !down { // rows are units
		copy(p.Data, v)
		return
	}
	units := len(v) / p.Rows
	for o := range p.Rows {
		row := train.Row(p, o)
		clear(row[copy(row, v[o*units:(o+1)*units]):])
	}
}

// sameRows reports whether v holds a matrix's rows for some tokens, apart from the rounding of a file's type.
func sameRows(of tensor.Type, v []float32, tokens []int32, m *gemm.Matrix) bool {
	row, rounded := make([]float32, m.In()), make([]float32, m.In())
	for i, token := range tokens {
		m.Row(row, int(token))
		most := 0.05 * train.Length(row)
		t, err := tensor.FromFloat32s("", of, []int{1, len(row)}, row)
		if err == nil && t.DequantizeRows(rounded, 0, 1) == nil {
			most = max(most, 1.25*distance(rounded, row)) // room for other quantisers
		}
		if !(distance(v[i*len(row):(i+1)*len(row)], row) <= most) {
			return false
		}
	}
	return len(tokens) > 0
}

func distance(a, b []float32) float64 {
	sum := 0.0
	for i, x := range a {
		sum += float64(x-b[i]) * float64(x-b[i])
	}
	return math.Sqrt(sum)
}
