package specblock

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/grovellm/grove/internal/autograd"
	"github.com/grovellm/grove/internal/drafters/specblock"
	"github.com/grovellm/grove/internal/kernels/gemm"
	"github.com/grovellm/grove/internal/model"
	"github.com/grovellm/grove/internal/testing/cases"
	"github.com/grovellm/grove/internal/train"
	"github.com/grovellm/grove/internal/train/traintest"
)

// The rows of all blocks of some texts in one pass are, to the bit, those of each start alone, in a
// text that ends with its last block; and the gradient of all is the sum of theirs. So blocks see
// the text before their start, the rows they start from, and nothing else.
func TestStartsAreIndependent(t *testing.T) {
	target := traintest.Target(t, 5)
	cases.Check(t, 40, func(t *rapid.T) {
		r := tinySpecBlock(1)
		r.Block, r.Layers = rapid.IntRange(1, 4).Draw(t, "block"), rapid.IntRange(1, 3).Draw(t, "layers")
		r.Taps = []int{rapid.IntRange(0, 2).Draw(t, "tap"), 2}
		r.Shift, r.Broadcast = rapid.Bool().Draw(t, "shift"), rapid.Bool().Draw(t, "broadcast")
		h, err := NewHead(r.config(&target.Config), nil, r.OwnOutput, target, gemm.F32)
		if err != nil {
			t.Fatal(err)
		}
		h.Init(rapid.Uint64().Draw(t, "seed"))
		rounds, length := rapid.IntRange(1, 3).Draw(t, "rounds"), rapid.IntRange(4, 30).Draw(t, "length")
		texts, starts := make([][]int32, rapid.IntRange(1, 3).Draw(t, "texts")), [][]start{}
		for i := range texts {
			texts[i] = rapid.SliceOfN(rapid.Int32Range(0, 59), length, length).Draw(t, "text")
			anchors := train.DrawAnchors(1, uint64(i), texts[i], 1, length-2, 1,
				rapid.IntRange(1, 5).Draw(t, "anchors"), 1)
			starts = append(starts, drawCuts(2, uint64(i), anchors, rounds))
		}
		onPath := rapid.Bool().Draw(t, "on path")
		type key struct{ text, at, round int } // identifies a round of a start
		// run returns the states of every start's rows by round, and the sum of the
		// losses of all rows.
		run := func(texts [][]int32, starts [][]start) (states map[key][]float32, sum float64) {
			h.Tape.Reset()
			h.Tape.Attach()
			if err := h.forward(texts, starts, rounds, onPath); err != nil {
				t.Fatal(err)
			}
			all := slices.Concat(starts...)
			states = map[key][]float32{}
			for b, round := range h.rounds[:rounds] {
				if len(round.blocks) == 0 {
					continue
				}
				var rows []int32
				for i, s := range round.said {
					if k := round.blocks[i/r.Block]; s.here {
						rows = append(rows, int32(i))
						at := key{k.text, all[k.start].at, b}
						states[at] = append(states[at], round.states.Row(k.row+i%r.Block)...)
					}
				}
				sum += h.loss(round, rows, h.statesOf(round, rows), nil, 1).Sum
			}
			h.Tape.Backward()
			return states, sum
		}
		h.Params.ZeroGrad()
		got, sum := run(texts, starts)
		// A block starts from the row that its cut selects among those on the path.
		for b, round := range h.rounds[1:rounds] {
			before := h.rounds[b]
			from := map[int]block{} // by start: the block before, and how many of its rows are right
			rows := map[int]int{}
			for i, k := range before.blocks {
				from[k.start], rows[k.start] = k, r.Block
				if onPath {
					rows[k.start] = valid(before.said[i*r.Block : (i+1)*r.Block])
				}
			}
			all := slices.Concat(starts...)
			for _, k := range round.blocks {
				if want := from[k.start].at + cutRow(all[k.start].cuts[b], rows[k.start]); k.at != want {
					t.Fatalf("a block of round %d starts at %d, want %d", b+1, k.at, want)
				}
			}
		}
		together := traintest.Gradients(h.Params)

		h.Params.ZeroGrad()
		alone := 0.0
		for i, text := range texts {
			for _, s := range starts[i] {
				end := min(length, s.at+1+rounds*r.Block)
				states, l := run([][]int32{text[:end]}, [][]start{{s}})
				alone += l
				for at, want := range states {
					at.text = i
					if !slices.Equal(got[at], want) {
						t.Fatalf("text %d: the rows of block %d of the start at %d differ with others around it", i,
							at.round, at.at)
					}
				}
			}
		}
		if math.Abs(sum-alone) > 1e-4*(1+alone) {
			t.Fatalf("loss %g together, %g one by one", sum, alone)
		}
		traintest.SameGradients(t, together, traintest.Gradients(h.Params), 1e-4)
	})
}

