package train

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/grovellm/grove/draft"
	"github.com/grovellm/grove/draft/specblock"
	"github.com/grovellm/grove/internal/drafttest"
	"github.com/grovellm/grove/internal/gemm"
	"github.com/grovellm/grove/model"
	"github.com/grovellm/grove/nn"
	"github.com/grovellm/grove/sample"
	"github.com/grovellm/grove/spec"
)

// tinySpecBlock is a recipe for the tiny target of tinyJob.
func tinySpecBlock(steps int) SpecBlockRecipe {
	return SpecBlockRecipe{
		Block: 3, Layers: 2, Heads: 2, KVHeads: 1, HeadDim: 16, FFN: 32, RankWidth: 32, RopeBase: 10000, Taps: []int{0, 1, 2}, Shift: true, Broadcast: true,
		Seed: 3, Precision: "f32",
		Course:   Course{Steps: steps, Schedule: Schedule{Warmup: 0.1, Cooldown: 0.5}, Optimizer: DefaultOptimizer(), Clip: 1, ValidateEvery: 10},
		HeadText: tinyHeadText(), Anchors: 5, Rounds: 2, Settle: 0.3, Decay: 0.8, ValidPrefix: true,
	}
}

// A head learns what the target says; one that was interrupted ends in the weights of one left alone, on another number of threads;
// what is exported opens as a head of the target, and what is measured is written down.
func TestSpecBlock(t *testing.T) {
	j, shape := tinyJob(t)
	r := tinySpecBlock(30)
	var first, last Progress
	alone := j
	alone.Report = func(p Progress) {
		if p.Step == 1 {
			first = p
		}
		last = p
	}
	var notes []string
	alone.Note = func(s string) { notes = append(notes, s) }
	if err := TrainSpecBlock(context.Background(), alone, "specblock", r, shape); err != nil {
		t.Fatal(err)
	}
	if last.Step != r.Steps || last.Loss > 0.8*first.Loss || last.Validation["held"] == 0 || last.Figures["held chain"] < 1.2 ||
		last.Figures["held place 01"] < 0.2 || last.Figures["held rank F1"] == 0 {
		t.Errorf("loss %.3f at first, %.3f at step %d; held out %v %v", first.Loss, last.Loss, last.Step, last.Validation, last.Figures)
	}
	if table := notes[len(notes)-1]; !strings.Contains(table, "a second block after row") || !strings.Contains(table, "recall") {
		t.Errorf("the last note is %q, want the tables", table)
	}

	ctx, stop := context.WithCancel(context.Background())
	again := j
	again.Threads = 3
	again.Report = func(p Progress) {
		if p.Step == 17 {
			stop()
		}
	}
	if err := TrainSpecBlock(ctx, again, "again", r, shape); !errors.Is(err, context.Canceled) {
		t.Fatalf("a run told to stop: %v", err)
	}
	again.Report = nil
	if err := TrainSpecBlock(context.Background(), again, "again", r, shape); err != nil {
		t.Fatal(err)
	}
	for _, file := range []string{"hf/model.safetensors", "measures.json"} {
		var content [2][]byte
		for i, name := range []string{"specblock", "again"} {
			var err error
			if content[i], err = os.ReadFile(filepath.Join(j.Dir, name, file)); err != nil {
				t.Fatal(err)
			}
		}
		if !bytes.Equal(content[0], content[1]) {
			t.Errorf("a run that was interrupted ends in another %s", file)
		}
	}
	other := r
	other.ValidPrefix = false
	if err := TrainSpecBlock(context.Background(), again, "specblock", other, shape); err == nil {
		t.Error("another recipe goes on with its checkpoint")
	}

	m, err := model.Open(filepath.Join(j.Dir, "target", "model-f32.gguf"), model.Options{Threads: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	for _, file := range []string{"model-f32.gguf", "model-q8_0.gguf", "hf"} {
		h, err := specblock.Open(draft.Head{Name: filepath.Join(j.Dir, "specblock", file)}, draft.Target{Model: m})
		if err != nil {
			t.Fatal(err)
		}
		if want := r.config(shape); h.Block != want.Block || !slices.Equal(h.Taps, want.Taps) || h.RankWidth != want.RankWidth || !h.Shift || !h.Broadcast || h.TargetLayers != shape.Layers {
			t.Errorf("%s: the head opens as %+v", file, h.Config)
		}
	}
	specBlockServes(t, &j, &r, shape, m)
	specBlockWarm(t, &j, shape)
}

// specBlockServes: a head drafts as it is measured. The rounds of a loop with chains are those that its rows in training foretell, to
// the last.
func specBlockServes(t *testing.T, j *Job, r *SpecBlockRecipe, shape Shape, m *model.Model) {
	served, err := specblock.Open(draft.Head{Name: filepath.Join(j.Dir, "specblock", "model-f32.gguf")}, draft.Target{Model: m})
	if err != nil {
		t.Fatal(err)
	}
	chains := specblock.Options{Tree: specblock.Ranked, Blocks: r.Rounds, Uniform: 1, Nodes: 60, Raw: true}
	d, err := specblock.New(chains, served.Network, drafttest.As(m))
	if err != nil {
		t.Fatal(err)
	}

	text, err := j.open(context.Background(), shape.Vocab)
	if err != nil {
		t.Fatal(err)
	}
	defer text.Close()
	l, err := newSpecBlockLearner(context.Background(), j, r, shape, text)
	if err != nil {
		t.Fatal(err)
	}
	defer l.pool.Close()
	done := Loop{Course: r.Course, Dir: filepath.Join(j.Dir, "specblock"), Pool: l.pool}
	if err := done.Run(context.Background(), l); err != nil { // which only loads the weights
		t.Fatal(err)
	}
	h := l.head
	h.tape.Detach()

	var prompts [][]int32
	for _, text := range l.examples() {
		prompts = append(prompts, text[:6])
	}
	out, stats := drafttest.Generate(t, m, d, spec.Options{Budget: 60, Uncontrolled: true}, sample.Params{}, prompts)
	rounds := 0
	for i, prompt := range prompts {
		text := slices.Concat(prompt, out[i])
		end := len(text)
		text = append(text, make([]int32, r.Rounds*r.Block)...) // of what comes later nothing counts
		var starts []start
		for at := len(prompt); at < end; at++ {
			starts = append(starts, start{at, slices.Repeat([]int{r.Block}, r.Rounds-1)})
		}
		if err := h.forward([][]int32{text}, [][]start{starts}, r.Rounds, false); err != nil {
			t.Fatal(err)
		}
		right := make([]int, len(starts))
		for b, round := range h.rounds[:r.Rounds] {
			for i, s := range round.said {
				if at := round.blocks[i/r.Block].start; right[at] == b*r.Block+i%r.Block && s.right {
					right[at]++
				}
			}
		}
		for n := 0; n < end-1-len(prompt); n += right[n] + 1 {
			rounds++
		}
	}
	if stats.Rounds != rounds || stats.Tau() < 1.2 {
		t.Errorf("%d rounds with τ %.3f, foretold %d", stats.Rounds, stats.Tau(), rounds)
	}
}

// Rows of all blocks of some texts in one pass are those of each start alone, in a text that ends with its last block's, to the bit;
// and the gradient of all is the sum of theirs: blocks see the text before their start, the rows they start from, and nothing else.
func TestStartsAreIndependent(t *testing.T) {
	pool := nnPool(t)
	shape := Shape{Vocab: 60, Hidden: 16, Layers: 2, Heads: 2, KVHeads: 1, HeadDim: 8, FFN: 24, Context: 64, RopeBase: 10000, NormEps: 1e-6}
	target, err := NewNetwork(shape, pool, gemm.F32)
	if err != nil {
		t.Fatal(err)
	}
	target.Init(5)
	rapid.Check(t, func(t *rapid.T) {
		r := tinySpecBlock(1)
		r.Block, r.Layers = rapid.IntRange(1, 4).Draw(t, "block"), rapid.IntRange(1, 3).Draw(t, "layers")
		r.Taps = []int{rapid.IntRange(0, 2).Draw(t, "tap"), 2}
		r.Shift, r.Broadcast = rapid.Bool().Draw(t, "shift"), rapid.Bool().Draw(t, "broadcast")
		h, err := NewSpecBlock(r.config(shape), target, pool, gemm.F32)
		if err != nil {
			t.Fatal(err)
		}
		h.Init(rapid.Uint64().Draw(t, "seed"))
		rounds, length := rapid.IntRange(1, 3).Draw(t, "rounds"), rapid.IntRange(4, 30).Draw(t, "length")
		texts, starts := make([][]int32, rapid.IntRange(1, 3).Draw(t, "texts")), [][]start{}
		for i := range texts {
			texts[i] = rapid.SliceOfN(rapid.Int32Range(0, 59), length, length).Draw(t, "text")
			anchors := drawAnchors(1, uint64(i), texts[i], 1, length-2, 1, rapid.IntRange(1, 5).Draw(t, "anchors"), 1)
			starts = append(starts, drawCuts(2, uint64(i), anchors, r.Block, rounds))
		}
		onPath := rapid.Bool().Draw(t, "on path")
		type key struct{ text, at, round int } // of a start
		// run returns the states of every start's rows, and the sum of the losses of all rows, by round.
		run := func(texts [][]int32, starts [][]start) (states map[key][]float32, sum float64) {
			h.tape.Reset()
			h.tape.Attach()
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
			h.tape.Backward()
			return states, sum
		}
		gradients := func() (all []float32) {
			for _, p := range h.Params.All() {
				all = append(all, p.Grad...)
			}
			return all
		}
		h.Params.ZeroGrad()
		got, sum := run(texts, starts)
		together := gradients()

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
						t.Fatalf("text %d: the rows of block %d of the start at %d differ with others around it", i, at.round, at.at)
					}
				}
			}
		}
		if math.Abs(sum-alone) > 1e-4*(1+alone) {
			t.Fatalf("loss %g together, %g one by one", sum, alone)
		}
		size := 0.0
		for _, v := range together {
			size = max(size, math.Abs(float64(v)))
		}
		for i, v := range gradients() {
			if d := math.Abs(float64(v - together[i])); d > 1e-4*size {
				t.Fatalf("gradient %d is %g together, %g one by one", i, together[i], v)
			}
		}
	})
}

