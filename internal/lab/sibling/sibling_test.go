package sibling_test

import (
	"context"
	"path/filepath"
	"testing"

	"github.com/grovellm/grove/gguf"
	"github.com/grovellm/grove/internal/drafters/eagle"
	"github.com/grovellm/grove/internal/drafters/registry"
	"github.com/grovellm/grove/internal/drafters/shortlist"
	"github.com/grovellm/grove/internal/lab/sibling"
	"github.com/grovellm/grove/internal/model"
	learn "github.com/grovellm/grove/internal/train/eagle"
	"github.com/grovellm/grove/internal/train/traintest"
)

// One call makes a family of a vocabulary of its own: a target, a head that is one of this target,
// and a router of this head. A recipe that cannot be followed to the end is refused before the
// first step.
func TestTrain(t *testing.T) {
	r := sibling.NewRecipe()
	c := r.Target.Shape.Config()
	if r.Target.Check() != nil || r.Head.Check(&c) != nil || r.Router.Prepare(nil) != nil || r.Target.Shape.Vocab != 32768 {
		t.Errorf("the recipe is no recipe: %v %v %v, or not of 32768 tokens but %d", r.Target.Check(),
			r.Head.Check(&c), r.Router.Prepare(nil), r.Target.Shape.Vocab)
	}
	j, shape := traintest.Job(t), traintest.Shape()
	shape.Vocab = 270
	r = sibling.Recipe{Target: traintest.Recipe(shape, 5), Head: learn.Recipe{
		Version: 3, Heads: 4, KVHeads: 2, HeadDim: 16, FFN: 64, RopeBase: 10000, Taps: []int{0, 1, 2},
		From: []int{1}, Basis: traintest.Basis(2), Places: 12, TestSteps: 4, Later: 5, Decay: 0.8,
	}, Router: learn.RouterRecipe{
		Size: 16, Listed: 3, Width: 32, Top: 4, Basis: traintest.Basis(2), Places: 8, Later: 3, DraftSteps: 4,
	}}
	r.Head.Optimizer.MuonRate = 0.01
	r.Router.Optimizer.Muon, r.Router.Optimizer.Rate = false, 1e-2
	if err := sibling.Train(context.Background(), j, r); err != nil {
		t.Fatal(err)
	}
	m, err := model.Open(filepath.Join(j.Dir, "target", "model-q8_0.gguf"), model.Options{Threads: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	target := registry.Target{Vocab: m.Config.Vocab, Context: m.Context(), Model: m}
	if h, err := eagle.Open(registry.Head{Name: filepath.Join(j.Dir, "eagle", "model-q8_0.gguf")}, target); err != nil ||
		h.Vocab != 270 {
		t.Errorf("the head: %v", err)
	}
	f, err := gguf.Open(filepath.Join(j.Dir, "router", "model-q8_0.gguf"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if router, err := shortlist.ReadRouter(f); err != nil || router.Vocab != 270 {
		t.Errorf("the router: %+v, %v", router, err)
	}
	r.Router.Listed, j.Dir = 0, filepath.Join(j.Dir, "none")
	if err := sibling.Train(context.Background(), j, r); err == nil {
		t.Error("a recipe with a router that lists nothing is followed")
	}
}