// The valid-prefix mask of equation 5, computed by hand.
func TestValidPrefix(t *testing.T) {
	here := func(right ...bool) (rows []said) {
		valid := true
		for _, r := range right {
			rows = append(rows, said{here: true, valid: valid, right: r})
			valid = valid && r
		}
		return rows
	}
	all := slices.Concat(here(true, true, false), here(true, false, true), here(false, true, true),
		here(true, true, true))
	all[11].here, all[11].valid = false, false // the text ends before it
	for _, c := range []struct {
		weighting
		rows   []int32
		weight []float32
	}{
		{weighting{decay: 1}, []int32{0, 1, 2, 3, 4, 6, 9, 10},
			[]float32{0.25, 0.25, 0.25, 0.25, 0.25, 0.25, 0.25, 0.25}},
		{weighting{decay: 0.5}, []int32{0, 1, 2, 3, 4, 6, 9, 10},
			[]float32{0.25, 0.125, 0.0625, 0.25, 0.125, 0.25, 0.25, 0.125}},
		{weighting{decay: 0.5, placeMeans: true}, []int32{0, 1, 2, 3, 4, 6, 9, 10},
			[]float32{0.25, 1. / 6, 0.25, 0.25, 1. / 6, 0.25, 0.25, 1. / 6}},
		{weighting{decay: 1, everywhere: true}, []int32{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10},
			slices.Repeat([]float32{0.25}, 11)},
	} {
		rows, weight := c.weigh(3, all)
		if !slices.Equal(rows, c.rows) || !slices.EqualFunc(weight, c.weight,
			func(a, b float32) bool { return math.Abs(float64(a-b)) < 1e-6 }) {
			t.Errorf("%+v: rows %v with weights %v, want %v with %v", c.weighting, rows, weight, c.rows, c.weight)
		}
	}
}

// tinySpecBlockHead returns a head with random weights over a target with random weights.
func tinySpecBlockHead(t *testing.T) (*Head, Recipe, *model.Model) {
	t.Helper()
	target := traintest.Target(t, 5)
	r := tinySpecBlock(1)
	r.Taps = []int{1, 2}
	h, err := NewHead(r.config(&target.Config), nil, r.OwnOutput, target, gemm.F32)
	if err != nil {
		t.Fatal(err)
	}
	h.Init(7)
	return h, r, target
}

// Judging finds the rank of the target's token among a row's, and the rank head learns this rank
// without changing the rest of the head.
func TestRanksLeaveTheHeadAlone(t *testing.T) {
	h, _, _ := tinySpecBlockHead(t)
	text := make([]int32, 30)
	for i := range text {
		text[i] = int32(i * i % 59)
	}
	starts := [][]start{{{at: 3, cuts: []float64{0}}, {at: 9, cuts: []float64{.5}}, {at: 20, cuts: []float64{.25}}}}
	opt := autograd.AdamW{Rate: 0.02, Beta1: 0.9, Beta2: 0.99, Eps: 1e-8}
	before := map[string][]float32{}
	m := map[string][]float32{}
	v := map[string][]float32{}
	for _, p := range h.Params.All() {
		before[p.Name] = slices.Clone(p.Data)
		m[p.Name] = make([]float32, len(p.Data))
		v[p.Name] = make([]float32, len(p.Data))
	}
	hits := 0
	for step := range 200 {
		h.Params.ZeroGrad()
		h.Tape.Reset()
		h.Tape.Attach()
		if err := h.forward([][]int32{text}, starts, 2, false); err != nil {
			t.Fatal(err)
		}
		hits = 0
		for _, round := range h.rounds[:2] {
			rows := []int32{0, 1, 2, 3, 4, 5, 6, 7, 8}
			for _, s := range round.said {
				if s.rank < 1 || s.rank > h.net.Vocab {
					t.Fatalf("a rank of %d", s.rank)
				}
			}
			out := h.ranks(round, rows, h.statesOf(round, rows))
			for i := range rows {
				best := 0
				for c, v := range out.Row(i) {
					if v > out.Row(i)[best] {
						best = c
					}
				}
				if best == specblock.BucketOf(round.said[i].rank) {
					hits++
				}
			}
			h.learnRanks(round, rows, h.statesOf(round, rows), 0.75, 1)
		}
		h.Tape.Backward()
		for _, p := range h.Params.All() {
			opt.Step(p, m[p.Name], v[p.Name], step+1, 1, 1)
		}
		h.Pack()
	}
	if hits != 18 {
		t.Errorf("the rank head learned %d of 18 buckets by heart", hits)
	}
	for _, p := range h.Params.All() {
		if strings.HasPrefix(p.Name, "rank_") == slices.Equal(before[p.Name], p.Data) {
			t.Errorf("%s: changed %v by the rank head's loss", p.Name, !slices.Equal(before[p.Name], p.Data))
		}
	}
}

