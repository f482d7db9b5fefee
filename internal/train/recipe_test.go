package train_test

import (
	"context"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/grovellm/grove/internal/autograd"
	"github.com/grovellm/grove/internal/kernels/simd"
	"github.com/grovellm/grove/internal/model"
	"github.com/grovellm/grove/internal/train"
	"github.com/grovellm/grove/internal/train/traintest"
)

// The whole way on a tiny model: vocabulary, target, text of the target's own, draft model. What is
// exported runs in package model and gives the logits of the network that was trained, and a second
// call finds all done.
func TestJob(t *testing.T) {
	j := traintest.Job(t)
	shape := traintest.Shape()
	steps := 0
	j.Report = func(train.Progress) { steps++ }
	r := traintest.Recipe(shape, 60)
	ctx := context.Background()
	small := r
	small.Shape.Layers = 1
	small.Shape.FFN = 32
	small.Steps = 40
	small.Distill, small.Precision = 0.8, "bf16"
	small.Generated = train.Generated{Files: 2, Texts: 70, Prompt: 5, Length: 20, Weight: 0.5}
	for range 2 {
		if err := train.TrainTarget(ctx, j, r); err != nil {
			t.Fatal(err)
		}
		if err := train.TrainDraft(ctx, j, small, shape); err != nil {
			t.Fatal(err)
		}
		if steps != r.Steps+small.Steps {
			t.Fatalf("%d steps, want %d, and none when all is done", steps, r.Steps+small.Steps)
		}
	}
	for stage, s := range map[string]train.Shape{"target": shape, "draft": small.Shape} {
		from := filepath.Join(j.Dir, stage)
		if card, err := os.ReadFile(filepath.Join(from, "card.md")); err != nil ||
			!strings.Contains(string(card), "| sums |") {
			t.Errorf("%s: the table of its training text: %v\n%s", stage, err, card)
		}
		net, err := train.NewNetwork(s, traintest.Pool(t), 0)
		if err != nil {
			t.Fatal(err)
		}
		if err := net.Load(filepath.Join(from, "hf")); err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"model-f32.gguf", "model-q8_0.gguf", "hf"} {
			m, err := model.Open(filepath.Join(from, name), model.Options{Threads: 1})
			if err != nil {
				t.Fatal(err)
			}
			tokens := []int32{1, 2, 3, 50, 60}
			p, c := m.NewPass(), m.NewCache()
			if err := p.Prefill(ctx, c, tokens, true); err != nil {
				t.Fatal(err)
			}
			// The network's loss for a token is its log-probability: of two tokens, their logits'
			// difference.
			logits := p.Logits(0, 0)
			lse := float64(simd.LogSumExp(logits))
			for _, id := range []int32{7, 99} {
				target := []int32{-1, -1, -1, -1, id}
				got := net.Loss(tokens, len(tokens), autograd.Targets{Token: target}).Sum
				want, tolerance := lse-float64(logits[id]), 1e-5
				if name == "model-q8_0.gguf" {
					tolerance = 0.1
				}
				if math.Abs(got-want) > tolerance*(1+want) {
					t.Errorf("%s/%s: loss of token %d is %g, in the network %g", stage, name, id, want, got)
				}
			}
			c.Free()
			if err := m.Close(); err != nil {
				t.Error(err)
			}
		}
	}
}
