package medusa_test

import (
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"testing"

	. "github.com/grovellm/grove/internal/drafters/drafttest"
	"github.com/grovellm/grove/internal/drafters/medusa"
	"github.com/grovellm/grove/internal/drafters/registry"
	"github.com/grovellm/grove/internal/heads/headfile"
	"github.com/grovellm/grove/internal/kernels/par"
	"github.com/grovellm/grove/internal/model"
	"github.com/grovellm/grove/internal/nn"
	"github.com/grovellm/grove/tensor"
)

// Heads that PyTorch 1.13 saved under the names of Medusa's code have the same logits here as
// there: two heads of two residual blocks, which are one module and so are stored twice in the
// file, over a hidden size of 16 and 40 tokens. Files written from them are read back with the same
// logits.
func TestAsPyTorch(t *testing.T) {
	const saved = "testdata/pytorch"
	var golden struct {
		X      [][]float32
		Logits [][][]float64 // for each head and row
	}
	if err := json.Unmarshal(Must(os.ReadFile(filepath.Join(saved, "golden.json")))(t), &golden); err != nil {
		t.Fatal(err)
	}
	pool := par.New(2)
	defer pool.Close()
	e := nn.NewExec(pool)
	x := nn.NewMat(len(golden.X), len(golden.X[0]))
	for i, row := range golden.X {
		copy(x.Row(i), row)
	}
	target := model.Config{Vocab: 40, Hidden: 16, Layers: 2}
	folder, file := filepath.Join(t.TempDir(), "folder"), filepath.Join(t.TempDir(), "heads.gguf")
	for _, path := range []string{saved, file, folder} {
		f := Must(headfile.Read(registry.Head{Name: path}, new(medusa.Config).Kind()))(t)
		if err := headfile.For(f.Shape, target); err != nil {
			t.Fatal(err)
		}
		if path == saved {
			if err := headfile.WriteFolder(folder, f.Shape, f.Weights, nil); err != nil {
				t.Fatal(err)
			}
			if err := headfile.WriteGGUF(file, "heads", f.Shape, f.Weights, nil, nil, tensor.F32); err != nil {
				t.Fatal(err)
			}
		}
		w := model.NewLoader(f.Weights, f.Shape.FileArch())
		n := Must(medusa.NewNetwork(*f.Shape.(*medusa.Config), w, nil, &model.Network{}))(t)
		if err := w.Pack(pool); err != nil {
			t.Fatal(err)
		}
		y := nn.NewMat(n.Depths*x.Rows, x.Cols)
		n.Run(e, x, y, new(medusa.Buffers))
		for head, want := range golden.Logits {
			logits := nn.NewMat(x.Rows, n.Vocab)
			e.Linear(nn.Source{X: y.Slice(head*x.Rows, (head+1)*x.Rows)}, nn.Proj{Linear: n.Matrix(head), Dst: logits})
			for i := range want {
				for token, v := range want[i] {
					if d := math.Abs(float64(logits.Row(i)[token]) - v); !(d <= 1e-4) {
						t.Fatalf("%s: head %d, row %d, token %d: %g, PyTorch has %g", path, head, i, token,
							logits.Row(i)[token], v)
					}
				}
			}
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