// The valid-prefix mask of equation 5, by hand.
func TestValidPrefix(t *testing.T) {
	here := func(right ...bool) (rows []said) {
		valid := true
		for _, r := range right {
			rows = append(rows, said{here: true, valid: valid, right: r})
			valid = valid && r
		}
		return rows
	}
	all := slices.Concat(here(true, true, false), here(true, false, true), here(false, true, true), here(true, true, true))
	all[11].here, all[11].valid = false, false // the text ends before
	for _, c := range []struct {
		teaching
		rows   []int32
		weight []float32
	}{
		{teaching{decay: 1}, []int32{0, 1, 2, 3, 4, 6, 9, 10}, []float32{0.25, 0.25, 0.25, 0.25, 0.25, 0.25, 0.25, 0.25}},
		{teaching{decay: 0.5}, []int32{0, 1, 2, 3, 4, 6, 9, 10}, []float32{0.25, 0.125, 0.0625, 0.25, 0.125, 0.25, 0.25, 0.125}},
		{teaching{decay: 1, everywhere: true}, []int32{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10}, slices.Repeat([]float32{0.25}, 11)},
	} {
		rows, weight := c.weigh(3, all)
		if !slices.Equal(rows, c.rows) || !slices.EqualFunc(weight, c.weight, func(a, b float32) bool { return math.Abs(float64(a-b)) < 1e-6 }) {
			t.Errorf("%+v: rows %v with weights %v, want %v with %v", c.teaching, rows, weight, c.rows, c.weight)
		}
	}
}

