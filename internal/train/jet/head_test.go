package jet

import (
	"context"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/grovellm/grove/internal/autograd"
	"github.com/grovellm/grove/internal/drafters/jet"
	"github.com/grovellm/grove/internal/drafters/registry"
	"github.com/grovellm/grove/internal/heads/headfile"
	"github.com/grovellm/grove/internal/kernels/gemm"
	"github.com/grovellm/grove/internal/testing/cases"
	"github.com/grovellm/grove/internal/train"
	"github.com/grovellm/grove/internal/train/traintest"
)

// tinyHead returns a recipe for traintest's tiny target.
func tinyHead(causal bool, steps int) Recipe {
	return Recipe{
		Causal: causal, Block: 4, Taps: []int{1, 2}, Basis: traintest.Basis(steps),
		Layering: train.Layering{Layers: 2, Heads: 2, KVHeads: 1, HeadDim: 16, FFN: 32, RopeBase: 10000},
		Loss:     "kl", Temperature: 1, Anchors: 5, ShortBlock: 3, ShortUntil: 0.3,
	}
}

// Heads of both kinds learn the target's predictions. An interrupted run ends with the weights of an
// uninterrupted one, also on another number of threads. The exported file opens as a head of the target.
func TestJet(t *testing.T) {
	j := traintest.JobWithTarget(t)
	for _, r := range []Recipe{tinyHead(true, 40), tinyHead(false, 40)} {
		if r.Causal {
			r.Precision = "bf16"
		} else {
			r.Text = "corpus"
			r.Loss = "ce"
			r.Gamma = 4
		}
		name := fmt.Sprintf("causal-%v", r.Causal)
		alone, first, last := traintest.Watched(j, traintest.EveryStep)
		if err := alone.TrainHead(context.Background(), name, &r); err != nil {
			t.Fatal(err)
		}
		if last.Step != r.Steps || last.Loss > 0.8*first.Loss || last.Validation["held"] == 0 ||
			last.Figures["held chain"] < 1 ||
			last.Figures["held "+train.HeldTree] < last.Figures["held chain"] {
			t.Errorf("%s: loss %.3f at first, %.3f at step %d; held out %v %v", name, first.Loss, last.Loss,
				last.Step, last.Validation, last.Figures)
		}

		traintest.Interrupted(t, j, name, []int{17}, traintest.WholeFile, []string{"hf/model.safetensors"},
			func(ctx context.Context, j train.Job, name string) error {
				return j.TrainHead(ctx, name, &r)
			})
		other := r
		other.Gamma = 9
		if err := j.TrainHead(context.Background(), name, &other); err == nil {
			t.Errorf("%s: another recipe goes on with its checkpoint", name)
		}

		m := j.Target
		for _, file := range []string{"model-f32.gguf", "model-q8_0.gguf", "hf"} {
			h := traintest.Opened(t, &j, name, file, m, jet.Open)
			if h.Causal != r.Causal || h.Block != r.Block || !slices.Equal(h.Taps, r.Taps) ||
				h.TargetLayers != j.Target.Config.Layers {
				t.Errorf("%s/%s: the head opens as %+v", name, file, h.Config)
			}
		}
	}

	// Folders cannot name the embedding as a tap.
	r := tinyHead(true, 2)
	r.Taps = []int{0, 2}
	if err := j.TrainHead(context.Background(), "embedding", &r); err != nil {
		t.Fatal(err)
	}
	c, err := headfile.ReadConfig[jet.Config](registry.Head{Name: filepath.Join(j.Dir, "embedding", "model-q8_0.gguf")},
		nil)
	if err != nil || !slices.Equal(c.Taps, r.Taps) {
		t.Errorf("taps %v, want %v (%v)", c.Taps, r.Taps, err)
	}
	if _, err := os.Stat(filepath.Join(j.Dir, "embedding", "hf")); err == nil {
		t.Error("a head that taps the embedding has a folder")
	}
}

