package falcon_test

import (
	"encoding/json"
	"errors"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"

	. "github.com/grovellm/grove/internal/drafters/drafttest"
	"github.com/grovellm/grove/internal/drafters/falcon"
	"github.com/grovellm/grove/internal/drafters/registry"
	"github.com/grovellm/grove/internal/heads/headfile"
	"github.com/grovellm/grove/internal/kernels/par"
	"github.com/grovellm/grove/internal/model"
	"github.com/grovellm/grove/internal/nn"
	"github.com/grovellm/grove/tensor"
	"github.com/grovellm/grove/tree"
)

// A head that PyTorch saved computes here what PyTorch computes with it (testdata/golden.py), for
// both readings of the LSTM: the names and shapes of the tensors, the order of gates, the mask in
// blocks, positions, rotation and norms agree, and so does a block below the text, whose features
// are the states of the block before.
func TestAsPyTorch(t *testing.T) {
	var golden struct {
		Tokens, Draft             []int32
		Features, Zero, Recurrent []float32
	}
	if err := json.Unmarshal(Must(os.ReadFile("testdata/golden/logits.json"))(t), &golden); err != nil {
		t.Fatal(err)
	}
	for _, recurrent := range []bool{false, true} {
		dir, want := t.TempDir(), golden.Zero
		var fields map[string]any
		if err := json.Unmarshal(Must(os.ReadFile("testdata/golden/config.json"))(t), &fields); err != nil {
			t.Fatal(err)
		}
		if recurrent { // PyTorch's own matrices do not show this, because they are untrained
			fields["lstm_recurrent"], want = true, golden.Recurrent
		}
		if err := errors.Join(os.WriteFile(filepath.Join(dir, "config.json"), Must(json.Marshal(fields))(t), 0o666),
			os.WriteFile(filepath.Join(dir, "pytorch_model.bin"),
				Must(os.ReadFile("testdata/golden/pytorch_model.bin"))(t), 0o666)); err != nil {
			t.Fatal(err)
		}
		f := Must(headfile.Read(registry.Head{Name: dir}, (&falcon.Config{}).Kind()))(t)
		defer f.Close()
		if err := headfile.For(f.Shape, model.Config{Hidden: 16, Vocab: 20, Layers: 3}); err != nil {
			t.Fatal(err)
		}
		c := *f.Shape.(*falcon.Config)
		if c.Block != 2 || c.Recurrent != recurrent {
			t.Errorf("the head reads as %+v", c)
		}
		output := f.Weights[slices.IndexFunc(f.Weights, func(w tensor.Tensor) bool { return w.Name == "token_embd.weight" })]
		output.Name = "output.weight"
		w := model.NewLoader(append(f.Weights, output), c.FileArch())
		n, pool := Must(falcon.NewNetwork(c, w, nil, new(model.Network)))(t), par.New(2)
		defer pool.Close()
		if err := w.Pack(pool); err != nil {
			t.Fatal(err)
		}

		e := nn.NewExec(pool)
		text := len(golden.Tokens)
		pages := n.Pages()
		cache, rows := pages.NewCache(), new(tree.Tree)
		n.LayOut(rows, golden.Tokens, true)
		x, out := nn.NewMat(text+2, c.Hidden), nn.NewMat(text+2, c.Vocab)
		var bufs falcon.Buffers
		var memory []float32
		run := func(from, to int, g nn.Mat, before []int32, carry [][]float32) {
			var forest nn.Forest
			forest.Add(cache, rows, from)
			cache.Reserve(from, to-from)
			var o *falcon.Order
			if recurrent {
				o = new(falcon.Order)
				o.Set(before, carry)
			}
			n.Run(e, &forest, rows.Token[from:], g, o, x.Slice(from, to), &bufs)
			if recurrent {
				memory = o.State(nil, to-from-1)
			}
		}
		features := nn.NewMat(text, c.Hidden)
		copy(features.Data, golden.Features)
		run(0, text, features, []int32{-1, 0, 1, 2, 3, 4, 5}, [][]float32{nil})
		n.Branch(rows, text-1, golden.Draft)
		run(text, text+2, x.Slice(text-2, text), []int32{-1, 0}, [][]float32{memory})
		e.Linear(nn.Source{X: x}, nn.Proj{Linear: &n.Head, Dst: out})
		for i, v := range out.Data {
			if math.Abs(float64(v-want[i])) > 1e-5 {
				t.Fatalf("recurrent %v: logit %d of row %d is %g, want %g", recurrent, i%c.Vocab, i/c.Vocab, v, want[i])
			}
		}
	}
}