// The numbers of table 3, computed by hand.
func TestConfusion(t *testing.T) {
	var c confusion
	c[0] = [4]int{6, 2, 0, 0}
	c[1] = [4]int{1, 3, 0, 0}
	c[3] = [4]int{0, 1, 0, 3}
	share, precision, recall, f1 := c.Bucket(1)
	for i, pair := range [][2]float64{{share, 0.25}, {precision, 0.5}, {recall, 0.75}, {f1, 0.6}} {
		if math.Abs(pair[0]-pair[1]) > 1e-12 {
			t.Errorf("number %d is %g, want %g", i, pair[0], pair[1])
		}
	}
	if _, p, r, f1 := c.Bucket(2); p != 0 || r != 0 || f1 != 0 {
		t.Errorf("a bucket without rows has %g, %g, %g", p, r, f1)
	}
	if want := (12./15 + 0.6 + 0 + 6./7) / 4; math.Abs(c.MeanF1()-want) > 1e-12 {
		t.Errorf("mean F1 %g, want %g", c.MeanF1(), want)
	}
}

// Cuts select all rows equally often, and every text has its own.
func TestDrawCuts(t *testing.T) {
	anchors := make([]int, 3000)
	for i := range anchors {
		anchors[i] = i + 1
	}
	for rows := 1; rows <= 4; rows++ {
		count := make([]int, rows+1)
		for _, s := range drawCuts(1, 2, anchors, 3) {
			for _, c := range s.cuts {
				count[cutRow(c, rows)]++
			}
		}
		for _, n := range count[1:] {
			if want := 6000 / rows; count[0] != 0 || n < want*9/10 || n > want*11/10 {
				t.Errorf("rows of 6000 cuts: %v", count[1:])
			}
		}
	}
	key := func(s []start) string { return fmt.Sprint(s) }
	if a := drawCuts(1, 2, anchors[:9], 3); key(a) != key(drawCuts(1, 2, anchors[:9], 3)) ||
		key(a) == key(drawCuts(1, 3, anchors[:9], 3)) {
		t.Error("cuts are not a function of seed and text")
	}
}

// A recipe that cannot be completed is refused before anything is done.
func TestSpecBlockRecipeRefuses(t *testing.T) {
	tiny := traintest.Shape()
	shape := tiny.Config()
	prepare := func(r *Recipe) error { return r.Prepare(traintest.Over(shape)) }
	traintest.Refuses(t, func() Recipe { return tinySpecBlock(40) }, prepare,
		map[string]func(r *Recipe){
			"no block 2":          func(r *Recipe) { r.From = []int{0, 2} },
			"as many of":          func(r *Recipe) { r.From = []int{0} },
			"no wider":            func(r *Recipe) { r.From, r.FFN = []int{0, 1}, 96 },
			"attention of":        func(r *Recipe) { r.From, r.KVHeads = []int{0, 1}, 2 },
			"whole blocks":        func(r *Recipe) { r.FFN = 48 },
			"taps layers":         func(r *Recipe) { r.Taps = []int{1, 3} },
			"taps 0 layers":       func(r *Recipe) { r.Taps = nil },
			"precision":           func(r *Recipe) { r.Precision = "f16" },
			"--rows 3":            func(r *Recipe) { r.Rows = 3 },
			"room":                func(r *Recipe) { r.Block = 9 },
			"0 blocks one":        func(r *Recipe) { r.Rounds = 0 },
			"settles":             func(r *Recipe) { r.Settle = math.NaN() },
			"balance":             func(r *Recipe) { r.Balance = 2 },
			"decay":               func(r *Recipe) { r.Decay = 0 },
			"slots -1":            func(r *Recipe) { r.From, r.Slots = []int{0, 1}, -1 },
			"random weights":      func(r *Recipe) { r.From, r.Slots = nil, 1 },
			"block size is 0":     func(r *Recipe) { r.Block = 0 },
			"draft vocabulary of": func(r *Recipe) { r.DraftVocab = 300 },
			"0 starts each":       func(r *Recipe) { r.Anchors = 0 },
		})
	r, shipped := NewRecipe(), train.TargetRecipe().Shape
	target := shipped.Config()
	if err := r.Prepare(traintest.Over(target)); err != nil {
		t.Error(err)
	}
}

// A run continues from a checkpoint only if the recipe's fingerprint is the same. It
// covers the names and the order of fields: changing these makes all runs that were
// stopped before unable to continue.
func TestFingerprintStays(t *testing.T) {
	r := tinySpecBlock(7)
	if got := train.Fingerprint(&r); got != "34f54910b77eb992" {
		t.Errorf("fingerprint %q", got)
	}
}
