// Flags of the command that trains a Falcon head.

package falcon

import (
	"fmt"

	"github.com/grovellm/grove/internal/model"
	"github.com/grovellm/grove/internal/train"
)

// Flags vary the usual recipe: values that are not given are the recipe's.
type Flags struct {
	Name string `recipe:"-" help:"Folder below --dir for this head (${default})." default:"falcon" placeholder:"NAME"`

	train.TextFlags
	train.CourseFlags
	States      *float32  `help:"Weight of the distance to the target's hidden states." placeholder:"W" group:"Training"`
	Logits      *float32  `help:"Weight of the loss of the logits." placeholder:"W" group:"Training"`
	Soft        *float32  `help:"Share of the divergence from the target's distributions in that loss; the rest is cross-entropy." placeholder:"S" group:"Training"`
	Temperature *float32  `needs:"Soft!=0" help:"Temperature of the divergence." placeholder:"T" group:"Training"`
	Glance      []float64 `recipe:"-" needs:"Block!=1" help:"Rows that read what they predict, as a share of the wrong ones: at first and at last. 0,0 means none." placeholder:"S" group:"Training"`

	Block     *int  `name:"k" help:"Tokens that a pass predicts." placeholder:"N" group:"Shape"`
	Recurrent bool  `help:"An LSTM whose state continues from row to row; default: each row starts from zeros, as in the release." group:"Shape"`
	From      []int `recipe:"-" help:"Layers of the target, from 0, that the MLP is copied from; -1 means random weights." placeholder:"N" group:"Shape"`
	train.LayerFlags
}

// Help explains the command.
func (*Flags) Help() string {
	r := NewRecipe()
	return fmt.Sprintf(`A Falcon head is an LSTM and one layer that read the last hidden states of a model, the target, and predict %d tokens
a pass. It is trained for any model that grove runs, by glancing distillation: some rows read the tokens that they are
to predict, fewer as the head gets better. The flags change the usual recipe of %d steps; the head's width follows the
target's. docs/train-a-head.md walks through it.

%s

Below --dir, in NAME: model-q8_0.gguf for --head, model-f32.gguf, hf/, loss.png, metrics.jsonl.

Examples:
    grove train falcon -m model.gguf --text 'texts/*.txt'
    grove train falcon -m model.gguf --prompts prompts.jsonl --steps 500
    grove train falcon --dir own --data DATA
    grove train falcon --dir own --data DATA --recurrent --name recurrent`,
		r.Block, r.Steps, train.HelpOnText)
}

// Recipe returns the recipe that the flags describe.
func (f *Flags) Recipe(target *model.Model) (train.HeadRecipe, error) {
	r := NewRecipe().For(target)
	if f.Paper {
		r = r.AsPaper()
	}
	train.SetFlags(&r, f)
	f.SetCourse(&r.Course)
	train.SetFrom(&r.From, f.From)
	switch len(f.Glance) {
	case 0:
	case 2:
		r.Glance = [2]float64(f.Glance)
	default:
		return nil, fmt.Errorf("--glance has %d numbers: want 2, such as 0.45,0.1", len(f.Glance))
	}
	return &r, nil
}

// Folder names the head's folder below --dir.
func (f *Flags) Folder() string { return f.Name }
