package falcon

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/grovellm/grove/draft"
	"github.com/grovellm/grove/internal/autograd"
	"github.com/grovellm/grove/internal/drafters/falcon"
	"github.com/grovellm/grove/internal/drafters/grow"
	"github.com/grovellm/grove/internal/kernels/gemm"
	"github.com/grovellm/grove/internal/nn"
	"github.com/grovellm/grove/internal/testing/cases"
	"github.com/grovellm/grove/internal/train"
	"github.com/grovellm/grove/internal/train/traintest"
	"github.com/grovellm/grove/tree"
)

// tiny returns a recipe for traintest's tiny target.
func tiny(steps int) Recipe {
	r := NewRecipe()
	r.Heads = 2
	r.KVHeads = 2
	r.HeadDim = 16
	r.FFN = 64
	r.From = nil
	r.Basis = traintest.Basis(steps)
	r.Optimizer.MuonRate = 0.01
	return r
}

// Heads of both variants learn the target's predictions. An interrupted run ends with the
// weights of an uninterrupted one, also on another number of threads. The exported file
// opens as a head of the target.
func TestFalcon(t *testing.T) {
	j := traintest.JobWithTarget(t)
	for name, change := range map[string]func(r *Recipe){
		"falcon": func(r *Recipe) { r.Precision = "bf16" },
		"recurrent": func(r *Recipe) {
			r.Recurrent = true
			r.Block = 3
			r.Steps = 20
		},
	} {
		r := tiny(40)
		r.Logits = 1 // with a weight of 0.1, a short run learns little
		change(&r)
		alone, first, last := traintest.Watched(j, traintest.WhereMeasured)
		if err := alone.TrainHead(context.Background(), name, &r); err != nil {
			t.Fatal(err)
		}
		if last.Step != r.Steps || last.Validation["held"] > 0.9*first.Validation["held"] ||
			last.Figures["held chain"] <= 1 {
			t.Errorf("%s: held out %v at first, %v %v at step %d", name, first.Validation, last.Validation,
				last.Figures, last.Step)
		}
		if name == "falcon" {
			traintest.Interrupted(t, j, name, []int{13}, traintest.WholeFile, []string{"hf/model.safetensors"},
				func(ctx context.Context, j train.Job, name string) error {
					return j.TrainHead(ctx, name, &r)
				})
		}
		for _, file := range []string{"model-f32.gguf", "model-q8_0.gguf", "hf"} {
			h := traintest.Opened(t, &j, name, file, j.Target, falcon.Open)
			if h.Block != r.Block || h.Recurrent != r.Recurrent {
				t.Errorf("%s/%s: the head opens as %+v", name, file, h.Config)
			}
		}
	}
}

