package train

import (
	"bytes"
	"context"
	"errors"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/grovellm/grove/draft"
	"github.com/grovellm/grove/internal/gemm"
	"github.com/grovellm/grove/internal/par"
	"github.com/grovellm/grove/internal/train/bpe"
	"github.com/grovellm/grove/internal/train/data"
	"github.com/grovellm/grove/model"
	"github.com/grovellm/grove/nn"
	"github.com/grovellm/grove/tokenizer"
)

// What tests of heads share: a tiny job with a target, and the laws that hold of every head.

// tinyTokenizer is of a vocabulary of 272 tokens.
func tinyTokenizer(t testing.TB) *tokenizer.Tokenizer {
	t.Helper()
	o := bpe.Options{Size: 272}
	c, err := bpe.NewCounter(o)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Add([]string{tinyText(1, 400)}, 1); err != nil {
		t.Fatal(err)
	}
	v, err := bpe.Train(context.Background(), c, o)
	if err != nil {
		t.Fatal(err)
	}
	tok, err := v.Tokenizer()
	if err != nil {
		t.Fatal(err)
	}
	return tok
}

// tinyShape is that of the tiny job's target.
func tinyShape() Shape {
	return Shape{Vocab: 272, Hidden: 32, Layers: 2, Heads: 2, KVHeads: 1, HeadDim: 16, FFN: 64, Context: 64, RopeBase: 10000, NormEps: 1e-6}
}

func tinyHeadText() HeadText {
	return HeadText{
		Text: "generated", Short: Generated{Files: 1, Texts: 40, Prompt: 6, Length: 24, Greedy: 0.5}, Long: Generated{Files: 1, Texts: 6, Prompt: 30, Length: 48},
		LongEvery: 4, Rows: 4, MicroRows: 2, Circles: 0.5, Held: Generated{Files: 1, Texts: 3, Prompt: 6, Length: 24, Greedy: 1},
	}
}

// tinyJob is a job of the tiny text.
func tinyJob(t *testing.T) Job {
	t.Helper()
	dir := t.TempDir()
	text, valid := filepath.Join(dir, "sums.txt"), filepath.Join(dir, "held.txt")
	for path, content := range map[string]string{text: tinyText(1, 600), valid: tinyText(2, 60)} {
		if err := os.WriteFile(path, []byte(content), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	return Job{Dir: filepath.Join(dir, "job"), Sources: []data.Source{{Name: "sums", Path: text, Weight: 1}},
		Validation: []data.Source{{Name: "held", Path: valid}}, Threads: 2, SaveEvery: time.Hour}
}

// tinyJobWithTarget is one whose target is trained.
func tinyJobWithTarget(t *testing.T) (Job, Shape) {
	t.Helper()
	j := tinyJob(t)
	if err := Target(context.Background(), j, tinyRecipe(tinyShape(), 60)); err != nil {
		t.Fatal(err)
	}
	return j, tinyShape()
}

// tinyTarget is a target of random weights, with a vocabulary of 60.
func tinyTarget(t *testing.T, seed uint64) (*Network, Shape, *par.Pool) {
	t.Helper()
	pool := nnPool(t)
	shape := Shape{Vocab: 60, Hidden: 16, Layers: 2, Heads: 2, KVHeads: 1, HeadDim: 8, FFN: 24, Context: 64, RopeBase: 10000, NormEps: 1e-6}
	target, err := NewNetwork(shape, pool, gemm.F32)
	if err != nil {
		t.Fatal(err)
	}
	target.Init(seed)
	return target, shape, pool
}

// targetOf opens a job's target as it serves.
func targetOf(t *testing.T, j *Job) *model.Model {
	t.Helper()
	m, err := model.Open(filepath.Join(j.Dir, "target", "model-f32.gguf"), model.Options{Threads: 1})
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

// opened opens what a head was exported as.
func opened[H any](t *testing.T, j *Job, name, file string, m *model.Model, open func(draft.Head, draft.Target) (H, error)) H {
	t.Helper()
	h, err := open(draft.Head{Name: filepath.Join(j.Dir, name, file)}, draft.Target{Model: m})
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// watched is a job that keeps the progress of its first step that count holds for, and of its last.
func watched(j Job, counts func(p Progress) bool) (_ Job, first, last *Progress) {
	first, last = new(Progress), new(Progress)
	j.Report = func(p Progress) {
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

func everyStep(Progress) bool        { return true }
func whereMeasured(p Progress) bool  { return len(p.Validation) > 0 }
func wholeFile(b []byte) []byte      { return b }
func withoutTheName(b []byte) []byte { return b[len(b)/2:] } // which metadata has, at the front

// interrupted makes a head that is there again, stops after some steps and goes on, on another number of threads: files of it are those of
// the first, as far as same keeps of them.
func interrupted(t *testing.T, j Job, name string, steps []int, same func(b []byte) []byte, files []string, make func(ctx context.Context, j Job, name string) error) {
	t.Helper()
	j.Threads = 3
	for _, at := range steps {
		ctx, stop := context.WithCancel(context.Background())
		j.Report = func(p Progress) {
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
			t.Errorf("%s: a run that was interrupted ends in another %s", name, file)
		}
	}
}

// refuses wants an error of a good recipe that was spoilt, with the words under which the change is given.
func refuses[R any](t *testing.T, good func() R, check func(r *R) error, spoil map[string]func(r *R)) {
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

// gradients are those of all parameters.
func gradients(params *nn.Params) (all []float32) {
	for _, p := range params.All() {
		all = append(all, p.Grad...)
	}
	return all
}

// sameGradients wants gradients that were summed in another order to be the same, up to a share of the largest.
func sameGradients(t interface {
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

// Whether a checkpoint can be gone on with is for the fingerprint of its recipe to say, which is one of names and order of fields: a
// change of these turns all runs away that were stopped before it.
func TestFingerprintsStay(t *testing.T) {
	head, eagle, specblock, router, target := tinyHead(true, 7), tinyEagle(2, 7), tinySpecBlock(7), tinyRouter(7), tinyRecipe(Shape{Vocab: 300, Hidden: 32}, 9)
	got := []string{fingerprint(&head), fingerprint(&eagle), fingerprint(&specblock), fingerprint(&router), fingerprint(&target)}
	want := []string{"53f4f75d5bcf3e45", "5eb89d6850f82af8", "34f54910b77eb992", "793e523fbe00df9b", "e6e6b766a28a37ad"}
	if !slices.Equal(got, want) {
		t.Errorf("fingerprints %q, want %q", got, want)
	}
}
