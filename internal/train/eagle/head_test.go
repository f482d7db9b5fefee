package eagle

import (
	"context"
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/grovellm/grove/internal/autograd"
	"github.com/grovellm/grove/internal/drafters/eagle"
	"github.com/grovellm/grove/internal/drafters/grow"
	"github.com/grovellm/grove/internal/kernels/gemm"
	"github.com/grovellm/grove/internal/testing/cases"
	"github.com/grovellm/grove/internal/train"
	"github.com/grovellm/grove/internal/train/traintest"
)

// tinyEagle returns a recipe for traintest's tiny target.
func tinyEagle(version, steps int) Recipe {
	r := Recipe{
		Version: version, Heads: 4, KVHeads: 2, HeadDim: 16, FFN: 64, RopeBase: 10000, Taps: []int{0, 1, 2},
		From: []int{1}, Basis: traintest.Basis(steps), Places: 12, TestSteps: 4, Later: 5, Decay: 0.8,
	}
	r.Optimizer.MuonRate = 0.01
	if version != 3 {
		r.Taps = []int{2}
	}
	if version == 2 {
		r.TestSteps, r.Later = 1, 0
	}
	return r
}

// Heads of both versions, and one with a draft vocabulary, learn the target's predictions. An
// interrupted run ends with the weights of an uninterrupted one, also on another number of threads.
// The exported file opens as a head of the target.
func TestEagle(t *testing.T) {
	j := traintest.JobWithTarget(t)
	for name, r := range map[string]Recipe{"eagle": tinyEagle(3, 30), "eagle2": tinyEagle(2, 20),
		"short": tinyEagle(3, 20)} {
		r.From = nil // a tiny target is so close to linear that warm heads have little to learn
		switch name {
		case "eagle":
			r.Precision = "bf16"
		case "short":
			r.DraftVocab, r.Text = 96, "corpus"
		}
		alone, first, last := traintest.Watched(j, traintest.WhereMeasured)
		if err := alone.TrainHead(context.Background(), name, &r); err != nil {
			t.Fatal(err)
		}
		if last.Step != r.Steps || last.Validation["held"] > 0.9*first.Validation["held"] ||
			last.Figures["held chain"] <= 1 {
			t.Errorf("%s: held out %v at first, %v %v at step %d", name, first.Validation, last.Validation,
				last.Figures, last.Step)
		}

		if name == "eagle" {
			traintest.Interrupted(t, j, name, []int{13}, traintest.WholeFile, []string{"hf/model.safetensors"},
				func(ctx context.Context, j train.Job, name string) error {
					return j.TrainHead(ctx, name, &r)
				})
		}
		other := r
		other.Decay = 0.5
		if err := j.TrainHead(context.Background(), name, &other); err == nil {
			t.Errorf("%s: another recipe goes on with its checkpoint", name)
		}

		m := j.Target
		files := []string{"model-f32.gguf", "model-q8_0.gguf", "hf", "speculators"}
		for _, file := range files[:r.Version+1] {
			h := traintest.Opened(t, &j, name, file, m, eagle.Open)
			if h.Version != r.Version || !slices.Equal(h.Taps, r.Taps) || r.DraftVocab > 0 &&
				(h.DraftVocab != r.DraftVocab || len(h.Tokens) != r.DraftVocab) {
				t.Errorf("%s/%s: the head opens as %+v", name, file, h.Config)
			}
		}
	}
}

