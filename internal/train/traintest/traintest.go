// Package traintest is shared by tests of heads in training: a tiny job with a target, and
// checks that hold for every head.
package traintest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/grovellm/grove/internal/autograd"
	"github.com/grovellm/grove/internal/drafters/registry"
	"github.com/grovellm/grove/internal/kernels/cpu"
	"github.com/grovellm/grove/internal/kernels/gemm"
	"github.com/grovellm/grove/internal/kernels/par"
	"github.com/grovellm/grove/internal/model"
	_ "github.com/grovellm/grove/internal/testing/testfile" // does not wait for the disk
	"github.com/grovellm/grove/internal/train"
	"github.com/grovellm/grove/internal/train/data"
	"github.com/grovellm/grove/models"
)

// Shape is the shape of the tiny job's target.
func Shape() train.Shape {
	return train.Shape{Vocab: 272, Hidden: 32, Layers: 2, Heads: 2, KVHeads: 1, HeadDim: 16, FFN: 64, Context: 64,
		RopeBase: 10000, NormEps: 1e-6}
}

func HeadText() train.HeadText {
	return train.HeadText{
		Text: "generated", Short: train.Generated{Files: 1, Texts: 40, Prompt: 6, Length: 24, Greedy: 0.5},
		Long:      train.Generated{Files: 1, Texts: 6, Prompt: 30, Length: 48},
		LongEvery: 4, Rows: 4, MicroRows: 2, Repeats: 0.5, Held: train.Generated{Files: 1, Texts: 3, Prompt: 6,
			Length: 24, Greedy: 1},
	}
}

// Basis returns the basis of recipes for the tiny target.
func Basis(steps int) train.Basis {
	return train.Basis{Seed: 3, Precision: "f32", HeadText: HeadText(), Course: train.Course{Steps: steps,
		Schedule: train.Schedule{Warmup: 0.1, Cooldown: 0.5}, Optimizer: train.DefaultOptimizer(), Clip: 1,
		ValidateEvery: 10}}
}

// Over returns a job without text for a target without weights.
func Over(c model.Config) *train.Job {
	return &train.Job{Target: &model.Model{Network: model.Network{Config: c}}}
}

// Learner opens a recipe's head on a job's text.
func Learner[L train.HeadTrainer](t *testing.T, j *train.Job, r train.HeadRecipe, text *train.Corpus) L {
	h, err := r.Open(context.Background(), j, text)
	if err != nil {
		t.Fatal(err)
	}
	return h.(L)
}

// Job returns a job with the tiny text.
func Job(t *testing.T) train.Job {
	t.Helper()
	dir := t.TempDir()
	text, valid := filepath.Join(dir, "sums.txt"), filepath.Join(dir, "held.txt")
	for path, content := range map[string]string{text: Text(1, 600), valid: Text(2, 60)} {
		if err := os.WriteFile(path, []byte(content), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	return train.Job{Dir: filepath.Join(dir, "job"), Sources: []data.Source{{Name: "sums", Path: text, Weight: 1}},
		Validation: []data.Source{{Name: "held", Path: valid}}, Threads: 1, SaveEvery: time.Hour}
}

// JobWithTarget returns such a job with a trained target.
func JobWithTarget(t *testing.T) train.Job {
	t.Helper()
	j := Job(t)
	if err := train.TrainTarget(context.Background(), j, Recipe(Shape(), 60)); err != nil {
		t.Fatal(err)
	}
	if _, err := j.OpenTarget(); err != nil { // for its vocabulary
		t.Fatal(err)
	}
	if err := j.Target.Close(); err != nil {
		t.Fatal(err)
	}
	j.Target = open(t, filepath.Join(j.Dir, "target", "model-f32.gguf"), j.Threads)
	j.Verifier = "org/target"
	return j
}

// Target returns a target with random weights in F32 and a vocabulary of 60.
func Target(t *testing.T, seed uint64) *model.Model {
	t.Helper()
	shape := train.Shape{Vocab: 60, Hidden: 16, Layers: 2, Heads: 2, KVHeads: 1, HeadDim: 8, FFN: 24, Context: 64,
		RopeBase: 10000, NormEps: 1e-6}
	target, err := train.NewNetwork(shape, Pool(t), gemm.F32)
	if err != nil {
		t.Fatal(err)
	}
	target.Init(seed)
	dir := filepath.Join(t.TempDir(), "hf")
	if err := target.WriteFolder(dir, 0); err != nil {
		t.Fatal(err)
	}
	return open(t, dir, 2)
}

// Shipped returns the target that is embedded in grove.
func Shipped(t *testing.T) *model.Model {
	m, err := model.OpenGGUF("embedded", models.Target(), model.Options{Threads: 1})
	return closed(t, m, err)
}

func open(t *testing.T, path string, threads int) *model.Model {
	t.Helper()
	m, err := model.Open(path, model.Options{Threads: threads})
	return closed(t, m, err)
}

// closed returns a model, and closes it at the end of the test.
func closed(t *testing.T, m *model.Model, err error) *model.Model {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := m.Close(); err != nil {
			t.Error(err)
		}
	})
	return m
}

