package output

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/grovellm/grove/internal/kernels/gemm"
	"github.com/grovellm/grove/internal/kernels/par"
	"github.com/grovellm/grove/internal/nn"
	"github.com/grovellm/grove/tensor"
)

// randomHead is a head of random weights.
func randomHead(r *rand.Rand, t gemm.Type, out, in int, bias bool) *nn.Linear {
	types := map[gemm.Type]tensor.Type{gemm.F32: tensor.F32, gemm.F16: tensor.F16, gemm.BF16: tensor.BF16,
		gemm.Q8_0: tensor.Q8_0}
	weights, err := tensor.FromFloat32s("head", types[t], []int{out, in}, randomRow(r, out*in))
	if err != nil {
		panic(err)
	}
	w, err := gemm.New(t, out, in)
	if err != nil {
		panic(err)
	}
	w.PackPanels(weights.Data, 0, w.Panels())
	h := &nn.Linear{W: w}
	if bias {
		h.Bias = randomRow(r, out)
	}
	if r.IntN(2) == 0 {
		h.Scale = 0.3
	}
	if r.IntN(2) == 0 {
		h.Cap = 2
	}
	return h
}

func randomRow(r *rand.Rand, n int) []float32 {
	v := make([]float32, n)
	for i := range v {
		v[i] = float32(r.NormFloat64())
	}
	return v
}

// randomOrder draws some of the tokens in groups, each in panels of its own.
func randomOrder(r *rand.Rand, vocab int) (order []int32) {
	for _, token := range r.Perm(vocab)[:r.IntN(vocab+1)] {
		order = append(order, int32(token))
		for r.IntN(20) == 0 && len(order)%gemm.Panel != 0 {
			order = append(order, NoToken)
			if r.IntN(4) > 0 {
				for len(order)%gemm.Panel != 0 {
					order = append(order, NoToken)
				}
			}
		}
	}
	for i := range order { // what is no token ends a panel
		if order[i] == NoToken && i%gemm.Panel < gemm.Panel-1 && i+1 < len(order) {
			order[i+1] = NoToken
		}
	}
	return append(order, NoToken)
}

