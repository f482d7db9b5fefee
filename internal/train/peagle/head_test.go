package peagle

import (
	"context"
	"math"
	"path/filepath"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/grovellm/grove/internal/autograd"
	"github.com/grovellm/grove/internal/drafters/eagle"
	"github.com/grovellm/grove/internal/drafters/peagle"
	"github.com/grovellm/grove/internal/kernels/gemm"
	"github.com/grovellm/grove/internal/testing/cases"
	"github.com/grovellm/grove/internal/train"
	traineagle "github.com/grovellm/grove/internal/train/eagle"
	"github.com/grovellm/grove/internal/train/traintest"
)

// tiny returns a recipe for traintest's tiny target.
func tiny(steps int) Recipe {
	r := Recipe{
		Layering: train.Layering{Layers: 2, Heads: 4, KVHeads: 2, HeadDim: 16, FFN: 64, RopeBase: 10000},
		Taps:     []int{0, 1, 2}, Basis: traintest.Basis(steps), Depths: 4, Places: 12, Keep: 0.7, KeepLeast: 0.2,
	}
	r.Optimizer.MuonRate = 0.01
	return r
}

// Heads of either method, and one with a draft vocabulary, learn the target's predictions. An
// interrupted run ends with the weights of an uninterrupted one, also on another number of threads.
// The exported file opens as a head of the target.
func TestTrain(t *testing.T) {
	j := traintest.JobWithTarget(t)
	for name, change := range map[string]func(r *Recipe){
		"peagle":       func(r *Recipe) { r.Precision = "bf16" },
		"parallelspec": func(r *Recipe) { r.Masks, r.Steps = true, 20 },
		"short": func(r *Recipe) {
			r.DraftVocab = 96
			r.Text = "corpus"
			r.Steps = 20
		},
	} {
		r := tiny(30)
		change(&r)
		alone, first, last := traintest.Watched(j, traintest.WhereMeasured)
		if err := alone.TrainHead(context.Background(), name, &r); err != nil {
			t.Fatal(err)
		}
		if last.Step != r.Steps || last.Validation["held"] > 0.9*first.Validation["held"] ||
			last.Figures["held chain"] <= 1 ||
			last.Figures["held "+train.HeldTree] < last.Figures["held chain"] {
			t.Errorf("%s: held out %v at first, %v %v at step %d", name, first.Validation, last.Validation,
				last.Figures, last.Step)
		}
		if name == "peagle" {
			traintest.Interrupted(t, j, name, []int{13}, traintest.WholeFile,
				[]string{"speculators/model.safetensors"}, func(ctx context.Context, j train.Job, name string) error {
					return j.TrainHead(ctx, name, &r)
				})
		}
		other := r
		other.Keep = 0.5
		if err := j.TrainHead(context.Background(), name, &other); err == nil {
			t.Errorf("%s: another recipe goes on with its checkpoint", name)
		}
		files := []string{"model-f32.gguf", "model-q8_0.gguf", "speculators"}
		if r.Masks {
			files = files[:2]
		}
		for _, file := range files {
			h := traintest.Opened(t, &j, name, file, j.Target, peagle.Open)
			if h.Depths != r.Depths || h.Masks > 0 != r.Masks || !slices.Equal(h.Taps, r.Taps) || r.DraftVocab > 0 &&
				len(h.Base.Tokens) != r.DraftVocab {
				t.Errorf("%s/%s: the head opens as %+v", name, file, h.Config)
			}
		}
	}
}

