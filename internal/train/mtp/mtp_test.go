package mtp

import (
	"context"
	"math"
	"reflect"
	"slices"
	"testing"

	layer "github.com/grovellm/grove/internal/drafters/mtp"
	"github.com/grovellm/grove/internal/train"
	"github.com/grovellm/grove/internal/train/eagle"
	"github.com/grovellm/grove/internal/train/traintest"
)

// tiny returns a recipe for traintest's tiny target.
func tiny(steps int) eagle.Recipe {
	r := newRecipe()
	r.Heads = 4
	r.KVHeads = 2
	r.HeadDim = 16
	r.FFN = 64
	r.Taps = []int{2}
	r.From = nil
	r.Basis = traintest.Basis(steps)
	r.Places = 12
	r.TestSteps = 4
	r.Later = 5
	r.Optimizer.MuonRate = 0.01
	return r
}

// A layer learns the target's predictions. An interrupted run ends with the weights of an uninterrupted
// one, also on another number of threads. The exported file opens as a layer of the target.
func TestTrain(t *testing.T) {
	j, r := traintest.JobWithTarget(t), tiny(30)
	watched, first, last := traintest.Watched(j, traintest.WhereMeasured)
	if err := watched.TrainHead(context.Background(), "mtp", &Recipe{r}); err != nil {
		t.Fatal(err)
	}
	if last.Step != r.Steps || last.Validation["held"] > 0.9*first.Validation["held"] || last.Figures["held chain"] <= 1 {
		t.Errorf("held out %v at first, %v %v at step %d", first.Validation, last.Validation, last.Figures, last.Step)
	}
	traintest.Interrupted(t, j, "mtp", []int{13}, traintest.WholeFile, []string{"hf/model.safetensors"},
		func(ctx context.Context, j train.Job, name string) error {
			return j.TrainHead(ctx, name, &Recipe{r})
		})
	for _, file := range []string{"model-f32.gguf", "model-q8_0.gguf", "hf"} {
		h := traintest.Opened(t, &j, "mtp", file, j.Target, layer.Open)
		if h.StateFirst || h.Arch != "qwen3" || !slices.Equal(h.Taps, []int{2}) {
			t.Errorf("%s: the layer opens as %+v", file, h.Config)
		}
	}
}

// A recipe that cannot be completed is refused; the usual one is not. Flags change what they name
// in the recipe, and nothing else.
func TestFlags(t *testing.T) {
	m := traintest.Shipped(t)
	two := 2
	half := 0.5
	source := "go"
	for _, c := range []struct {
		cmd    Flags
		change func(r *eagle.Recipe)
	}{
		{Flags{}, func(*eagle.Recipe) {}},
		{Flags{TestSteps: &two, Decay: &half}, func(r *eagle.Recipe) { r.TestSteps, r.Decay = 2, 0.5 }},
		{Flags{From: []int{-1}, DraftVocab: &two, TextFlags: train.TextFlags{Only: &source}}, func(r *eagle.Recipe) {
			r.From = nil
			r.DraftVocab = 2
			r.Only = "go"
		}},
	} {
		want := newRecipe()
		c.change(&want)
		got, err := c.cmd.Recipe(m)
		if err != nil || !reflect.DeepEqual(got, train.HeadRecipe(&Recipe{want})) {
			t.Errorf("%+v\nmakes the recipe\n%+v\nwant\n%+v", c.cmd, got, want)
		}
		if err := got.Prepare(traintest.Over(m.Config)); err != nil {
			t.Error(err)
		}
	}
	bad := newRecipe()
	bad.Decay = math.NaN()
	if bad.Check(&m.Config) == nil {
		t.Error("a decay that is no number is taken")
	}
}