// The gradient of all blocks of some texts in one pass is the sum of the gradients of each block
// alone, in a text that ends with the block's last row: blocks do not see each other, nor the
// text from their anchors on.
func TestBlocksAreIndependent(t *testing.T) {
	target := traintest.Target(t, 5)
	cases.Check(t, 40, func(t *rapid.T) {
		r := tinyHead(rapid.Bool().Draw(t, "causal"), 1)
		r.Block = rapid.IntRange(2, 6).Draw(t, "block")
		r.Taps = []int{rapid.IntRange(0, 2).Draw(t, "tap"), 2}
		h, err := NewHead(r.config(&target.Config, 59), target, gemm.F32)
		if kind := rapid.SampledFrom([]string{"", DSpark, DFlash2}).Draw(t, "correction"); kind != "" && err == nil {
			c := tinyCorrected(kind, 1)
			c.Recipe = r
			c.Causal = false
			h, err = NewCorrectedHead(c.config(&target.Config, 59), target, gemm.F32, 0.5)
		}
		if err != nil {
			t.Fatal(err)
		}
		h.Init(rapid.Uint64().Draw(t, "seed"))
		o := objective{share: rapid.SampledFrom([]float32{0, 1}).Draw(t, "share"), temperature: 1,
			gamma:      rapid.SampledFrom([]float64{0, 3}).Draw(t, "gamma"),
			divergence: rapid.SampledFrom([]autograd.Divergence{autograd.ForwardKL, autograd.ReverseKL}).Draw(t, "divergence")}
		length := rapid.IntRange(5, 40).Draw(t, "length")
		texts, anchors := make([][]int32, rapid.IntRange(1, 3).Draw(t, "texts")), [][]int{}
		for i := range texts {
			texts[i] = rapid.SliceOfN(rapid.Int32Range(0, 58), length, length).Draw(t, "text")
			anchors = append(anchors, train.DrawAnchors(1, uint64(i), texts[i], 1, length-2, r.Block,
				rapid.IntRange(1, 6).Draw(t, "anchors"), 1))
		}
		block := rapid.IntRange(2, r.Block).Draw(t, "rows")
		h.Params.ZeroGrad()
		got, err := h.gradient(texts, anchors, block, o, 1)
		if err != nil {
			t.Fatal(err)
		}
		together := traintest.Gradients(h.Params)

		h.Params.ZeroGrad()
		var want autograd.Loss
		weight := 0.0
		for i, text := range texts {
			weight += o.total(anchors[i], block-h.skip, length)
			for _, a := range anchors[i] {
				l, err := h.gradient([][]int32{text[:min(length, a+block+1-h.skip)]}, [][]int{{a}}, block, o, 1)
				if err != nil {
					t.Fatal(err)
				}
				want.Add(l)
			}
		}
		if math.Abs(got.Sum-want.Sum) > 1e-4*(1+want.Sum) || got.Rows != want.Rows ||
			math.Abs(got.Weight-weight) > 1e-4*weight {
			t.Fatalf("loss %+v together, %+v one by one; weight %g", got, want, weight)
		}
		traintest.SameGradients(t, together, traintest.Gradients(h.Params), 1e-4)
	})
}

// A head that starts as the target, after a layer that passes the anchor on, drafts the next token
// before it has learned anything; a head that starts with random weights does not.
func TestWarm(t *testing.T) {
	j := traintest.JobWithTarget(t)
	right := func(from []int) float64 {
		r := tinyHead(true, 1)
		r.From, r.FFN = from, 48
		r.Layers = len(from)
		if len(from) == 0 {
			r.Layers = 3
		}
		l := openTiny(t, &j, &r)
		_, figures, err := l.Validate()
		if err != nil {
			t.Fatal(err)
		}
		return figures["held depth 01"]
	}
	if warm, cold := right([]int{train.Hand, 0, 1}), right(nil); warm < 0.4 || cold > 0.2 {
		t.Errorf("first guesses are right %.2f of the time for a head that begins as its target, %.2f for a random one", warm, cold)
	}
}

// openTiny returns the learner that TestJet trains.
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