// A head with EAGLE-3's warm start predicts the next token before it has learned anything; a head
// that starts with random weights does not.
func TestWarm(t *testing.T) {
	j := traintest.JobWithTarget(t)
	right := func(from []int) float64 {
		r := tiny(1)
		r.From, r.Layers = from, 1
		text, err := j.OpenCorpus(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		defer text.Close()
		l := traintest.Learner[*learner](t, &j, &r, text)
		_, figures, err := l.Validate()
		if err != nil {
			t.Fatal(err)
		}
		return figures["held depth 01"]
	}
	if warm, cold := right([]int{1}), right(nil); warm < 0.3 || cold > 0.2 {
		t.Errorf("first guesses are right %.2f of the time for a head that begins as its target has it, %.2f for a random one", warm, cold)
	}
}

// A head that starts from an EAGLE-3 head has its draft vocabulary, its weights and its guesses,
// however many more layers it has.
func TestStart(t *testing.T) {
	j := traintest.JobWithTarget(t)
	e := traineagle.NewRecipe(3)
	e.Heads = 4
	e.KVHeads = 2
	e.HeadDim = 16
	e.FFN = 64
	e.Taps = []int{0, 1, 2}
	e.From = nil
	e.DraftVocab = 96
	e.Course = tiny(20).Course
	e.HeadText = traintest.HeadText()
	e.Places = 12
	e.TestSteps = 2
	e.Later = 4
	if err := j.TrainHead(context.Background(), "eagle", &e); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(j.Dir, "eagle", "model-f32.gguf")
	begin := func(layers int) (*learner, map[string]float64) {
		r := tiny(1)
		r.Layers, r.Start = layers, file
		if err := r.Prepare(&j); err != nil {
			t.Fatal(err)
		}
		text, err := j.OpenCorpus(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		defer text.Close()
		l := traintest.Learner[*learner](t, &j, &r, text)
		_, figures, err := l.Validate()
		if err != nil {
			t.Fatal(err)
		}
		return l, figures
	}
	one, want := begin(1)
	if _, got := begin(3); got["held depth 01"] != want["held depth 01"] {
		t.Errorf("with three layers %v, with one %v", got, want)
	}
	h := traintest.Opened(t, &j, "eagle", "model-f32.gguf", j.Target, eagle.Open)
	params := train.ByName(one.Params())
	for name, w := range map[string]*gemm.Matrix{"fc.weight": h.Fuse.W, "blk.0.ffn_down.weight": h.Blocks[0].MLP.Down.W} {
		row := make([]float32, w.In())
		w.Row(row, 7)
		if !slices.Equal(row, train.Row(params[name], 7)) {
			t.Errorf("%s: the head begins with %v, the EAGLE-3 head has %v", name, train.Row(params[name], 7), row)
		}
	}
	if !slices.Equal(h.Tokens, one.head.net.Base.Tokens) {
		t.Errorf("a draft vocabulary of %d tokens, the EAGLE-3 head's has %d", len(one.head.net.Base.Tokens), len(h.Tokens))
	}
	if err := j.CheckHead(&Flags{Start: &file}); err != nil {
		t.Errorf("a head that starts as another is refused before there is text: %v", err)
	}
	missing := filepath.Join(j.Dir, "eagle", "model.gguf")
	if j.CheckHead(&Flags{Start: &missing}) == nil {
		t.Error("a head starts as one that is not there")
	}
}

// The drop keeps blocks without gaps and within the text, and at every depth the share that the
// paper gives, as far as there are places.
func TestDrop(t *testing.T) {
	cases.Check(t, 40, func(t *rapid.T) {
		last := rapid.IntRange(1, 60).Draw(t, "last")
		places := rapid.SliceOfNDistinct(rapid.IntRange(1, last), 1, 40, rapid.ID[int]).Draw(t, "places")
		slices.Sort(places)
		depths := rapid.IntRange(1, 9).Draw(t, "depths")
		keep, least := rapid.Float64Range(0.1, 1).Draw(t, "keep"), rapid.Float64Range(0, 0.5).Draw(t, "least")
		seed := rapid.Uint64().Draw(t, "seed")
		g := drop(seed, 1, places, depths, last, keep, least)
		if again := drop(seed, 1, places, depths, last, keep, least); !slices.Equal(again.depths, g.depths) ||
			!slices.Equal(g.places, places) {
			t.Fatal("not a function of the seed")
		}
		total := 0
		for d := range depths {
			rows, could := 0, 0
			for i, p := range places {
				if g.depths[i] > d {
					rows++
					if p+d > last {
						t.Fatalf("depth %d of place %d is beyond %d", d, p, last)
					}
				}
				if p+d <= last && g.depths[i] >= d {
					could++
				}
			}
			if want := min(could, int(float64(len(places))*max(math.Pow(keep, float64(d)), least))); rows != want {
				t.Fatalf("depth %d has %d rows of %d places, want %d", d, rows, len(places), want)
			}
			total += rows
		}
		if total != g.rows() {
			t.Fatalf("%d rows, said to be %d", total, g.rows())
		}
	})
}

// The loss and the gradient of all blocks of some texts in one pass are the sums of those of each
// row alone, in its own block after the entries that it sees.
func TestBlocksAreIndependent(t *testing.T) {
	target := traintest.Target(t, 5)
	cases.Check(t, 40, func(t *rapid.T) {
		r := tiny(1)
		r.HeadDim, r.FFN = 8, 24
		r.Layers, r.Masks = rapid.IntRange(1, 2).Draw(t, "layers"), rapid.Bool().Draw(t, "masks")
		var tokens []int32
		if rapid.Bool().Draw(t, "draft vocabulary") {
			r.DraftVocab = 30
			for i := range int32(30) {
				tokens = append(tokens, 59-2*i)
			}
		}
		h, err := NewHead(r.config(&target.Config, 59), tokens, target, gemm.F32)
		if err != nil {
			t.Fatal(err)
		}
		h.Init(rapid.Uint64().Draw(t, "seed"))
		length := rapid.IntRange(6, 16).Draw(t, "length")
		var texts [][]int32
		var groups []group
		for i := range rapid.IntRange(1, 3).Draw(t, "texts") {
			texts = append(texts, rapid.SliceOfN(rapid.Int32Range(0, 59), length, length).Draw(t, "text"))
			places := rapid.SliceOfNDistinct(rapid.IntRange(1, length-2), 1, 4, rapid.ID[int]).Draw(t, "places")
			slices.Sort(places)
			groups = append(groups, drop(1, uint64(i), places, r.Depths, length-2, r.Keep, 0.5))
		}
		h.Params.ZeroGrad()
		got := h.gradient(texts, groups, 1)
		together := traintest.Gradients(h.Params)

		h.Params.ZeroGrad()
		var want autograd.Loss
		for i, text := range texts {
			for n, p := range groups[i].places {
				for d := range groups[i].depths[n] {
					// The block up to the row, minus the block up to the row before.
					block := group{[]int{p}, []int{d + 1}}
					want.Add(h.gradient([][]int32{text[:p+d+2]}, []group{block}, 1))
					if d > 0 {
						block.depths[0] = d
						less := h.gradient([][]int32{text[:p+d+2]}, []group{block}, -1)
						want.Sum = want.Sum - less.Sum
						want.Rows = want.Rows - less.Rows
						want.Weight = want.Weight - less.Weight
					}
				}
			}
		}
		if math.Abs(got.Sum-want.Sum) > 1e-4*(1+want.Sum) || got.Rows != want.Rows ||
			math.Abs(got.Weight-want.Weight) > 1e-4*(1+want.Weight) {
			t.Fatalf("loss %+v together, %+v one by one", got, want)
		}
		traintest.SameGradients(t, together, traintest.Gradients(h.Params), 4e-4)
	})
}
