package model_test

import (
	"context"
	"math"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/grovellm/grove/gguf"
	"github.com/grovellm/grove/internal/files/ggufkeys"
	"github.com/grovellm/grove/internal/files/numtype"
	"github.com/grovellm/grove/internal/kernels/cpu"
	"github.com/grovellm/grove/internal/kernels/gemm"
	"github.com/grovellm/grove/internal/model"
	"github.com/grovellm/grove/internal/model/synth"
	"github.com/grovellm/grove/internal/nn"
	"github.com/grovellm/grove/tensor"
	"github.com/grovellm/grove/tree"
)

// sameLogits compares the logits of random trees over a random prompt, in two steps that share a
// cache. most is the largest number of rows in a tree.
func sameLogits(t *testing.T, r *rand.Rand, a, b *model.Model, most int) {
	t.Helper()
	ctx := context.Background()
	prompt := randomTokens(r, a, 1+r.IntN(most))
	ms := []*model.Model{a, b}
	ps := []*model.Pass{a.NewPass(), b.NewPass()}
	var caches []*nn.Cache
	rows := make([][]model.Rows, 2)
	for i, m := range ms {
		c := m.NewCache()
		if err := ps[i].Prefill(ctx, c, prompt, true); err != nil {
			t.Fatal(err)
		}
		caches = append(caches, c)
		rows[i] = []model.Rows{{Cache: c}}
	}
	for range 2 {
		tr := tree.New(r.Int32N(int32(a.Config.Vocab)))
		for range r.IntN(most) {
			tr.Append(r.IntN(tr.Len()), r.Int32N(int32(a.Config.Vocab)), 0)
		}
		all := make([]int32, tr.Len())
		for i := range all {
			all[i] = int32(i)
		}
		for i := range ms {
			rows[i][0].Tree, rows[i][0].Logits = tr, all
			if err := ps[i].Run(ctx, rows[i], nil); err != nil {
				t.Fatal(err)
			}
		}
		for n := range all {
			if !sameBits(ps[0].Logits(0, n), ps[1].Logits(0, n)) {
				t.Fatalf("node %d of %d: padding changed the logits", n, tr.Len())
			}
		}
		path := tr.Path(r.IntN(tr.Len()), nil)
		for _, c := range caches {
			if err := c.Commit(path); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// reached checks that a padded model has about the requested number of parameters.
func reached(t *testing.T, plain, padded *model.Model, want int64) {
	t.Helper()
	c := padded.Config
	layer := (c.Parameters() - int64(c.Vocab*c.Hidden)) / int64(c.Layers)
	if d := c.Parameters() - want; d > layer || d < -layer {
		t.Fatalf("%d parameters of %d wanted, with layers of %d", c.Parameters(), want, layer)
	}
	if c.Padded != c.Parameters()-plain.Config.Parameters() {
		t.Fatalf("%d parameters of padding: from %d to %d", c.Padded, plain.Config.Parameters(), c.Parameters())
	}
}

// Padding never changes a bit of the logits, whatever the architecture, the types and the kernels.
func TestPaddingKeepsLogits(t *testing.T) {
	kinds := []tensor.Type{tensor.F32, tensor.BF16, tensor.F16, tensor.Q8_0,
		tensor.Q4_0, tensor.Q4_1, tensor.Q5_0, tensor.Q5_1, tensor.Q4_K, tensor.Q5_K, tensor.Q6_K, tensor.IQ4_NL, tensor.MXFP4}
	arches := []string{"llama", "qwen2", "qwen3", "gptneox"}
	for _, arch := range model.Architectures() {
		if !slices.Contains(arches, arch) {
			arches = append(arches, arch)
		}
	}
	for i, arch := range arches {
		for j, typ := range kinds {
			// A few for each architecture: the K types are wider and slower.
			if i < 4 && j >= 4 && j%4 != i || i >= 4 && typ != []tensor.Type{tensor.BF16, tensor.Q8_0}[i%2] {
				continue
			}
			t.Run(arch+" "+typ.String(), func(t *testing.T) {
				r := rand.New(rand.NewPCG(uint64(i), uint64(j)))
				path := filepath.Join(t.TempDir(), "m.gguf")
				if err := synth.Write(context.Background(), path, synth.Random(r, arch, typ, 2),
					synth.Options{Type: typ, Seed: r.Uint64()}); err != nil {
					t.Fatal(err)
				}
				plain, err := model.Open(path, model.Options{Threads: 1})
				if err != nil {
					t.Fatal(err)
				}
				defer plain.Close()
				c := plain.Config
				block, _ := typ.Block()
				unit := max(gemm.Group, block)
				// about a layer
				own := int64(c.Hidden*(3*c.FFN+2*(c.Heads+c.KVHeads)*c.HeadDim)) + 1000
				// F32 stands for the default
				o := model.Options{Threads: 1, Pad: c.Parameters() + own*(1+r.Int64N(8)), PadType: kinds[r.IntN(2)]}
				if (i+j)%4 > 0 {
					o.Pad += 50 * (own + int64(3*c.Hidden*(unit+128))) // enough for layers to get wider
				}
				if block > 1 && r.IntN(2) == 0 {
					o.PadType = typ
				}
				padded, err := model.Open(path, o)
				if i >= 4 && err != nil && strings.Contains(err.Error(), "layers of this "+arch+" model ") {
					return // they differ in more than size
				}
				if err != nil {
					t.Fatal(err)
				}
				defer padded.Close()
				reached(t, plain, padded, o.Pad)
				if (i+j)%4 > 0 && padded.Config.FFN == c.FFN && c.Experts == 0 {
					t.Fatal("the layers are no wider than they were")
				}
				levels := cpu.Levels()
				if j != i && len(levels) > 1 { // portable code is slow, and TestZeroWeightsAreNothing of gemm has it
					levels = slices.DeleteFunc(levels, func(l cpu.Level) bool { return l == cpu.Portable })
				}
				if j%4 != i { // one, in turn; each type has all with one architecture
					levels = levels[(i+j)%len(levels):][:1]
				}
				for _, level := range levels {
					rows := 7
					if level == cpu.Portable { // it is slow
						rows = 2
					}
					restore := cpu.Use(level)
					sameLogits(t, r, plain, padded, rows)
					restore()
				}
			})
		}
	}
}

// A model whose MLPs became experts keeps its logits, up to rounding, and its passes read more
// experts the more rows they have.
func TestPaddingWithExperts(t *testing.T) {
	ctx := context.Background()
	r := rand.New(rand.NewPCG(5, 6))
	path := filepath.Join(t.TempDir(), "m.gguf")
	for _, typ := range []tensor.Type{tensor.F32, tensor.F16, tensor.Q8_0} {
		shape := synth.Random(r, "qwen3", typ, 2)
		if err := synth.Write(ctx, path, shape, synth.Options{Type: typ, Seed: 1}); err != nil {
			t.Fatal(err)
		}
		o := model.Options{Threads: 1, PadExperts: 2 + r.IntN(20), Pad: 2_000_000}
		o.PadUsed = 1 + r.IntN(o.PadExperts-1)
		plain, err := model.Open(path, model.Options{Threads: 1})
		if err != nil {
			t.Fatal(err)
		}
		defer plain.Close()
		padded, err := model.Open(path, o)
		if err != nil {
			t.Fatal(err)
		}
		defer padded.Close()
		reached(t, plain, padded, o.Pad)
		prompt := randomTokens(r, plain, 12)
		var logits [2][]float32
		for i, m := range []*model.Model{plain, padded} {
			p := m.NewPass()
			if err := p.Prefill(ctx, m.NewCache(), prompt, true); err != nil {
				t.Fatal(err)
			}
			logits[i] = p.Logits(0, 0)
		}
		largest, off := 0.0, 0.0
		for i, want := range logits[0] {
			largest = max(largest, math.Abs(float64(want)))
			off = max(off, math.Abs(float64(want-logits[1][i])))
		}
		if off > 0.02*largest || off == 0 && o.PadUsed > 1 && typ == tensor.F32 {
			t.Errorf("%v, %d of %d experts: logits are off by %g of %g", typ, o.PadUsed, o.PadExperts, off, largest)
		}
	}
}

// A padded file holds the padded model, and says that it is padded.
func TestWritePadded(t *testing.T) {
	ctx := context.Background()
	r := rand.New(rand.NewPCG(3, 4))
	dir := t.TempDir()
	shape := synth.Random(r, "qwen3", tensor.Q8_0, 2)
	for _, typ := range []tensor.Type{tensor.F16, tensor.Q4_0, tensor.Q4_1} {
		path := filepath.Join(dir, typ.String())
		if err := synth.Write(ctx, path, shape, synth.Options{Type: typ, Seed: 1}); err != nil {
			t.Fatal(err)
		}
		o := model.Options{Threads: 1, Pad: 1_000_000, PadType: tensor.F16}
		c, err := model.WritePadded(ctx, path, path+".padded", o)
		if err != nil {
			t.Fatal(err)
		}
		plain, err := model.Open(path, model.Options{Threads: 1})
		if err != nil {
			t.Fatal(err)
		}
		defer plain.Close()
		written, err := model.Open(path+".padded", model.Options{Threads: 1})
		if err != nil {
			t.Fatal(err)
		}
		defer written.Close()
		opened, err := model.Open(path, o)
		if err != nil {
			t.Fatal(err)
		}
		defer opened.Close()
		if w := written.Config; w.Padded != c.Padded || w.Layers != opened.Config.Layers || w.FFN != opened.Config.FFN ||
			w.Padded != opened.Config.Padded {
			t.Fatalf("%+v written, %+v in memory", w, opened.Config)
		}
		if written.WeightBytes() != opened.WeightBytes() {
			t.Fatalf("a pass reads %d bytes of the file's weights, %d of those in memory", written.WeightBytes(), opened.WeightBytes())
		}
		reached(t, plain, written, o.Pad)
		sameLogits(t, r, plain, written, 7)
	}
}

func TestPaddingRefuses(t *testing.T) {
	path := filepath.Join(t.TempDir(), "m.gguf")
	if err := synth.Write(context.Background(), path, synth.Random(rand.New(rand.NewPCG(1, 1)), "qwen3", tensor.F16, 2),
		synth.Options{Type: tensor.F16, Seed: 1}); err != nil {
		t.Fatal(err)
	}
	for want, o := range map[string]model.Options{
		"has":                  {Pad: 1000},
		"want more":            {Pad: -1},
		"layer count":          {Pad: 1 << 50},
		"cannot be written":    {Pad: 1e6, PadType: numtype.Q2_K},
		"whole blocks of Q8_0": {Pad: 1e6, PadType: tensor.Q8_0},
		"whole blocks of Q6_K": {Pad: 1e6, PadType: tensor.Q6_K},
		"at least one":         {PadExperts: 4},
		"no more than":         {PadExperts: 4, PadUsed: 5},
	} {
		o.Threads = 1
		_, err := model.Open(path, o)
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), path) {
			t.Errorf("%d parameters of %v: error %v, want one with %q and the path", o.Pad, o.PadType, err, want)
		}
		if o.PadExperts > 0 {
			continue // files are not padded so
		}
		if _, err := model.WritePadded(context.Background(), path, path+".x", o); err == nil ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("%d parameters of %v in a file: error %v, want one with %q", o.Pad, o.PadType, err, want)
		}
	}
	if _, err := model.WritePadded(context.Background(), path, path, model.Options{Pad: 1e6}); err == nil ||
		!strings.Contains(err.Error(), "same file") {
		t.Errorf("over itself: %v", err)
	}
	testPadScalars(t, path)
}

