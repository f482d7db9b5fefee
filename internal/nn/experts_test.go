package nn

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/grovellm/grove/internal/kernels/gemm"
	"github.com/grovellm/grove/internal/kernels/par"
	"github.com/grovellm/grove/internal/kernels/simd"
	"github.com/grovellm/grove/internal/testing/cases"
)

// randomExperts is a block whose feed-forward half has experts.
func randomExperts(t *rapid.T, r *rand.Rand, typ gemm.Type) (b Block, hidden int) {
	hidden = 32 * rapid.IntRange(1, 3).Draw(t, "hidden")
	ffn := 32 * rapid.IntRange(1, 3).Draw(t, "ffn")
	bias := rapid.Bool().Draw(t, "bias")
	linear := func(out, in int) Linear { return *randomHead(r, typ, out, in, bias) }
	x := &Experts{MLPs: make([]MLP, rapid.IntRange(1, 9).Draw(t, "experts")),
		Rule:  Rule{All: rapid.Bool().Draw(t, "all"), Inputs: rapid.Bool().Draw(t, "inputs")},
		Scale: rapid.SampledFrom([]float32{0, 0.3}).Draw(t, "scale")}
	x.Used = rapid.IntRange(1, len(x.MLPs)).Draw(t, "used")
	x.Router = *randomHead(r, gemm.F32, len(x.MLPs), hidden, bias)
	act := rapid.SampledFrom([]Activation{None, GELUMul, ClampedMul, CappedSiLUMul, SquaredReLU, ReLUMul}).
		Draw(t, "activation")
	width := hidden
	if rapid.Bool().Draw(t, "narrow") {
		width = 32
		narrow, widen := linear(width, hidden), linear(hidden, width)
		x.Narrow, x.Widen = &narrow, &widen
	}
	for i := range x.MLPs {
		x.MLPs[i] = MLP{Up: linear(ffn, width), Down: linear(width, ffn), Act: act, Cut: 0.5}
		if act != SquaredReLU {
			gate := linear(ffn, width)
			x.MLPs[i].Gate = &gate
		}
	}
	return Block{MLPNorm: Norm{Weight: randomRow(r, hidden), Eps: 1e-5}, Experts: x}, hidden
}

// rowByExperts applies a row's experts to the row of x one after another, as layers without
// experts. It returns which experts they are.
func rowByExperts(e *Exec, b *Block, x Mat) []int {
	h := b.Experts
	scores := NewMat(1, len(h.MLPs))
	e.Linear(Source{X: x, Norm: &b.MLPNorm}, Proj{Linear: &h.Router, Dst: scores})
	row := scores.Row(0)
	order := make([]int, len(row))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(i, j int) int { return cmp.Compare(row[j], row[i]) })
	order = order[:h.Used]
	weights := slices.Clone(row)
	if !h.Rule.All {
		weights = weights[:0]
		for _, expert := range order {
			weights = append(weights, row[expert])
		}
	}
	simd.Softmax(weights, 1)
	src := Source{X: x, Norm: &b.MLPNorm}
	width := x.Cols
	if h.Narrow != nil {
		width = h.Narrow.W.Out()
		narrow := NewMat(1, width)
		e.Linear(src, Proj{Linear: h.Narrow, Dst: narrow})
		src = Source{X: narrow}
	}
	sum := NewMat(1, width)
	for t, expert := range order {
		if h.Rule.All {
			t = expert
		}
		m := &h.MLPs[expert]
		src, weight := src, weights[t]
		if h.Rule.Inputs {
			scaled := NewMat(1, width)
			copy(scaled.Data, src.Row(0, make([]float32, width)))
			simd.Scale(scaled.Data, weight)
			src, weight = Source{X: scaled}, 1
		}
		gate := NewMat(1, m.Up.W.Out())
		up := NewMat(1, m.Up.W.Out())
		y := NewMat(1, width)
		e.Linear(src, Proj{Linear: &m.Up, Dst: up})
		made := Source{X: up, Act: m.act()}
		if m.Gate != nil {
			e.Linear(src, Proj{Linear: m.Gate, Dst: gate})
			made = Source{X: gate, Act: m.act(), Cut: m.Cut, Up: up}
		}
		e.Linear(made, Proj{Linear: &m.Down, Dst: y})
		simd.Axpy(sum.Row(0), weight, y.Row(0))
	}
	if h.Scale != 0 {
		simd.Scale(sum.Row(0), h.Scale)
	}
	if h.Widen != nil {
		narrow := sum
		sum = NewMat(1, x.Cols)
		e.Linear(Source{X: narrow}, Proj{Linear: h.Widen, Dst: sum})
	}
	simd.Add(x.Row(0), sum.Row(0))
	return order
}

// A layer with experts gives every row, to the bit, what the row's experts compute for it alone,
// for any number of rows and workers. Each expert that a row chose is read once.
func TestExpertsAreTheirMLPs(t *testing.T) {
	pools := []*par.Pool{par.New(1), par.New(3)}
	defer pools[0].Close()
	defer pools[1].Close()
	cases.Check(t, 40, func(t *rapid.T) {
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 22))
		b, hidden := randomExperts(t, r, rapid.SampledFrom([]gemm.Type{gemm.F32, gemm.BF16, gemm.Q8_0}).Draw(t, "type"))
		e := NewExec(rapid.SampledFrom(pools).Draw(t, "pool"))
		defer UseStrips(rapid.Bool().Draw(t, "strips"))()
		var m BlockBuffers
		for range 2 { // the second time reuses buffers
			x := randomMat(r, rapid.IntRange(1, 40).Draw(t, "rows"), hidden)
			want := NewMat(x.Rows, x.Cols)
			read := e.ExpertsRead()
			chosen := map[int]bool{}
			for i := range x.Rows {
				copy(want.Row(i), x.Row(i))
				for _, expert := range rowByExperts(e, &b, Mat{Rows: 1, Cols: x.Cols, Stride: x.Cols, Data: want.Row(i)}) {
					chosen[expert] = true
				}
			}
			e.MLP(&b, x, &m)
			if got := e.ExpertsRead() - read; got != len(chosen) {
				t.Fatalf("%d experts read, want %d", got, len(chosen))
			}
			for i := range x.Rows {
				if !slices.Equal(x.Row(i), want.Row(i)) {
					t.Fatalf("row %d of %d: %v, want %v", i, x.Rows, x.Row(i)[:4], want.Row(i)[:4])
				}
			}
		}
	})
}

// SparseMixer's worked example: 2 and 1.99 are within 2·0.01 of each other, so the first expert shares its weight. The
// second has the whole of its own, since no other is left that close to it.
func TestMixer(t *testing.T) {
	scores, room := []float32{-1, 1.99, 0.5, 2}, make([]float32, 4)
	chosen, weights := []int32{3, 1}, make([]float32, 2)
	(&Rule{Mixer: 0.01}).mix(scores, room, chosen, weights)
	first := 1 / (1 + math.Exp(1.99-2))
	if math.Abs(float64(weights[0])-first) > 1e-6 || weights[1] != 1 {
		t.Errorf("weights are %v, want %g and 1", weights, first)
	}
}
