package traintest_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	specblockhead "github.com/grovellm/grove/internal/drafters/specblock"
	"github.com/grovellm/grove/internal/kernels/gemm"
	"github.com/grovellm/grove/internal/model"
	"github.com/grovellm/grove/internal/model/synth"
	"github.com/grovellm/grove/internal/nn"
	"github.com/grovellm/grove/internal/train"
	"github.com/grovellm/grove/internal/train/specblock"
	"github.com/grovellm/grove/tensor"
	"github.com/grovellm/grove/tree"
)

// Layers that start as blocks of a target compute the same as these, whatever the architecture, the
// order of its queries and keys, and its norms; layers of Llama's and Qwen 3's kinds can. Heads
// have no windows, and do not scale positions and queries.
func TestLayersBeginAsBlocks(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	copied := map[string]int{}
	shapes := synth.Small()
	for _, arch := range model.Architectures() {
		shapes = append(shapes, synth.Random(rng, arch, tensor.F32, 0))
	}
	for _, s := range shapes {
		m := randomTarget(t, s, tensor.F32)
		last := m.Config.Layers - 1
		a, rope := m.Blocks[last].Attn, m.Config.Rope
		if exact := a.Window == 0 && !a.NormLast && a.Temper.Scale == 0 && rope.Scale == 1 && rope.Factors == nil; exact &&
			train.CanCopy(m, true, last) {
			copied[s.Arch]++
			sameLayer(t, rng, s.Arch, m, last)
		}
	}
	for _, arch := range []string{"llama", "qwen3"} {
		if copied[arch] == 0 {
			t.Errorf("no layer began as one of %s; of others: %v", arch, copied)
		}
	}
}

// sameLayer compares block b of a target with a head's layer that starts as this block.
func sameLayer(t *testing.T, rng *rand.Rand, arch string, m *model.Model, b int) {
	t.Helper()
	r := specblock.NewRecipe().For(m)
	c := specblockhead.Config{Base: train.Layering{Layers: 1, Heads: r.Heads, KVHeads: r.KVHeads, HeadDim: r.HeadDim,
		FFN: m.Config.FFN, RopeBase: r.RopeBase}.Base(&m.Config, []int{b}), Block: 1}
	if r.Arch != "" {
		c.Arch = r.Arch
	}
	over := train.NewOverTarget(m, c.Taps, gemm.F32)
	net, err := specblockhead.NewNetwork(c, train.Trained{Params: over.Params}, nil, &m.Network)
	if err != nil {
		t.Fatalf("%s: %v", arch, err)
	}
	over.Made(net.Pages)
	w := over.Begin()
	w.Block(0, b)
	if w.Err != nil {
		t.Fatalf("%s: %v", arch, w.Err)
	}
	over.Pack()
	over.Tape.Detach()

	text := make([]int32, 12)
	run := func(block *nn.Block, layer int, cache *nn.Cache, x nn.Mat) {
		var chain tree.Tree
		var f nn.Forest
		chain.ResetChain(text)
		cache.Reserve(0, len(text))
		f.Add(cache, &chain, 0)
		over.Exec.Block(block, layer, &f, x, new(nn.BlockBuffers))
	}
	want := nn.NewMat(len(text), m.Config.Hidden)
	for i := range want.Data {
		want.Data[i] = float32(rng.NormFloat64())
	}
	got := nn.Mat{Rows: want.Rows, Cols: want.Cols, Stride: want.Stride, Data: slices.Clone(want.Data)}
	run(&m.Blocks[b], b, m.NewCache(), want)
	run(&net.Blocks[0], 0, over.Cache(0), got)
	for i, v := range want.Data {
		if math.Abs(float64(got.Data[i]-v)) > 1e-3*(1+math.Abs(float64(v))) {
			t.Errorf("%s: %v: number %d of %d is %g, the block's %g", arch, m.Config, i, len(want.Data), got.Data[i], v)
			return
		}
	}
}

// Halfway turns a block's input rows into the input of the block's MLP half, from which its output follows.
func TestHalfway(t *testing.T) {
	for _, s := range synth.Small() {
		m := randomTarget(t, s, tensor.F32)
		last := m.Config.Layers - 1
		if !train.CanCopy(m, false, last) {
			continue
		}
		f := train.NewFrozen(m, []int{last, last + 1})
		f.Read([][]int32{{3, 1, 4, 1, 5, 9, 2, 6}})
		rows := nn.NewMat(f.Taps.Rows, m.Config.Hidden)
		for i := range rows.Rows {
			copy(rows.Row(i), f.Taps.Row(i))
		}
		f.Halfway(last, rows)
		nn.NewExec(m.Pool()).MLP(&m.Blocks[last], rows, new(nn.BlockBuffers))
		for i := range rows.Rows {
			for j, want := range f.Taps.Row(i)[m.Config.Hidden:] {
				if got := rows.Row(i)[j]; math.Abs(float64(got-want)) > 1e-4*(1+math.Abs(float64(want))) {
					t.Fatalf("%s: row %d, number %d is %g, the block's %g", s.Name, i, j, got, want)
				}
			}
		}
	}
}