// Opened opens an exported head.
func Opened[H any](t *testing.T, j *train.Job, name, file string, m *model.Model,
	open func(registry.Head, registry.Target) (H, error)) H {
	t.Helper()
	h, err := open(registry.Head{Name: filepath.Join(j.Dir, name, file)}, registry.Target{Model: m})
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// Watched returns a job that records the progress of the first and the last step for which counts holds.
func Watched(j train.Job, counts func(p train.Progress) bool) (_ train.Job, first, last *train.Progress) {
	first, last = new(train.Progress), new(train.Progress)
	j.Report = func(p train.Progress) {
		if !counts(p) {
			return
		}
		if first.Step == 0 {
			*first = p
		}
		*last = p
	}
	return j, first, last
}

func EveryStep(train.Progress) bool       { return true }
func WhereMeasured(p train.Progress) bool { return len(p.Validation) > 0 }
func WholeFile(b []byte) []byte           { return b }
func WithoutTheName(b []byte) []byte      { return b[len(b)/2:] } // the metadata at the front has the name

// Interrupted trains an existing head again with interruptions after some steps and another number
// of threads. The parts of its files that same keeps must equal the first head's.
func Interrupted(t *testing.T, j train.Job, name string, steps []int, same func(b []byte) []byte, files []string,
	make func(ctx context.Context, j train.Job, name string) error) {
	t.Helper()
	j.Threads = 3
	for _, at := range steps {
		ctx, stop := context.WithCancel(context.Background())
		j.Report = func(p train.Progress) {
			if p.Step == at {
				stop()
			}
		}
		if err := make(ctx, j, name+"-2"); !errors.Is(err, context.Canceled) {
			t.Fatalf("%s: a run told to stop: %v", name, err)
		}
	}
	j.Report = nil
	if err := make(context.Background(), j, name+"-2"); err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		var content [2][]byte
		for i, name := range []string{name, name + "-2"} {
			b, err := os.ReadFile(filepath.Join(j.Dir, name, file))
			if err != nil {
				t.Fatal(err)
			}
			content[i] = same(b)
		}
		if !bytes.Equal(content[0], content[1]) {
			t.Errorf("%s: a run that was Interrupted ends in another %s", name, file)
		}
	}
}

// Refuses checks that each change that spoils a good recipe causes an error with the
// words that are the change's key.
func Refuses[R any](t *testing.T, good func() R, check func(r *R) error, spoil map[string]func(r *R)) {
	t.Helper()
	for want, change := range spoil {
		r := good()
		if err := check(&r); err != nil {
			t.Fatal(err)
		}
		change(&r)
		if err := check(&r); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want an error with %q", err, want)
		}
	}
}

// Gradients returns the gradients of all parameters.
func Gradients(params *autograd.Params) (all []float32) {
	for _, p := range params.All() {
		all = append(all, p.Grad...)
	}
	return all
}

// SameGradients checks that Gradients summed in another order are the same, up to a
// share of the largest.
func SameGradients(t interface {
	Helper()
	Fatalf(format string, args ...any)
}, together, alone []float32, share float64) {
	t.Helper()
	size := 0.0
	for _, v := range together {
		size = max(size, math.Abs(float64(v)))
	}
	for i, v := range alone {
		if d := math.Abs(float64(v - together[i])); d > share*size {
			t.Fatalf("gradient %d is %g together, %g one by one", i, together[i], v)
		}
	}
}

// Text returns text with something to learn: sums, written out.
func Text(seed uint64, lines int) string {
	r := rand.New(rand.NewPCG(seed, 1))
	var b strings.Builder
	for range lines {
		x, y := r.IntN(20), r.IntN(20)
		fmt.Fprintf(&b, "the sum of %d and %d is %d\n", x, y, x+y)
	}
	return b.String()
}

// Recipe returns a recipe for a target of a shape.
func Recipe(s train.Shape, steps int) train.Recipe {
	if cpu.Active() == cpu.Portable { // thirty times slower
		steps = max(12, steps/4)
	}
	return train.Recipe{Shape: s, Seed: 7, Precision: "f32", Length: 16, Rows: 8, MicroRows: 4, Steps: steps,
		LongFrom: 0.5, LongLength: 32,
		Schedule: train.Schedule{Warmup: 0.1, Cooldown: 0.5}, Optimizer: train.DefaultOptimizer(), Clip: 1,
		ValidateEvery: 5, ValidateRows: 4}
}

// Pool returns a pool of two workers.
func Pool(t *testing.T) *par.Pool {
	p := par.New(2)
	t.Cleanup(p.Close)
	return p
}
