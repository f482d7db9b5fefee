package medusa

import (
	"context"
	"math"
	"reflect"
	"testing"

	"pgregory.net/rapid"

	"github.com/grovellm/grove/internal/autograd"
	"github.com/grovellm/grove/internal/drafters/medusa"
	"github.com/grovellm/grove/internal/kernels/gemm"
	"github.com/grovellm/grove/internal/testing/cases"
	"github.com/grovellm/grove/internal/train"
	"github.com/grovellm/grove/internal/train/traintest"
)

// tiny returns a recipe for the tiny target.
func tiny(steps int) Recipe {
	r := NewRecipe()
	r.Depths = 3
	r.Precision = "f32"
	r.HeadText = traintest.HeadText()
	r.Places = 12
	r.Nodes = 9
	r.Steps = steps
	r.ValidateEvery = 10
	r.Optimizer.Rate = 1e-2
	return r
}

// Heads learn the target's predictions. An interrupted run ends with the weights of an
// uninterrupted one, also on another number of threads. The exported file opens as heads of the
// target, with a tree template.
func TestTrain(t *testing.T) {
	j := traintest.JobWithTarget(t)
	for name, change := range map[string]func(r *Recipe){
		"shared": func(*Recipe) {},
		"own": func(r *Recipe) {
			r.OwnOutputs = true
			r.Loss = "kl"
			r.Decay = 0.8
			r.ResBlocks = 2
			r.Precision = "bf16"
		},
	} {
		r := tiny(40)
		change(&r)
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
		traintest.Interrupted(t, j, name, []int{17}, traintest.WholeFile,
			[]string{"hf/medusa_lm_head.safetensors", "hf/config.json"},
			func(ctx context.Context, j train.Job, name string) error { return j.TrainHead(ctx, name, &r) })
		other := r
		other.Decay = 0.5
		if err := j.TrainHead(context.Background(), name, &other); err == nil {
			t.Errorf("%s: another recipe goes on with its checkpoint", name)
		}
		for _, file := range []string{"model-f32.gguf", "model-q8_0.gguf", "hf"} {
			h := traintest.Opened(t, &j, name, file, j.Target, medusa.Open)
			if h.Depths != r.Depths || h.ResBlocks != r.ResBlocks || h.OwnOutputs != r.OwnOutputs ||
				len(h.Template) != r.Nodes ||
				h.TargetLayers != j.Target.Config.Layers {
				t.Errorf("%s/%s: the heads open as %+v", name, file, h.Config)
			}
		}
	}
}

// Heads start as the target's own output, as far as the biases of the residual blocks allow.
func TestBegin(t *testing.T) {
	target := traintest.Target(t, 3)
	r := tiny(1)
	r.OwnOutputs = true
	h, err := NewHeads(r.config(&target.Config), target, gemm.F32)
	if err != nil {
		t.Fatal(err)
	}
	h.begin(1)
	for _, p := range h.Params.All() {
		if p.Vector {
			clear(p.Data)
		}
	}
	text := []int32{1, 5, 2, 40, 8, 9}
	x := h.target([][]int32{text}, [][]int{{1, 2, 3, 4, 5}}, goal{})
	h.Tape.Detach()
	y := h.run(x)
	for i := range y.Rows {
		for j, v := range y.Row(i) {
			if v != x.Row(i % x.Rows)[j] {
				t.Fatalf("row %d: a head makes %g of %g", i, v, x.Row(i % x.Rows)[j])
			}
		}
	}
	row, want := make([]float32, h.net.Hidden), make([]float32, h.net.Hidden)
	for i := range h.net.Vocab {
		h.net.Matrix(2).W.Row(row, i)
		target.Head.W.Row(want, i)
		if !reflect.DeepEqual(row, want) {
			t.Fatalf("row %d of an output matrix is not the target's", i)
		}
	}
}

