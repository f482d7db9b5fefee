package draft

import (
	"context"
	"math"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/grovellm/grove/gguf"
	"github.com/grovellm/grove/internal/drafters/drafttest"
	_ "github.com/grovellm/grove/internal/drafters/lookup" // draft models are compared with it
	"github.com/grovellm/grove/internal/drafters/registry"
	"github.com/grovellm/grove/internal/files/ggufkeys"
	"github.com/grovellm/grove/internal/kernels/gemm"
	"github.com/grovellm/grove/internal/model"
	"github.com/grovellm/grove/internal/model/synth"
	"github.com/grovellm/grove/internal/speculate"
	"github.com/grovellm/grove/internal/train"
	"github.com/grovellm/grove/internal/train/traintest"
	"github.com/grovellm/grove/sample"
	"github.com/grovellm/grove/tensor"
	"github.com/grovellm/grove/tokenizer"
)

// tiny returns a recipe for the tiny target.
func tiny(steps int) Recipe {
	shape := traintest.Shape()
	c := shape.Config()
	r := NewRecipe(&c)
	r.From = []int{1}
	r.Precision = "f32"
	r.HeadText = traintest.HeadText()
	r.Held.Length = 32
	r.Places = 12
	r.Steps = steps
	r.ValidateEvery = 10
	r.Optimizer.MuonRate = 0.01
	return r
}