// Judging finds the target's token by its rank among a row's, and the rank head learns it and leaves the trunk alone.
func TestRanksLeaveTheTrunkAlone(t *testing.T) {
	pool := nnPool(t)
	shape := Shape{Vocab: 60, Hidden: 16, Layers: 2, Heads: 2, KVHeads: 1, HeadDim: 8, FFN: 24, Context: 64, RopeBase: 10000, NormEps: 1e-6}
	target, err := NewNetwork(shape, pool, gemm.F32)
	if err != nil {
		t.Fatal(err)
	}
	target.Init(5)
	r := tinySpecBlock(1)
	r.Taps = []int{1, 2}
	h, err := NewSpecBlock(r.config(shape), target, pool, gemm.F32)
	if err != nil {
		t.Fatal(err)
	}
	h.Init(7)
	text := make([]int32, 30)
	for i := range text {
		text[i] = int32(i * i % 59)
	}
	starts := [][]start{{{at: 3, cuts: []int{1}}, {at: 9, cuts: []int{3}}, {at: 20, cuts: []int{2}}}}
	opt := newOptimizer(Optimizer{AdamW: nn.AdamW{Rate: 0.02, Beta1: 0.9, Beta2: 0.99, Eps: 1e-8}}, pool, h.Params.All())
	before := map[string][]float32{}
	for _, p := range h.Params.All() {
		before[p.Name] = slices.Clone(p.Data)
	}
	hits := 0
	for step := range 200 {
		h.Params.ZeroGrad()
		h.tape.Reset()
		h.tape.Attach()
		if err := h.forward([][]int32{text}, starts, 2, false); err != nil {
			t.Fatal(err)
		}
		hits = 0
		for _, round := range h.rounds[:2] {
			rows := []int32{0, 1, 2, 3, 4, 5, 6, 7, 8}
			for _, s := range round.said {
				if s.rank < 1 || s.rank > shape.Vocab {
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
		h.tape.Backward()
		opt.step(step+1, 1, 1)
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

// specBlockWarm: a head that begins as the target says the next token before it has learned anything, and goes on from what it said;
// one that begins as random numbers does not.
func specBlockWarm(t *testing.T, j *Job, shape Shape) {
	text, err := j.open(context.Background(), shape.Vocab)
	if err != nil {
		t.Fatal(err)
	}
	defer text.Close()
	right := func(from []int) (first, second float64) {
		r := tinySpecBlock(1)
		r.From, r.FFN, r.Taps = from, 64, []int{1, 2}
		l, err := newSpecBlockLearner(context.Background(), j, &r, shape, text)
		if err != nil {
			t.Fatal(err)
		}
		defer l.pool.Close()
		m, err := l.head.measure(&l.held[0], r.Rounds, heldTexts, heldTokens, 1)
		if err != nil {
			t.Fatal(err)
		}
		return m.Places[0].Share(), m.After[0][0].Share()
	}
	warm1, warm2 := right([]int{0, 1})
	if cold, _ := right(nil); warm1 < 0.5 || warm2 < 0.5 || cold > 0.2 {
		t.Errorf("first rows are right %.2f of the time for a head that begins as its target, %.2f after a first row; %.2f for a random one", warm1, warm2, cold)
	}
}

// Table 3's numbers, by hand.
func TestConfusion(t *testing.T) {
	var c Confusion
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

// Cuts are of all rows alike, and a text's are its own.
func TestDrawCuts(t *testing.T) {
	anchors := make([]int, 3000)
	for i := range anchors {
		anchors[i] = i + 1
	}
	var count [5]int
	for _, s := range drawCuts(1, 2, anchors, 4, 3) {
		for _, c := range s.cuts {
			count[c]++
		}
	}
	for c := 1; c <= 4; c++ {
		if count[0] != 0 || count[c] < 1350 || count[c] > 1650 {
			t.Errorf("rows of 6000 cuts: %v", count[1:])
		}
	}
	key := func(s []start) string { return fmt.Sprint(s) }
	if a := drawCuts(1, 2, anchors[:9], 4, 3); key(a) != key(drawCuts(1, 2, anchors[:9], 4, 3)) || key(a) == key(drawCuts(1, 3, anchors[:9], 4, 3)) {
		t.Error("cuts are not a function of seed and text")
	}
}

// A recipe that cannot be followed to its end is refused before anything is done.
func TestSpecBlockRecipeRefuses(t *testing.T) {
	shape := Shape{Vocab: 272, Hidden: 32, Layers: 2, Heads: 2, KVHeads: 1, HeadDim: 16, FFN: 64, Context: 64, RopeBase: 10000, NormEps: 1e-6}
	for want, spoil := range map[string]func(r *SpecBlockRecipe){
		"no block 2":        func(r *SpecBlockRecipe) { r.From = []int{0, 2} },
		"as many of":        func(r *SpecBlockRecipe) { r.From = []int{0} },
		"no wider":          func(r *SpecBlockRecipe) { r.From, r.FFN = []int{0, 1}, 96 },
		"attention of":      func(r *SpecBlockRecipe) { r.From, r.KVHeads = []int{0, 1}, 2 },
		"whole blocks":      func(r *SpecBlockRecipe) { r.FFN = 48 },
		"tapped layers":     func(r *SpecBlockRecipe) { r.Taps = []int{1, 3} },
		"0 tapped layers":   func(r *SpecBlockRecipe) { r.Taps = nil },
		"precision":         func(r *SpecBlockRecipe) { r.Precision = "f16" },
		"in parts of 2":     func(r *SpecBlockRecipe) { r.Rows = 3 },
		"room":              func(r *SpecBlockRecipe) { r.Block = 9 },
		"0 blocks one":      func(r *SpecBlockRecipe) { r.Rounds = 0 },
		"settles":           func(r *SpecBlockRecipe) { r.Settle = math.NaN() },
		"balance":           func(r *SpecBlockRecipe) { r.Balance = 2 },
		"decay":             func(r *SpecBlockRecipe) { r.Decay = 0 },
		"block size is 0":   func(r *SpecBlockRecipe) { r.Block = 0 },
		"40 steps of texts": func(r *SpecBlockRecipe) { r.Anchors = 0 },
	} {
		r := tinySpecBlock(40)
		spoil(&r)
		if err := r.check(&shape); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want an error with %q", err, want)
		}
	}
	r, target := NewSpecBlockRecipe(), TargetRecipe().Shape
	if err := r.check(&target); err != nil {
		t.Error(err)
	}
}