// The loss and the gradient of texts in one pass, where some rows glance, equal those of the
// definition: the rows of each text alone, with the mask, the inputs and the targets written
// out, and a loss for each row.
func TestGradient(t *testing.T) {
	target := traintest.Target(t, 5)
	cases.Check(t, 40, func(t *rapid.T) {
		r := tiny(1)
		r.Heads = 2
		r.KVHeads = 2
		r.HeadDim = 8
		r.FFN = 24
		r.Block, r.Recurrent = rapid.IntRange(1, 3).Draw(t, "block"), rapid.Bool().Draw(t, "recurrent")
		h, err := NewHead(r.config(&target.Config), target, gemm.F32)
		if err != nil {
			t.Fatal(err)
		}
		h.Init(rapid.Uint64().Draw(t, "weights"))
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "texts"), 0))
		k, length := r.Block, rapid.IntRange(10, 20).Draw(t, "length")
		all, glanced := texts{}, map[int]bool{}
		for i := range rapid.IntRange(1, 3).Draw(t, "number of texts") {
			text := make([]int32, length)
			for p := range text {
				text[p] = rng.Int32N(60)
			}
			var places []int
			for p := k; p < length-1; p++ {
				if rng.IntN(3) > 0 || p == k {
					places = append(places, p)
				}
				if p+k < length && p-k >= 0 && rng.IntN(4) == 0 {
					glanced[i*(length-1)+p-k] = true
				}
			}
			all.list, all.places = append(all.list, text), append(all.places, places)
		}
		o := objective{states: 1, logits: 0.5, soft: 0.7, temperature: 0.95}
		together := func() autograd.Loss {
			h.Params.ZeroGrad()
			h.Tape.Reset()
			h.read(&all, o.temperature)
			h.Tape.Attach()
			defer h.Tape.Detach()
			l := h.loss(&all, h.run(&all, glanced), h.rowsOf(&all, -1), o, 0.1, false)
			h.Tape.Backward()
			return l
		}
		loss := together()
		got := slices.Clone(traintest.Gradients(h.Params))
		h.Params.ZeroGrad()
		var sum float64
		for i, text := range all.list {
			sum += alone(h, text, all.places[i], func(row int) bool { return glanced[i*(length-1)+row] }, o, 0.1)
		}
		if math.Abs(loss.Sum-sum) > 1e-5*(1+math.Abs(sum)) {
			t.Fatalf("loss %g, by its definition %g", loss.Sum, sum)
		}
		traintest.SameGradients(t, got, traintest.Gradients(h.Params), 1e-4)
	})
}

// alone returns the loss of one text by the definition, and adds its gradient.
func alone(h *Head, text []int32, places []int, glances func(row int) bool, o objective, scale float32) float64 {
	k, n := h.net.Block, len(text)-1
	h.Tape.Reset()
	h.Tape.Detach()
	last := h.Target.Read([][]int32{text})
	features := nn.NewMat(n+1, h.net.Hidden)
	h.net.Features(h.Exec, h.Target.Taps, features)
	chain, inputs := tree.New(0), nn.NewMat(n, h.net.Hidden)
	var tokens, before []int32
	for row := range n {
		at := row
		if glances(row) {
			at = row + k
		}
		if row > 0 {
			chain.AppendApart(row-1, 0)
		}
		tokens, before = append(tokens, text[at+1]), append(before, int32(row-1))
		copy(inputs.Row(row), features.Row(at))
	}
	for i := range n {
		for j := range n {
			chain.SetSees(i, j, j/k <= i/k)
		}
	}
	var forest nn.Forest
	cache := h.net.Pages()
	c := cache.NewCache()
	defer c.Free()
	forest.Add(c, chain, 0)
	c.Reserve(0, n)
	var order *falcon.Order
	if h.net.Recurrent {
		order = new(falcon.Order)
		order.Set(before, [][]float32{nil})
	}
	var soft autograd.Soft
	soft.Temperature = o.temperature
	h.Target.Distributions(&soft, last, 1, 0, n, &h.net.Head)
	h.Tape.Attach()
	defer h.Tape.Detach()
	x := h.Exec.Mat(new(nn.Buffer), n, h.net.Hidden)
	h.net.Run(h.Exec, &forest, tokens, inputs, order, x, new(falcon.Buffers))
	sum := 0.0
	for _, place := range places {
		y := h.Exec.Mat(new(nn.Buffer), 1, h.net.Hidden)
		h.Exec.Gather(x, []int32{int32(place - k)}, y)
		soft.Row = []int32{int32(place)}
		targets := autograd.Targets{Token: []int32{text[place+1]}, Soft: &soft, Share: o.soft}
		sum += float64(scale) * float64(o.logits) * h.Tape.CrossEntropy(nn.Source{X: y}, &h.net.Head, targets,
			scale*o.logits).Sum
		want := nn.NewMat(1, h.net.Hidden)
		copy(want.Row(0), features.Row(place))
		sum += float64(scale) * float64(o.states) * h.Tape.SmoothL1(y, want, scale*o.states).Sum
	}
	h.Tape.Backward()
	return sum
}