// A draft model learns the target's predictions, and makes them better than the layers that it starts from. An
// interrupted run ends with the weights of an uninterrupted one, also on another number of threads. The exported
// file is a whole model with the target's tokenizer, which drafts without changing the target's output.
func TestTrain(t *testing.T) {
	j := traintest.JobWithTarget(t)
	for name, precision := range map[string]string{"exact": "f32", "rounded": "bf16"} {
		r := tiny(40)
		r.Precision = precision
		text, err := j.OpenCorpus(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		l := traintest.Learner[*learner](t, &j, &r, text)
		losses, figures, err := l.Validate()
		if err != nil {
			t.Fatal(err)
		}
		if err := text.Close(); err != nil {
			t.Fatal(err)
		}
		alone, first, last := traintest.Watched(j, traintest.EveryStep)
		if err := alone.TrainHead(context.Background(), name, &r); err != nil {
			t.Fatal(err)
		}
		if last.Step != r.Steps || last.Loss > 0.8*first.Loss || last.Validation["held"] > 0.5*losses["held"] ||
			last.Figures["held depth 01"] <= figures["held depth 01"] || last.Figures["held chain"] <= figures["held chain"] ||
			last.Figures["held tree of 60"] <= figures["held tree of 60"] {
			t.Errorf("%s: loss %.3f at first, %.3f at step %d; held out %v %v, before training %v %v", name, first.Loss,
				last.Loss, last.Step, last.Validation, last.Figures, losses, figures)
		}
		traintest.Interrupted(t, j, name, []int{17}, traintest.WithoutTheName, []string{"model-f32.gguf", "model-q8_0.gguf"},
			func(ctx context.Context, j train.Job, name string) error { return j.TrainHead(ctx, name, &r) })
		other := r
		other.Soft = 0.5
		if err := j.TrainHead(context.Background(), name, &other); err == nil {
			t.Errorf("%s: another recipe goes on with its checkpoint", name)
		}
		for _, file := range []string{"model-f32.gguf", "model-q8_0.gguf"} {
			drafts(t, &j, filepath.Join(j.Dir, name, file), 1.1)
		}
	}
}

// A draft model can take unchanged parts from targets of any file type, with biases, norms of
// another kind, a separate output matrix and rotation factors.
func TestTargets(t *testing.T) {
	of := traintest.Job(t)
	for i, name := range []string{"tiny-llama3", "tiny-gptneox", "tiny-qwen2", "tiny-minicpm", "tiny-qwen3"} {
		s, err := synth.Lookup(name)
		if err != nil {
			t.Fatal(err)
		}
		j := train.Job{Dir: t.TempDir(), Sources: of.Sources, Threads: 1, Vocabulary: filepath.Join(t.TempDir(), "m.gguf")}
		o := synth.Options{Type: []tensor.Type{tensor.Q4_0, tensor.F32, tensor.BF16}[i%3], Seed: 5}
		if err := synth.Write(context.Background(), j.Vocabulary, s, o); err != nil {
			t.Fatal(err)
		}
		if j.Target, err = model.Open(j.Vocabulary, model.Options{Threads: 1}); err != nil {
			t.Fatal(err)
		}
		r := tiny(1)
		r.ValidateEvery = 1
		if err := j.TrainHead(context.Background(), "draft-model", &r); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		file := []string{"model-f32.gguf", "model-q8_0.gguf"}[i%2]
		drafts(t, &j, filepath.Join(j.Dir, "draft-model", file), 1)
		if err := j.Target.Close(); err != nil {
			t.Error(err)
		}
	}
}

// drafts checks that a file is a draft model of a job's target, with one layer and at least tau tokens per round.
func drafts(t *testing.T, j *train.Job, file string, tau float64) {
	t.Helper()
	target := j.Target
	m, err := model.Open(file, model.Options{Threads: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	want := target.Config
	want.Layers = 1
	want.Name = m.Config.Name
	if !reflect.DeepEqual(m.Config, want) {
		t.Errorf("%s is of the shape %+v, want %+v", file, m.Config, want)
	}
	var metas [2]*gguf.File
	for i, path := range []string{j.Vocabulary, file} {
		if metas[i], err = gguf.Open(path); err != nil {
			t.Fatal(err)
		}
		defer metas[i].Close()
	}
	for key, value := range metas[0].Meta() {
		if got, _ := metas[1].Lookup(key); strings.HasPrefix(key, "tokenizer.") && !reflect.DeepEqual(got, value) {
			t.Errorf("%s: %s is %v, the target's %v", file, key, got, value)
		}
	}
	if n := ggufkeys.Of(metas[1]).Int(want.Arch + ".block_count"); n != 1 {
		t.Errorf("%s has %d blocks", file, n)
	}
	with := drafttest.As(target)
	with.Draft = m
	prompts := [][]int32{target.Tokenizer.Encode("the sum of 3 and 4", tokenizer.EncodeOptions{}), {1, 5, 9}}
	for _, w := range metas[0].Tensors {
		if strings.HasPrefix(w.Name, "blk.") {
			continue
		}
		if got, ok := metas[1].Tensor(w.Name); !ok || got.Type != w.Type || !slices.Equal(got.Shape, w.Shape) {
			t.Errorf("%s has %s as %v, the target as %v", file, w.Name, got, w)
		}
	}
	for _, p := range []sample.Params{{}, {Temperature: 1, Seed: 3}} {
		var texts [][][]int32
		for _, name := range []string{"lookup", "linear:k=3", "dynamic:k=4", "dynatree"} {
			d, err := registry.New(name, with)
			if err != nil {
				t.Fatal(err)
			}
			out, stats := drafttest.Generate(t, target, d, speculate.Options{Uncontrolled: true}, p, prompts)
			texts = append(texts, out)
			if !reflect.DeepEqual(out, texts[0]) {
				t.Errorf("%s, %s, temperature %g: %v, without the draft model %v", file, name, p.Temperature, out, texts[0])
			}
			if name != "lookup" && stats.Tau() < tau {
				t.Errorf("%s, %s, temperature %g: %.2f tokens a round", file, name, p.Temperature, stats.Tau())
			}
		}
	}
}

// Layers of every architecture are either refused with a reason or trained: a draft model of all
// layers predicts, to the bit, what the target predicts, and its gradient is that of its loss.
func TestArchitectures(t *testing.T) {
	trained := map[string]bool{}
	refused := map[string]string{
		"mixtral": "experts", "gpt-oss": "experts", "deepseek2": "latent", "granitehybrid": "recurrent",
		"falcon-h1": "recurrent",
		"gemma2":    "an activation", "gemma4": "a table", "exaone4": "a window", "hunyuan-dense": "after rotation",
		"phi3": "in one tensor",
	}
	for _, s := range synth.Small() {
		path := filepath.Join(t.TempDir(), "m.gguf")
		if err := synth.Write(context.Background(), path, s, synth.Options{Type: tensor.F32, Seed: 5}); err != nil {
			t.Fatal(err)
		}
		m, err := model.Open(path, model.Options{Threads: 1})
		if err != nil {
			t.Fatal(err)
		}
		r := tiny(1)
		r.From = []int{0}
		err = r.Prepare(&train.Job{Target: m, Vocabulary: path})
		switch want := refused[s.Name]; {
		case err != nil && !(strings.Contains(err.Error(), s.Arch) && strings.Contains(err.Error(), want)):
			t.Errorf("%s is refused: %v; want an error with %q", s.Name, err, want)
		case err == nil && want != "":
			t.Errorf("%s is not refused: want an error with %q", s.Name, want)
		}
		if err == nil {
			trained[s.Name] = true
			learns(t, s.Name, m)
		}
		if err := m.Close(); err != nil {
			t.Error(err)
		}
	}
	for _, name := range []string{"llama", "qwen2", "qwen3", "gptneox", "minicpm", "stablelm"} {
		if !trained[name] {
			t.Errorf("%s is refused", name)
		}
	}
}

// learns compares draft models with their target, and their gradients with finite differences of their loss.
func learns(t *testing.T, name string, m *model.Model) {
	t.Helper()
	all := make([]int, m.Config.Layers)
	for i := range all {
		all[i] = i
	}
	texts := [][]int32{{1, 2, 3, 4, 5, 6, 7, 8}, {9, 8, 7, 6, 5, 4, 3, 2}}
	places := [][]int{{2, 3, 5, 6}, {1, 4}}
	d, err := New(m, all, gemm.F32)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	d.begin(all)
	d.Tape.Detach()
	d.loss(texts, places, 1, 1)
	x := d.Target.Read(texts)
	last := len(texts[0]) - 1
	for i := range texts {
		for p := range last {
			if !slices.Equal(d.states.Mat(len(texts)*last, x.Cols).Row(i*last+p), x.Row(i*len(texts[0])+p)) {
				t.Fatalf("%s: text %d: the row at %d of a draft model of all layers is not the target's", name, i, p)
			}
		}
	}

	if d, err = New(m, all[1:], gemm.F32); err != nil {
		t.Fatal(err)
	}
	d.begin(all[1:])
	d.Tape.Reset()
	d.Tape.Attach()
	d.loss(texts, places, 0.5, 1)
	d.Tape.Backward()
	d.Tape.Detach()
	length := train.Length(traintest.Gradients(d.Params))
	at := func(h float64) float64 {
		d.begin(all[1:])
		for _, p := range d.Params.All() {
			for i, g := range p.Grad {
				p.Data[i] += float32(h / length * float64(g))
			}
		}
		d.Pack()
		return d.loss(texts, places, 0.5, 1).Sum
	}
	const h = 1. / 256
	if got := (at(h) - at(-h)) / (2 * h); math.Abs(got-length) > 0.02*length {
		t.Errorf("%s: the loss rises by %g along its gradient, whose length is %g", name, got, length)
	}
}

// A recipe that cannot be completed is refused before anything is done.
func TestRecipeRefuses(t *testing.T) {
	j := train.Job{Target: traintest.Target(t, 3), Vocabulary: "target.gguf"}
	traintest.Refuses(t, func() Recipe { return tiny(40) }, func(r *Recipe) error { return r.Prepare(&j) },
		map[string]func(r *Recipe){
			"of 0 layers":   func(r *Recipe) { r.From = nil },
			"of 2 layers":   func(r *Recipe) { r.From = []int{0, 1} },
			"no block 2":    func(r *Recipe) { r.From = []int{2} },
			"no block -1":   func(r *Recipe) { r.From = []int{-1} },
			"precision":     func(r *Recipe) { r.Precision = "f16" },
			"--places 0":    func(r *Recipe) { r.Places = 0 },
			"a share NaN":   func(r *Recipe) { r.Soft = float32(math.NaN()) },
			"no room for 8": func(r *Recipe) { r.Held.Prompt = 24 },
			"--steps 0":     func(r *Recipe) { r.Steps = 0 },
		})
	j.Vocabulary = ""
	r := tiny(40)
	if err := r.Prepare(&j); err == nil || !strings.Contains(err.Error(), "grove convert") {
		t.Errorf("a target without a GGUF file: %v", err)
	}
}

// Flags change what they name in the recipe, and nothing else.
func TestFlags(t *testing.T) {
	m := traintest.Shipped(t)
	three := 3
	half, rate := float32(0.5), float32(2e-3)
	for _, c := range []struct {
		cmd    Flags
		change func(r *Recipe)
	}{
		{Flags{}, func(*Recipe) {}},
		{Flags{From: []int{2, 5}, Places: &three}, func(r *Recipe) { r.From, r.Places = []int{2, 5}, 3 }},
		{Flags{Soft: &half, TextFlags: train.TextFlags{Steps: &three}}, func(r *Recipe) { r.Soft, r.Steps = 0.5, 3 }},
		{Flags{OptimizerFlags: train.OptimizerFlags{Rate: &rate}}, func(r *Recipe) { r.Optimizer.MuonRate = 2e-3 }},
	} {
		want := NewRecipe(&m.Config)
		c.change(&want)
		if got, err := c.cmd.Recipe(m); err != nil || !reflect.DeepEqual(got, train.HeadRecipe(&want)) {
			t.Errorf("%+v\nmakes the recipe\n%+v\nwant\n%+v", c.cmd, got, want)
		}
		j := train.Job{Target: m, Vocabulary: "target.gguf"}
		if err := j.CheckHead(&c.cmd); err != nil {
			t.Error(err)
		}
	}
}

// A run continues from a checkpoint only if the recipe's fingerprint is the same. It covers the names
// and the order of fields: changing these makes all runs that were stopped before unable to continue.
func TestFingerprintStays(t *testing.T) {
	r := tiny(7)
	if got := train.Fingerprint(&r); got != "4d5edd05d209c3d9" {
		t.Errorf("fingerprint %q", got)
	}
}
