package jet

import (
	"context"
	"math"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/grovellm/grove/internal/drafters/spark"
	"github.com/grovellm/grove/internal/heads/headfile"
	"github.com/grovellm/grove/internal/kernels/gemm"
	"github.com/grovellm/grove/internal/train"
	"github.com/grovellm/grove/internal/train/traintest"
)

// tinyCorrected returns a recipe for the tiny target, whose selector scores all tokens that the random target has.
func tinyCorrected(head string, steps int) CorrectedRecipe {
	r := CorrectedRecipe{Recipe: tinyHead(false, steps), Head: head, Rank: 8, Weight: 1}
	if head == DSpark {
		r.Anchor = true
		r.Markov = Vanilla
		r.Hard = 0.1
		return r
	}
	r.Kernel, r.Group = 2, 4
	r.Top = 60
	return r
}

// DSpark and DFlash 2 heads learn the target's predictions. The exported file opens as a drafter of
// the same kind and shape, and folders have the file's weights. Heads that start from a DFlash head
// have its shape, and draft as well as it before they have learned anything.
func TestCorrected(t *testing.T) {
	j := traintest.JobWithTarget(t)
	j.Verifier = "org/target"
	dflash := tinyHead(false, 40)
	if err := j.TrainHead(context.Background(), "dflash", &dflash); err != nil {
		t.Fatal(err)
	}
	start := filepath.Join(j.Dir, "dflash", "model-f32.gguf")
	for name, r := range map[string]CorrectedRecipe{DSpark: tinyCorrected(DSpark, 40), DFlash2: tinyCorrected(DFlash2, 40),
		"started": tinyCorrected(DFlash2, 1)} {
		switch name {
		case DSpark:
			r.Markov = Gated
		case "started":
			r.Start = start
			r.Layers, r.Taps = 1, []int{0}
			var err error
			if r, err = r.For(j.Target); err != nil {
				t.Fatal(err)
			}
		}
		alone, first, last := traintest.Watched(j, traintest.EveryStep)
		if err := alone.TrainHead(context.Background(), name, &r); err != nil {
			t.Fatal(err)
		}
		if last.Step != r.Steps || name != "started" && last.Loss > 0.8*first.Loss || last.Figures["held chain"] < 1 ||
			name == "started" && last.Figures["held chain"] < 1.2 || last.Figures["held "+
			train.HeldTree] < last.Figures["held chain"] {
			t.Errorf("%s: loss %.3f at first, %.3f at step %d; held out %v %v", name, first.Loss, last.Loss, last.Step,
				last.Validation, last.Figures)
		}
		want := r.config(&j.Target.Config, 0)
		var weights [][]float32
		for _, file := range []string{"model-f32.gguf", "hf", "speculators", "model-q8_0.gguf"} {
			h := traintest.Opened(t, &j, name, file, j.Target, spark.Open)
			if h.Variant != r.Head || h.Anchor != want.Anchor || h.Rank != 8 || h.Markov != want.Markov ||
				h.Confidence != want.Confidence ||
				h.Kernel != want.Kernel || h.Group != want.Group || h.Top != want.Top ||
				!slices.Equal(h.Taps, []int{1, 2}) || h.Layers != 2 {
				t.Errorf("%s/%s: the head opens as %+v", name, file, h.Config)
			}
			var all []float32
			h.Tensors().Weights(func(w headfile.Weight) { w.Each(func(_ int, row []float32) { all = append(all, row...) }) })
			weights = append(weights, all)
		}
		if len(weights[0]) == 0 || !slices.Equal(weights[0], weights[1]) || !slices.Equal(weights[0], weights[2]) {
			t.Errorf("%s: the folders have other weights than the file", name)
		}
	}
	r := tinyCorrected(DSpark, 1)
	r.Start = filepath.Join(j.Dir, DFlash2, "model-f32.gguf")
	if _, err := r.For(j.Target); err == nil {
		t.Error("a head starts as one that is no DFlash head")
	}
}