// testPadScalars pads files in which a matrix in the first layer is a single number.
func testPadScalars(t *testing.T, path string) {
	f, err := gguf.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for _, scalar := range []string{"blk.0.ffn_up.weight", "blk.0.ffn_down.weight", "blk.0.attn_q.weight"} {
		w := new(gguf.Writer)
		ggufkeys.SetAll(w, f)
		for _, info := range f.Tensors {
			x, err := f.Load(info.Name)
			if info.Name == scalar {
				x, err = tensor.FromFloat32s(scalar, tensor.F32, []int{}, []float32{1})
			}
			if err != nil {
				t.Fatal(err)
			}
			w.AddTensor(x)
		}
		bad := filepath.Join(t.TempDir(), "bad.gguf")
		if err := w.WriteFile(bad); err != nil {
			t.Fatal(err)
		}
		_, err := model.WritePadded(context.Background(), bad, bad+".x", model.Options{Pad: 1e6})
		if err == nil || !strings.Contains(err.Error(), scalar) || !strings.Contains(err.Error(), bad) {
			t.Errorf("%s is a number: %v, want an error that names the tensor and the file", scalar, err)
		}
	}
}

// A padded file leaves out the drafting layer after the model's layers.
func TestWritePaddedWithoutLayerAhead(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	shape := synth.Random(r, "qwen35", tensor.F16, 2)
	tune := shape.Tune
	shape.Tune = func(c *model.Config) {
		if tune != nil {
			tune(c)
		}
		c.Ahead = 1
	}
	path := filepath.Join(t.TempDir(), "ahead.gguf")
	if err := synth.Write(context.Background(), path, shape, synth.Options{Type: tensor.F16, Seed: 1}); err != nil {
		t.Fatal(err)
	}
	if _, err := model.WritePadded(context.Background(), path, path+".padded",
		model.Options{Pad: 3_000_000, PadType: tensor.F16}); err != nil {
		t.Fatal(err)
	}
	var list []*model.Model
	for i, name := range []string{path, path + ".padded"} {
		m, err := model.Open(name, model.Options{Threads: 1})
		if err != nil {
			t.Fatal(err)
		}
		defer m.Close()
		list = append(list, m)
		if m.Config.Ahead != 1-i {
			t.Errorf("%s: %d layers draft, want %d", name, m.Config.Ahead, 1-i)
		}
	}
	if list[1].Config.Layers <= shape.Layers {
		t.Errorf("%d layers are padded to %d", shape.Layers, list[1].Config.Layers)
	}
	sameLogits(t, r, list[0], list[1], 7)
}
