// Flags of the command that trains Medusa heads.

package medusa

import (
	"fmt"

	"github.com/grovellm/grove/internal/model"
	"github.com/grovellm/grove/internal/train"
)

// Flags vary the recipe: values that are not given are the recipe's.
type Flags struct {
	Name string `recipe:"-" help:"Folder below --dir for these heads (${default})." default:"medusa" placeholder:"NAME"`

	train.TextFlags
	train.CourseFlags
	Loss   *string  `enum:"ce,kl" help:"Loss: cross-entropy of the text (ce), or divergence from the target (kl)." placeholder:"ce|kl" group:"Training"`
	Decay  *float64 `help:"Head i, from 0, has weight D^i: 1 as in the authors' code, 0.8 as in the paper." placeholder:"D" group:"Training"`
	Places *int     `help:"Positions of a text to train on." placeholder:"N" group:"Training"`
	Nodes  *int     `help:"Nodes of the tree template fitted at the end." placeholder:"N" group:"Training"`

	Depths     *int  `name:"heads" help:"Heads, each of which drafts a token." placeholder:"N" group:"Shape"`
	ResBlocks  *int  `name:"blocks" help:"Residual blocks of a head." placeholder:"N" group:"Shape"`
	OwnOutputs *bool `help:"Give each head an output matrix of its own, as the paper does." group:"Shape"`
}

// Help explains the command.
func (*Flags) Help() string {
	r := NewRecipe()
	return fmt.Sprintf(`Medusa heads read the last hidden state of a model, the target. Each drafts one of the next tokens, all in one
pass. They are trained for any model that grove runs. The flags change the usual recipe, Medusa-1: %d heads of %d
residual block, %d steps, loss %s, AdamW at %g. docs/train-a-head.md walks through it.

%s

Below --dir, in NAME: model-q8_0.gguf for --head, model-f32.gguf, hf/ as text-generation-inference reads it (with
--own-outputs as the authors' code does), loss.png, metrics.jsonl.

Examples:
    grove train medusa -m model.gguf --text 'texts/*.txt'
    grove train medusa --dir own --data DATA --own-outputs --name medusa-own`,
		r.Depths, r.ResBlocks, r.Steps, r.Loss, r.Optimizer.Rate, train.HelpOnText)
}

// Recipe returns the recipe that the flags describe, which is the same for every target.
func (f *Flags) Recipe(*model.Model) (train.HeadRecipe, error) {
	r := NewRecipe()
	if f.Paper {
		r = r.AsPaper()
	}
	train.SetFlags(&r, f)
	f.SetCourse(&r.Course)
	return &r, nil
}

// Folder names the head's folder below --dir.
func (f *Flags) Folder() string { return f.Name }