// The gradient of a step is that of its loss, by finite differences along a direction of every parameter.
func TestCorrectedGradient(t *testing.T) {
	target := traintest.Target(t, 5)
	for i, r := range []CorrectedRecipe{tinyCorrected(DSpark, 1), tinyCorrected(DSpark, 1), tinyCorrected(DFlash2, 1)} {
		if i == 1 {
			r.Markov = Gated
		}
		weight := float32(0.5)
		if r.Head == DSpark {
			weight = 0 // the confidence head's labels are constants, without a gradient
		}
		h, err := NewCorrectedHead(r.config(&target.Config, 59), target, gemm.F32, weight)
		if err != nil {
			t.Fatal(err)
		}
		h.Init(3)
		rng := rand.New(rand.NewPCG(4, uint64(i)))
		texts, anchors := make([][]int32, 2), [][]int{{1, 7, 9}, {3, 5, 17}}
		for n := range texts {
			for range 20 {
				texts[n] = append(texts[n], rng.Int32N(58))
			}
		}
		h.Params.ZeroGrad()
		l, err := h.gradient(texts, anchors, 4, r.objective(), 1)
		if err != nil {
			t.Fatal(err)
		}
		loss := func() float64 {
			h.Pack()
			h.Tape.Detach()
			x, err := h.forward(texts, anchors, 4, r.objective())
			if err != nil {
				t.Fatal(err)
			}
			return h.loss(x, 1).Sum
		}
		if again := loss(); again != l.Sum {
			t.Errorf("%s: loss %g under a tape, %g without", r.Head, l.Sum, again)
		}
		for _, p := range h.Params.All() {
			if strings.HasPrefix(p.Name, "confidence.") {
				continue
			}
			was := slices.Clone(p.Data)
			direction := make([]float64, len(was))
			want, length := 0.0, 0.0
			for k, g := range p.Grad {
				direction[k] = rng.NormFloat64()
				want += direction[k] * float64(g)
				length += float64(g) * float64(g)
			}
			at := func(step float64) float64 {
				for k, v := range was {
					p.Data[k] = v + float32(step*direction[k])
				}
				return loss()
			}
			const step = 1.0 / 2048 // total variation has corners where the distributions cross
			long, short := (at(step)-at(-step))/(2*step), (at(step/2)-at(-step/2))/step
			got := (4*short - long) / 3
			copy(p.Data, was)
			if length == 0 || math.Abs(got-want) > 0.02*(math.Sqrt(length)+math.Abs(want))+0.02 {
				t.Errorf("%s %s: %s is %g along a direction, by differences %g (gradient's length %g)", r.Head, r.Markov, p.Name, want,
					got, math.Sqrt(length))
			}
		}
	}
}

// A recipe of a correction that cannot be completed is refused before anything is done.
func TestCorrectedRecipeRefuses(t *testing.T) {
	tiny := traintest.Shape()
	shape := tiny.Config()
	traintest.Refuses(t, func() CorrectedRecipe { return tinyCorrected(DSpark, 1) }, func(r *CorrectedRecipe) error {
		return r.Prepare(traintest.Over(shape))
	},
		map[string]func(r *CorrectedRecipe){
			"correction \"rnn\"": func(r *CorrectedRecipe) { r.Markov = "rnn" },
			"rank":               func(r *CorrectedRecipe) { r.Rank = 0 },
			"share 1 of":         func(r *CorrectedRecipe) { r.Hard = 1 },
			"weight":             func(r *CorrectedRecipe) { r.Weight = -1 },
			"groups of 5":        func(r *CorrectedRecipe) { *r = tinyCorrected(DFlash2, 1); r.Group = 5 },
			"selector_top_k":     func(r *CorrectedRecipe) { *r = tinyCorrected(DFlash2, 1); r.Top = 300 },
			"0 blocks each":      func(r *CorrectedRecipe) { r.Anchors = 0 },
		})
	for _, head := range []string{DSpark, DFlash2} {
		r := tinyCorrected(head, 1)
		if err := r.Prepare(traintest.Over(shape)); err != nil {
			t.Error(err)
		}
	}
}