// The gradient at all places of some texts at once is the sum of the gradients of each place alone,
// in a text that ends with its last head's token. The loss is the weighted sum over the heads.
func TestPlacesAreIndependent(t *testing.T) {
	target := traintest.Target(t, 5)
	cases.Check(t, 40, func(t *rapid.T) {
		r := tiny(1)
		r.Depths, r.ResBlocks = rapid.IntRange(1, 4).Draw(t, "heads"), rapid.IntRange(1, 2).Draw(t, "blocks")
		r.OwnOutputs = rapid.Bool().Draw(t, "own")
		h, err := NewHeads(r.config(&target.Config), target, gemm.F32)
		if err != nil {
			t.Fatal(err)
		}
		h.Init(rapid.Uint64().Draw(t, "seed"))
		o := goal{rapid.Bool().Draw(t, "soft"), rapid.SampledFrom([]float64{1, 0.8}).Draw(t, "decay")}
		length := rapid.IntRange(6, 30).Draw(t, "length")
		texts, places := make([][]int32, rapid.IntRange(1, 3).Draw(t, "texts")), [][]int{}
		for i := range texts {
			texts[i] = rapid.SliceOfN(rapid.Int32Range(0, 58), length, length).Draw(t, "text")
			places = append(places, train.DrawAnchors(1, uint64(i), texts[i], 1, length-2, r.Depths+1,
				rapid.IntRange(1, 6).Draw(t, "places"), 1))
		}
		run := func(texts [][]int32, places [][]int) autograd.Loss {
			h.Tape.Reset()
			h.Tape.Attach()
			l := h.gradient(texts, places, o, 1)
			h.Tape.Backward()
			return l
		}
		h.Params.ZeroGrad()
		got := run(texts, places)
		together := traintest.Gradients(h.Params)
		h.Params.ZeroGrad()
		var want autograd.Loss
		for i, text := range texts {
			for _, p := range places[i] {
				want.Add(run([][]int32{text[:min(length, p+1+r.Depths)]}, [][]int{{p}}))
			}
		}
		if math.Abs(got.Sum-want.Sum) > 1e-4*(1+want.Sum) || got.Rows != want.Rows ||
			math.Abs(got.Weight-want.Weight) > 1e-4*want.Weight {
			t.Fatalf("loss %+v together, %+v one by one", got, want)
		}
		weight := 0.0
		for i := range places {
			for _, p := range places[i] {
				for head := range min(r.Depths, length-1-p) {
					weight += math.Pow(o.decay, float64(head))
				}
			}
		}
		if math.Abs(got.Weight-weight) > 1e-4*weight {
			t.Fatalf("rows of weight %g, want %g", got.Weight, weight)
		}
		traintest.SameGradients(t, together, traintest.Gradients(h.Params), 1e-4)
	})
}

// A recipe that cannot be completed is refused before anything is done.
func TestRecipeRefuses(t *testing.T) {
	shape := traintest.Shape()
	c := shape.Config()
	traintest.Refuses(t, func() Recipe { return tiny(40) }, func(r *Recipe) error { return r.Prepare(traintest.Over(c)) },
		map[string]func(r *Recipe){
			"0 Medusa heads":  func(r *Recipe) { r.Depths = 0 },
			"0 residual":      func(r *Recipe) { r.ResBlocks = 0 },
			"precision":       func(r *Recipe) { r.Precision = "f16" },
			"--places 0":      func(r *Recipe) { r.Places = 0 },
			"loss \"mse\"":    func(r *Recipe) { r.Loss = "mse" },
			"decay":           func(r *Recipe) { r.Decay = math.NaN() },
			"template of 0":   func(r *Recipe) { r.Nodes = 0 },
			"room":            func(r *Recipe) { r.Depths = 17 },
			"--steps 0":       func(r *Recipe) { r.Steps = 0 },
			"1 to 10000000":   func(r *Recipe) { r.Steps = math.MaxInt },
			"4, up to 4096":   func(r *Recipe) { r.Rows = 1 << 30 },
			"--greedy 2":      func(r *Recipe) { r.Short.Greedy = 2 },
			"--greedy NaN":    func(r *Recipe) { r.Long.Greedy = math.NaN() },
			"--rows 3":        func(r *Recipe) { r.Rows = 3 },
			"text \"web\"":    func(r *Recipe) { r.Text = "web" },
			"48 tokens, 47 o": func(r *Recipe) { r.Long.Prompt = 47 },
		})
	target := train.TargetRecipe().Shape
	c, r := target.Config(), NewRecipe()
	if err := r.Prepare(traintest.Over(c)); err != nil {
		t.Error(err)
	}
}

// Flags change what they name in the recipe, and nothing else.
func TestFlags(t *testing.T) {
	three := 3
	decay := 0.8
	rate := float32(2e-3)
	kl := "kl"
	yes := true
	for _, c := range []struct {
		cmd    Flags
		change func(r *Recipe)
	}{
		{Flags{}, func(*Recipe) {}},
		{Flags{Depths: &three, ResBlocks: &three, OwnOutputs: &yes},
			func(r *Recipe) {
				r.Depths = 3
				r.ResBlocks = 3
				r.OwnOutputs = true
			}},
		{Flags{Decay: &decay, Loss: &kl,
			CourseFlags: train.CourseFlags{OptimizerFlags: train.OptimizerFlags{Rate: &rate}}}, func(r *Recipe) {
			r.Decay = 0.8
			r.Loss = "kl"
			r.Optimizer.Rate = 2e-3
		}},
		{Flags{Nodes: &three, TextFlags: train.TextFlags{Steps: &three}, Places: &three}, func(r *Recipe) {
			r.Nodes = 3
			r.Steps = 3
			r.Places = 3
		}},
	} {
		want := NewRecipe()
		c.change(&want)
		if got, err := c.cmd.Recipe(nil); err != nil || !reflect.DeepEqual(got, train.HeadRecipe(&want)) {
			t.Errorf("%+v\nmakes the recipe\n%+v\nwant\n%+v", c.cmd, got, want)
		}
	}
}

// A run continues from a checkpoint only if the recipe's fingerprint is the same. It covers the names
// and the order of fields: changing these makes all runs that were stopped before unable to continue.
func TestFingerprintStays(t *testing.T) {
	r := tiny(7)
	if got := train.Fingerprint(&r); got != "dcf338b7bcad2e57" {
		t.Errorf("fingerprint %q", got)
	}
}