// The number of glancing rows is the given share of the wrong rows. They are first rows of
// blocks, and never a whole block.
func TestGlance(t *testing.T) {
	target := traintest.Target(t, 5)
	cases.Check(t, 40, func(t *rapid.T) {
		r := tiny(1)
		r.Heads = 2
		r.KVHeads = 2
		r.HeadDim = 8
		r.FFN = 24
		r.Block = rapid.IntRange(1, 4).Draw(t, "block")
		h, err := NewHead(r.config(&target.Config), target, gemm.F32)
		if err != nil {
			t.Fatal(err)
		}
		h.Init(1)
		all := texts{}
		k := r.Block
		length := rapid.IntRange(30, 60).Draw(t, "length")
		for range 2 {
			text, places := make([]int32, length), []int(nil)
			for p := range text {
				text[p] = int32((p * p) % 60)
			}
			for p := k + 3; p < length-1; p++ {
				places = append(places, p)
			}
			all.list, all.places = append(all.list, text), append(all.places, places)
		}
		h.Tape.Reset()
		h.read(&all, 1)
		share := rapid.Float64Range(0, 0.5).Draw(t, "share")
		glanced := h.glance(&all, share, rand.New(rand.NewPCG(1, 1)))
		blocks := map[int]int{}
		for row := range glanced {
			at := row % (length - 1)
			if at < 3 || at+k >= length-1 {
				t.Fatalf("row %d of a text of %d glances", at, length)
			}
			blocks[row/(length-1)*length+at/k]++
		}
		for block, n := range blocks {
			if n >= k {
				t.Fatalf("all rows of block %d glance", block)
			}
		}
		if rows := float64(len(h.rowsOf(&all, -1))); float64(len(glanced)) > share*rows*float64(k)/2+float64(k) {
			t.Fatalf("%d rows of %g glance, at a share of %g", len(glanced), rows, share)
		}
	})
}