// The law of shortlists: the logits are those of the whole head, to the bit, whatever the order of
// the rows, the lists of the other rows and the threads; minus infinity where there is no token.
func TestShortlistIsTheHead(t *testing.T) {
	pools := []*par.Pool{par.New(1), par.New(3)}
	defer pools[0].Close()
	defer pools[1].Close()
	rapid.Check(t, func(t *rapid.T) {
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 11))
		pool := pools[rapid.IntRange(0, 1).Draw(t, "pool")]
		typ := rapid.SampledFrom([]gemm.Type{gemm.F32, gemm.F16, gemm.BF16, gemm.Q8_0}).Draw(t, "type")
		vocab := rapid.IntRange(1, 2500).Draw(t, "vocab")
		in := 32 * rapid.IntRange(1, 3).Draw(t, "in")
		n := rapid.IntRange(1, 12).Draw(t, "rows")
		head := randomHead(r, typ, vocab, in, rapid.Bool().Draw(t, "bias"))
		var tokens []int32 // of each row
		row := func(token int32) int { return int(token) }
		if rapid.Bool().Draw(t, "own order") {
			for _, token := range r.Perm(vocab) {
				tokens = append(tokens, int32(token))
			}
			row = func(token int32) int { return slices.Index(tokens, token) }
		}
		by, err := NewTokenHead(head, tokens, vocab)
		if err != nil {
			t.Fatal(err)
		}
		var ordered []*OrderedHead
		for range rapid.IntRange(1, 3).Draw(t, "heads") {
			h, err := NewOrderedHead(pool, by, randomOrder(r, vocab))
			if err != nil {
				t.Fatal(err)
			}
			ordered = append(ordered, h)
		}
		extra := &OrderedHead{Linear: *randomHead(r, gemm.F32, 1+r.IntN(70), in, false)}
		lists := make([]*Shortlist, n)
		width := 0
		for i := range lists {
			if i > 0 && r.IntN(3) > 0 {
				lists[i] = lists[r.IntN(i)]
				continue
			}
			l := new(Shortlist)
			l.Add(ordered[0], 0, 1)
			l.Reset()
			for _, h := range ordered {
				for p := r.IntN(h.Panels() + 1); p < h.Panels(); p += 1 + r.IntN(4) {
					to := p + r.IntN(min(5, h.Panels()-p)+1)
					l.Add(h, p, to)
					p = to
				}
			}
			if r.IntN(2) == 0 {
				l.AddExtra(extra)
			}
			for range r.IntN(4) {
				if l.Len() > 0 {
					l.Omit(r.IntN(l.Len()))
				}
			}
			lists[i] = l
			width = max(width, l.Width())
		}
		e := nn.NewExec(pool)
		x := nn.NewMat(n, in)
		copy(x.Data, randomRow(r, n*in))
		norm := &nn.Norm{Weight: randomRow(r, in), Eps: 1e-6}
		all, short := nn.NewMat(n, vocab), nn.NewMat(n, width+r.IntN(9))
		other := nn.NewMat(n, extra.W.Out())
		e.Linear(nn.Source{X: x, Norm: norm}, nn.Proj{Linear: head, Dst: all}, nn.Proj{Linear: &extra.Linear, Dst: other})
		new(Lists).Run(e, nn.Source{X: x, Norm: norm}, lists, short)
		for i, l := range lists {
			if l.Len() > 0 && l.In() != in {
				t.Fatalf("a list of %d inputs, want %d", l.In(), in)
			}
			for k, want := range other.Row(i)[:l.Width()-l.Len()] {
				if got := short.Row(i)[l.Len()+k]; math.Float32bits(got) != math.Float32bits(want) {
					t.Fatalf("row %d, number %d beside the logits is %g, want %g", i, k, got, want)
				}
			}
			for range 20 {
				token := int32(r.IntN(vocab+2) - 1)
				if at := l.Find(token); at < 0 && token >= 0 && slices.Contains(l.Tokens(), token) || at >= 0 &&
					l.Tokens()[at] != token {
					t.Fatalf("row %d: token %d is found at %d of %v", i, token, at, l.Tokens())
				}
			}
			if n := l.Len() - l.Count(); n != len(slices.DeleteFunc(slices.Clone(l.Tokens()), func(token int32) bool {
				return token != NoToken
			})) {
				t.Fatalf("row %d: %d of %d are no tokens: %v", i, n, l.Len(), l.Tokens())
			}
			for k, token := range l.Tokens() {
				want := negInf
				if token != NoToken {
					want = all.Row(i)[row(token)]
				}
				if got := short.Row(i)[k]; math.Float32bits(got) != math.Float32bits(want) {
					t.Fatalf("row %d, logit %d of token %d is %g, want %g", i, k, token, got, want)
				}
			}
		}
	})
}

func TestShortlistAllocatesNothing(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	pool := par.New(2)
	defer pool.Close()
	head := randomHead(r, gemm.Q8_0, 1000, 64, false)
	order := make([]int32, 1000)
	for i := range order {
		order[i] = int32(i)
	}
	h, err := NewOrderedHead(pool, &TokenHead{Linear: head}, order)
	if err != nil {
		t.Fatal(err)
	}
	var lists [2]Shortlist
	e := nn.NewExec(pool)
	x := nn.NewMat(2, 64)
	dst := nn.NewMat(2, 1024)
	var products Lists
	rows := []*Shortlist{&lists[0], &lists[1]}
	if n := testing.AllocsPerRun(5, func() {
		for i := range lists {
			lists[i].Reset()
			lists[i].Add(h, i, 3)
			lists[i].Add(h, 5+i, 20)
		}
		products.Run(e, nn.Source{X: x}, rows, dst)
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func TestOrderedHeadRefuses(t *testing.T) {
	pool := par.New(1)
	defer pool.Close()
	head := randomHead(rand.New(rand.NewPCG(1, 2)), gemm.F32, 10, 8, false)
	for _, order := range [][]int32{{10}, {-2}, {}} {
		if _, err := NewOrderedHead(pool, &TokenHead{Linear: head}, order); err == nil {
			t.Errorf("rows %v: no error", order)
		}
	}
	for _, tokens := range [][]int32{{0, 1}, {0, 1, 2, 3, 4, 5, 6, 7, 8, 20}, {0, 1, 2, 3, 4, 5, 6, 7, 8, -1}} {
		if _, err := NewTokenHead(head, tokens, 20); err == nil {
			t.Errorf("a head of 10 rows of tokens %v: no error", tokens)
		}
	}
	part, err := NewTokenHead(head, []int32{3, 1, 4, 15, 9, 2, 6, 5, 8, 7}, 16)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := NewOrderedHead(pool, part, []int32{15, 0}); err == nil {
		t.Error("a row of a token that the head does not have: no error")
	}
}
