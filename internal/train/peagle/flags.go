// Flags of the command that trains a P-EAGLE head.

package peagle

import (
	"fmt"

	"github.com/grovellm/grove/internal/model"
	"github.com/grovellm/grove/internal/train"
)

// Flags vary NewRecipe's recipe: values that are not given are the recipe's.
type Flags struct {
	Name string `recipe:"-" help:"Folder below --dir for this head (${default})." default:"peagle" placeholder:"NAME"`

	Start *string `placeholder:"FILE" help:"Begin with the weights of this EAGLE-3 head; heads, widths, taps and draft vocabulary are then those of that head." group:"Training"`

	train.TextFlags
	train.CourseFlags
	Places    *int     `help:"Positions of a text to train on." placeholder:"N" group:"Training"`
	Keep      *float64 `help:"Depth d, from 0, trains on a share S^d of these positions." placeholder:"S" group:"Training"`
	KeepLeast *float64 `help:"Every depth trains on at least this share of them." placeholder:"S" group:"Training"`

	Depths           *int  `help:"Tokens that one pass drafts." placeholder:"N" group:"Shape"`
	Masks            bool  `name:"mask-embeddings" help:"Give each mask row an embedding of its own (ParallelSpec)." group:"Shape"`
	Layers           *int  `help:"Layers of the head." placeholder:"N" group:"Shape"`
	From             []int `needs:"Start=" recipe:"-" help:"Layers of the target, from 0, that the first layer's MLP is copied from; -1 means random weights." placeholder:"N" group:"Shape"`
	train.LayerFlags `needs:"Start="`
	Taps             []int `needs:"Start=" help:"Layers of the target to read: 0 is the embedding, i the output of layer i." placeholder:"N" group:"Shape"`
	DraftVocab       *int  `needs:"Start=" help:"Output for the N most frequent tokens only; 0 means all." placeholder:"N" group:"Shape"`
}

// Help explains the command.
func (*Flags) Help() string {
	r := NewRecipe()
	return fmt.Sprintf(`A P-EAGLE head is an EAGLE-3 head that drafts %d tokens in one pass: mask rows stand for the tokens that are not
known yet. It is trained for any model that grove runs; --start continues from an EAGLE-3 head. The flags change the usual recipe: %d layers as wide as the
target, %d steps, depths that keep %g of the positions of the previous depth, and at least %g of all.
docs/train-a-head.md walks through it.

%s

Below --dir, in NAME: model-q8_0.gguf for --head, model-f32.gguf, speculators/ for vLLM, loss.png, metrics.jsonl.

Examples:
    grove train peagle -m model.gguf --text 'texts/*.txt'
    grove train peagle -m model.gguf --text 'texts/*.txt' --start eagle.gguf --steps 600
    grove train peagle --dir own --data DATA --layers 4 --name four-layers
    grove train peagle --dir own --data DATA --mask-embeddings --name parallelspec`,
		r.Depths, r.Layers, r.Steps, r.Keep, r.KeepLeast, train.HelpOnText)
}

// Recipe returns the recipe that the flags describe.
func (f *Flags) Recipe(target *model.Model) (train.HeadRecipe, error) {
	r := NewRecipe().For(target)
	if f.Paper {
		r = r.AsPaper(target)
	}
	train.SetFlags(&r, f)
	f.SetCourse(&r.Course)
	train.SetFrom(&r.From, f.From)
	return &r, nil
}

// Folder names the head's folder below --dir.
func (f *Flags) Folder() string { return f.Name }