// A head that starts as the linear function of embedding and feature predicts more of the next
// tokens than one with random weights.
func TestWarm(t *testing.T) {
	j := traintest.JobWithTarget(t)
	loss := func(from []int) float64 {
		r := tiny(1)
		r.From = from
		text, err := j.OpenCorpus(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		defer text.Close()
		l := traintest.Learner[*learner](t, &j, &r, text)
		losses, _, err := l.Validate()
		if err != nil {
			t.Fatal(err)
		}
		return losses["held"]
	}
	if warm, cold := loss([]int{1}), loss(nil); warm > 0.9*cold {
		t.Errorf("the loss is %.2f for a head that begins as a linear function, %.2f for a random one", warm, cold)
	}
}

// A recipe that cannot be completed is refused.
func TestRefuses(t *testing.T) {
	shape := traintest.Shape()
	config := shape.Config()
	traintest.Refuses(t, func() Recipe { return tiny(10) }, func(r *Recipe) error { return r.Prepare(traintest.Over(config)) },
		map[string]func(r *Recipe){
			"steps": func(r *Recipe) { r.Steps = 0 }, "weights": func(r *Recipe) { r.Logits = 0 },
			"temperature": func(r *Recipe) { r.Temperature = 0 },
			"glancing":    func(r *Recipe) { r.Glance[0] = 2 }, "have no room": func(r *Recipe) { r.Held.Length = 12 },
			"predicts 20 tokens": func(r *Recipe) {
				r.Block = 20
				r.Short.Length = 60
				r.Long.Files = 0
			},
			"no block 9": func(r *Recipe) { r.From = []int{9} },
		})
}

// taps are a target's taps of a text, used in place of a pass.
type taps struct{ nn.Mat }

func (p taps) Tap(_, _, node int) []float32 { return p.Row(node) }
func (taps) Logits(int, int) []float32      { return nil }

// A row predicts the same in training and in drafting: after a text whose last rows are a block, a
// draft of k levels has the likeliest tokens of these rows, with their log-probabilities.
func TestDraftsAsTrained(t *testing.T) {
	target := traintest.Target(t, 5)
	cases.Check(t, 40, func(t *rapid.T) {
		r := tiny(1)
		r.Heads = 2
		r.KVHeads = 2
		r.HeadDim = 8
		r.FFN = 24
		r.Block, r.Recurrent = rapid.IntRange(1, 4).Draw(t, "block"), rapid.Bool().Draw(t, "recurrent")
		h, err := NewHead(r.config(&target.Config), target, gemm.F32)
		if err != nil {
			t.Fatal(err)
		}
		h.Init(rapid.Uint64().Draw(t, "weights"))
		k := r.Block
		text := make([]int32, 1+k*rapid.IntRange(1, 10).Draw(t, "blocks"))
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "text"), 0))
		for i := range text {
			text[i] = rng.Int32N(60)
		}
		rows := len(text) - 1
		if rows < 2*k {
			return // there is no feature at which to read the target's distributions
		}
		h.Tape.Reset()
		h.Tape.Detach()
		all := texts{list: [][]int32{text}, places: [][]int{{k}}}
		h.read(&all, 1)
		logits := nn.NewMat(k, h.net.Vocab)
		h.Exec.Linear(nn.Source{X: h.run(&all, nil).Slice(rows-k, rows)}, nn.Proj{Linear: &h.net.Head, Dst: logits})

		d, err := falcon.New(h.net, &grow.Linear{K: k}, false, nil, h.Exec.Pool())
		if err != nil {
			t.Fatal(err)
		}
		s, err := d.Begin(draft.Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		var path []int32
		for i := range rows {
			path = append(path, int32(i))
		}
		if err := d.Commit([]draft.Rows{{State: s, Tokens: text[:rows], Tree: tree.Chain(text[:rows]), Nodes: path,
			Next: text[rows], Pass: taps{h.Target.Taps}}}); err != nil {
			t.Fatal(err)
		}
		chain := tree.New(text[rows])
		if _, err := d.Propose(context.Background(), []draft.Request{{State: s, Tree: chain, Budget: k + 1,
			Depth: k}}); err != nil {
			t.Fatal(err)
		}
		if chain.Len() != k+1 {
			t.Fatalf("the draft has %d nodes, want %d", chain.Len(), k+1)
		}
		for slot := range k {
			row := logits.Row(slot)
			best, sum := 0, 0.0
			for i, v := range row {
				if v > row[best] {
					best = i
				}
				sum += math.Exp(float64(v))
			}
			want := float64(row[best]) - math.Log(sum)
			got := float64(chain.LogProb[slot+1])
			if chain.Token[slot+1] != int32(best) || math.Abs(got-want) > 1e-4 {
				t.Fatalf("row %d of the block drafts %d (%g), was trained to say %d (%g)", slot, chain.Token[slot+1], got,
					best, want)
			}
		}
	})
}

// Whichever rows learn, the sampled ones are the rows of some blocks: rows at every place of a
// block equally often, and some even of the shortest answer.
func TestSampled(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		k, length := rapid.IntRange(2, 4).Draw(t, "block"), rapid.IntRange(20, 200).Draw(t, "length")
		var all []int32
		for text := range rapid.IntRange(1, 3).Draw(t, "texts") {
			first := rapid.IntRange(0, length-1).Draw(t, "first")
			for row := first; row < rapid.IntRange(first+1, length).Draw(t, "end"); row++ {
				all = append(all, int32(text*length+row))
			}
		}
		places, blocks := make([]int, k), map[int]bool{}
		rows := sampled(all, length, k)
		for _, row := range rows {
			places[int(row)%length%k]++
			blocks[int(row)/length*length+int(row)%length/k] = true
		}
		if len(all) > 0 && len(rows) == 0 || len(rows) > len(all)/counted+2*k {
			t.Fatalf("%d rows of %d are looked at", len(rows), len(all))
		}
		// blocks at an end of an answer may have fewer rows
		if slices.Max(places) > len(blocks) || slices.Min(places) < len(blocks)-6 {
			t.Fatalf("%v rows of each place, of %d blocks", places, len(blocks))
		}
	})
}
