package autograd

import (
	"encoding/json"
	"math"
	"os"
	"testing"

	"github.com/grovellm/grove/internal/kernels/gemm"
	"github.com/grovellm/grove/internal/kernels/par"
	"github.com/grovellm/grove/internal/nn"
)

// The losses of DSpark and DFlash 2, and their gradients with respect to all inputs, equal
// PyTorch's (testdata/corrected.py). The selector has few candidates, and a row's right
// token may not be among them.
func TestCorrectedAsReference(t *testing.T) {
	var golden struct {
		Rows, Hidden, Vocab, Rank, Top int
		Eps                            float32
		Given                          map[string][]float32
		Teacher, Weight                []float32
		Previous, Text                 []int32
		Cases                          map[string]struct {
			Loss      float64
			Gradients map[string][]float32
		}
	}
	data, err := os.ReadFile("testdata/corrected.json")
	if err == nil {
		err = json.Unmarshal(data, &golden)
	}
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range golden.Cases {
		e := nn.NewExec(par.New(2))
		params := NewParams(gemm.F32)
		matrix := func(name string, rows, cols int) *nn.Linear {
			w, err := params.Matrix(name, rows, cols)
			if err != nil {
				t.Fatal(err)
			}
			return &nn.Linear{W: w}
		}
		both := golden.Hidden + golden.Rank
		table, before := matrix("x", golden.Rows, golden.Hidden), matrix("before", golden.Vocab, golden.Rank)
		norm := &nn.Norm{Weight: params.Vector("norm", golden.Hidden), Eps: golden.Eps}
		head, token := matrix("head", golden.Vocab, golden.Hidden), matrix("token", golden.Vocab, golden.Rank)
		gate, state := matrix("gate", golden.Rank, both), matrix("state", golden.Rank, golden.Hidden)
		sure := matrix("sure", 1, both)
		gate.Bias, sure.Bias = params.Vector("gate_bias", golden.Rank), params.Vector("sure_bias", 1)
		tape := NewTape(e, params)
		for _, p := range params.All() {
			copy(p.Data, golden.Given[p.Name])
		}
		params.Pack(tape.Products())

		mat := func(cols int) nn.Mat { return e.Mat(new(nn.Buffer), golden.Rows, cols) }
		x := mat(golden.Hidden)
		embed, latent := mat(golden.Rank), mat(golden.Rank)
		all := make([]int32, golden.Rows)
		targets := Targets{Weight: golden.Weight, Soft: &Soft{Temperature: 1}, Share: 1, Rows: make([]RowLoss, golden.Rows)}
		for i := range all {
			all[i] = int32(i)
			targets.Token = append(targets.Token, golden.Text[i])
			targets.Soft.Row = append(targets.Soft.Row, int32(i))
			if golden.Weight[i] == 0 {
				targets.Token[i] = -1
			}
		}
		targets.Soft.Reset(golden.Rows, golden.Vocab)
		copy(targets.Soft.dist.Data, golden.Teacher)
		for i := range all {
			targets.Soft.self[i] = distribution(targets.Soft.dist.Row(i), make([]float32, golden.Vocab))
		}
		e.Embed(table.W, all, x)
		e.Embed(before.W, golden.Previous, embed)
		src, mixed := nn.Source{X: x, Norm: norm}, mat(golden.Rank)
		with := src
		with.With = embed
		loss := 0.0
		if name == "dflash2" {
			e.Linear(src, nn.Proj{Linear: state, Dst: mixed})
			tape.Product(latent, mixed, embed)
			targets.Selector = &Selector{latent, token, golden.Top, 1}
			loss = tape.CrossEntropy(src, head, targets, 1).Sum
		} else {
			targets.Soft.Divergence, targets.Share = TotalVariation, 0.9
			targets.Plus = &Plus{embed, token}
			if name == "gated" {
				e.Linear(with, nn.Proj{Linear: gate, Dst: mixed})
				tape.Gate(latent, mixed, embed)
				targets.Plus.X = latent
			}
			loss = tape.CrossEntropy(src, head, targets, 1).Sum
			shares, scores := make([]float32, golden.Rows), mat(1)
			for i, r := range targets.Rows {
				shares[i] = float32(1 - r.Divergence)
			}
			e.Linear(with, nn.Proj{Linear: sure, Dst: scores})
			loss += tape.BinaryCrossEntropy(scores, shares, golden.Weight, 1).Sum
		}
		tape.Backward()
		if math.Abs(loss-want.Loss) > 1e-4*want.Loss {
			t.Errorf("%s: loss %g, want %g", name, loss, want.Loss)
		}
		for _, p := range params.All() {
			for i, g := range p.Grad {
				w := float32(0)
				if of := want.Gradients[p.Name]; of != nil {
					w = of[i]
				}
				if math.Abs(float64(g-w)) > 2e-4*(1+math.Abs(float64(w))) {
					t.Fatalf("%s: the gradient by %s is %g at %d, want %g", name, p.Name, g, i, w)
				}
			}
		}
	}
}