// openTiny returns the learner that TestEagle trains.
func openTiny(t *testing.T, j *train.Job, r *Recipe) *learner {
	t.Helper()
	text, err := j.OpenCorpus(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	defer text.Close()
	l := traintest.Learner[*learner](t, j, r, text)
	return l
}

// A head that starts as the linear function of embedding and state predicts the next token before
// it has learned anything; a head that starts with random weights does not.
func TestEagleWarm(t *testing.T) {
	j := traintest.JobWithTarget(t)
	right := func(version int, from []int) float64 {
		r := tinyEagle(version, 1)
		r.From = from
		_, figures, err := openTiny(t, &j, &r).Validate()
		if err != nil {
			t.Fatal(err)
		}
		return figures["held depth 01"]
	}
	for _, version := range []int{2, 3, eagle.Native} {
		if warm, cold := right(version, []int{1}), right(version, nil); warm < 0.93 || cold > 0.2 {
			t.Errorf("EAGLE-%d: first guesses are right %.2f of the time for a head that begins as its target has it, %.2f for a random one", version, warm, cold)
		}
	}
}

// The loss and the gradient of the training-time test, for several texts in staged passes over
// shared entries, equal those of its definition: every row alone, in its own chain after the
// entries that it sees, with the states before it computed on the way.
func TestTrainingTimeTest(t *testing.T) {
	target := traintest.Target(t, 5)
	cases.Check(t, 40, func(t *rapid.T) {
		r := tinyEagle(rapid.SampledFrom([]int{2, 3, eagle.Native}).Draw(t, "version"), 1)
		r.HeadDim, r.FFN = 8, 24
		r.TestSteps = rapid.IntRange(1, 5).Draw(t, "test steps")
		r.OwnOutput = r.Version == 3 && rapid.Bool().Draw(t, "own output")
		var tokens []int32
		if r.Version != 2 && rapid.Bool().Draw(t, "draft vocabulary") {
			r.DraftVocab = 30
			for i := range int32(30) {
				tokens = append(tokens, 59-2*i)
			}
		}
		h, err := NewHead(r.config(&target.Config), tokens, r.OwnOutput, target, gemm.F32)
		if err != nil {
			t.Fatal(err)
		}
		h.Init(rapid.Uint64().Draw(t, "seed"))
		length := rapid.IntRange(r.TestSteps+3, 16).Draw(t, "length")
		var l example
		for range rapid.IntRange(1, 3).Draw(t, "texts") {
			l.texts = append(l.texts, rapid.SliceOfN(rapid.Int32Range(0, 59), length, length).Draw(t, "text"))
			places := rapid.SliceOfNDistinct(rapid.IntRange(1, length-2), 1, 4, rapid.ID[int]).Draw(t, "places")
			slices.Sort(places)
			l.places = append(l.places, places)
			l.later = append(l.later, spread(places, length-1-r.TestSteps, rapid.IntRange(1, 3).Draw(t, "later")))
		}
		o := r.goal(&l)
		h.Params.ZeroGrad()
		got := h.gradient(&l, o)
		together := traintest.Gradients(h.Params)
		learns := false
		for _, p := range h.Params.All() {
			learns = learns || p.Name == "output.weight" && (got.Weight == 0 || slices.Max(p.Grad) > slices.Min(p.Grad))
		}
		if learns != r.OwnOutput {
			t.Fatalf("its output matrix learns: %v, want %v", learns, r.OwnOutput)
		}

		// One row at a time: only its places, and one of the test's steps.
		h.Params.ZeroGrad()
		var want autograd.Loss
		for i, text := range l.texts {
			one := func(p, step int) {
				part := example{texts: [][]int32{text[:p+step+2]}, places: [][]int{{p}}, later: [][]int{{p}}}
				alone := goal{scale: make([]float32, step+1), hard: o.hard, states: o.states}
				alone.scale[step] = o.scale[step]
				want.Add(h.gradient(&part, alone))
			}
			for _, p := range l.places[i] {
				one(p, 0)
			}
			for _, p := range l.later[i] {
				for step := 1; step < r.TestSteps; step++ {
					one(p, step)
				}
			}
		}
		if math.Abs(got.Sum-want.Sum) > 1e-4*(1+want.Sum) || math.Abs(got.Weight-want.Weight) > 1e-4*want.Weight {
			t.Fatalf("loss %+v together, %+v one by one", got, want)
		}
		traintest.SameGradients(t, together, traintest.Gradients(h.Params), 2e-4)
	})
}

// The chains that a head is measured by are those that it drafts in serving: decoding a text with
// the drafter's chains takes the same number of rounds. Each chain depends only on its place.
func TestEagleChains(t *testing.T) {
	target := traintest.Target(t, 6)
	cases.Check(t, 40, func(t *rapid.T) {
		r := tinyEagle(3, 1)
		r.HeadDim, r.FFN = 8, 24
		h, err := NewHead(r.config(&target.Config), nil, r.OwnOutput, target, gemm.F32)
		if err != nil {
			t.Fatal(err)
		}
		h.Init(rapid.Uint64().Draw(t, "seed"))
		h.Tape.Detach()
		text := rapid.SliceOfN(rapid.Int32Range(0, 9), 30, 30).Draw(t, "text")
		const first, most = 5, 12
		var places []int
		for p := first; p < first+most; p++ {
			places = append(places, p)
		}
		for i := range most { // a text that the head often predicts correctly
			if rapid.IntRange(0, 2).Draw(t, "right") > 0 {
				text[first+1+i] = h.draft(text, places)[i][0]
			}
		}
		together := h.draft(text, places)
		p := rapid.SampledFrom(places).Draw(t, "place")
		if alone := h.draft(text[:p+1], []int{p})[0]; !slices.Equal(alone, together[p-first]) {
			t.Fatalf("after token %d the head drafts %v beside others, %v alone", p, together[p-first], alone)
		}
		var m chains
		m.add(text, places, together)
		for d := range train.HeldDepth - 1 {
			if m.reached[d+1] != m.right[d] || m.right[d] > m.reached[d] {
				t.Fatalf("of chains right up to depth %d, %d, the next looks at %d", d+1, m.right[d], m.reached[d+1])
			}
		}
		rounds, tokens, err := h.rounds(text, first, most, &grow.Linear{K: train.HeldDepth}, train.HeldDepth+1)
		if err != nil {
			t.Fatal(err)
		}
		if float64(rounds) != m.rounds || float64(tokens) != m.tokens {
			t.Fatalf("%g rounds of chains bring %g tokens; the drafter takes %d for %d", m.rounds, m.tokens, rounds,
				tokens)
		}
	})
}
