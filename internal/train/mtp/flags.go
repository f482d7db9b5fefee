// Package mtp trains multi-token prediction layers for models that have none. They are EAGLE heads
// of version eagle.Native, trained by EAGLE-3's training-time test, so that the single layer can go
// on drafting from its own states.
package mtp

import (
	"context"
	"fmt"

	head "github.com/grovellm/grove/internal/drafters/eagle"
	layer "github.com/grovellm/grove/internal/drafters/mtp"
	"github.com/grovellm/grove/internal/model"
	"github.com/grovellm/grove/internal/train"
	"github.com/grovellm/grove/internal/train/eagle"
)

// Recipe is the recipe of an EAGLE head that is saved as a multi-token prediction layer.
type Recipe struct{ eagle.Recipe }

// Open returns the head in its initial state, and generates texts that do not exist yet.
func (r *Recipe) Open(ctx context.Context, j *train.Job, text *train.Corpus) (train.HeadTrainer, error) {
	return r.OpenAs(ctx, j, text, layer.As)
}

// Flags vary the usual recipe: values that are not given are the recipe's.
type Flags struct {
	Name string `recipe:"-" help:"Folder below --dir for this head (${default})." default:"mtp" placeholder:"NAME"`

	train.TextFlags
	train.CourseFlags
	TestSteps *int     `help:"Depths to train on; all but the first use the layer's states." placeholder:"N" group:"Training"`
	Decay     *float64 `needs:"TestSteps!=1" help:"Depth s, from 0, has weight D^s." placeholder:"D" group:"Training"`
	Places    *int     `help:"Positions of a text to train on." placeholder:"N" group:"Training"`
	Later     *int     `needs:"TestSteps!=1" help:"Positions of these that the later depths start from." placeholder:"N" group:"Training"`

	From []int `recipe:"-" help:"Layers of the target, from 0, that the MLP is copied from; -1 means random weights." placeholder:"N" group:"Shape"`
	train.LayerFlags
	DraftVocab *int `help:"Output for the N most frequent tokens only; 0 means all." placeholder:"N" group:"Shape"`
}

// Help explains the command.
func (*Flags) Help() string {
	r := newRecipe()
	return fmt.Sprintf(`A layer for multi-token prediction (MTP) reads a token and the last hidden state of a model, the target, before it,
and then drafts from its own states. Models such as MiMo and Qwen3.5 come with one; this command trains one for any
model that grove runs. The flags change the usual recipe: the layer's width follows the target's, %d steps, %d depths.
docs/train-a-head.md walks through it.

%s

Below --dir, in NAME: model-q8_0.gguf for --head, model-f32.gguf, hf/, loss.png, metrics.jsonl.

Examples:
    grove train mtp -m model.gguf --text 'texts/*.txt'
    grove train mtp -m model.gguf --prompts prompts.jsonl --steps 500
    grove train mtp --dir own --data DATA`,
		r.Steps, r.TestSteps, train.HelpOnText)
}

// newRecipe returns the recipe of a layer for the embedded target.
func newRecipe() eagle.Recipe {
	r := eagle.NewRecipe(head.Native)
	r.Seed = 7
	r.Steps = 1000
	r.Places = 160
	r.TestSteps = 5
	r.Later = 48
	return r
}

// asPaper returns a recipe with FastMTP's choices (arXiv 2509.18362) in place of grove's: AdamW,
// three depths with falling weights, and random initial weights. The number of steps stays.
func asPaper(r eagle.Recipe) eagle.Recipe {
	r.Course = train.PaperCourse(r.Course, 5e-5, 0.95, 0.015, true, 1)
	r.TestSteps, r.Decay = 3, 0.6
	r.Places = r.Short.Length
	r.Later = r.Places
	r.Repeats = 1
	r.From = nil
	return r
}

// Recipe returns the recipe that the flags describe.
func (f *Flags) Recipe(target *model.Model) (train.HeadRecipe, error) {
	r := newRecipe().For(target)
	if f.Paper {
		r = asPaper(r)
	}
	train.SetFlags(&r, f)
	f.SetCourse(&r.Course)
	train.SetFrom(&r.From, f.From)
	return &Recipe{r}, nil
}

// Folder names the head's folder below --dir.
func (f *Flags) Folder() string { return f.Name }
