// The flags of the command that trains one.

package draft

import (
	"fmt"

	"github.com/grovellm/grove/internal/model"
	"github.com/grovellm/grove/internal/train"
)

// Flags vary the recipe: values that are not given are the recipe's.
type Flags struct {
	Name string `recipe:"-" help:"Folder below --dir for this draft model (${default})." default:"draft-model" placeholder:"NAME"`

	train.TextFlags
	train.OptimizerFlags
	Soft   *float32 `help:"Share of the divergence from the target's distributions in the loss; the rest is cross-entropy of the text." placeholder:"S" group:"Training"`
	Places *int     `help:"Positions of a text to train on." placeholder:"N" group:"Training"`

	From []int `help:"Layers of the target, from 0, that are copied; default: the first three." placeholder:"N" group:"Shape"`
}

// Help explains the command.
func (*Flags) Help() string {
	r := NewRecipe(new(model.Config))
	return fmt.Sprintf(`A draft model is a shallow copy of a model, the target: a few of its layers between its embedding and its output
matrix. The layers learn the target's distributions on the target's own text (DistillSpec). They are trained for GGUF models of
the Llama and Qwen kind; layers with experts, recurrence, latent attention or windows are refused. The flags
change the usual recipe of %d steps. docs/train-a-head.md walks through it.

%s

Below --dir, in NAME: model-q8_0.gguf for --draft-model, model-f32.gguf, loss.png, metrics.jsonl. Both are whole
models, with the target's tokenizer and chat template.

Examples:
    grove train draft -m model.gguf
    grove train draft -m model.gguf --text 'texts/*.txt' --steps 500
    grove train draft -m model.gguf --from 0,1,2,3 --name four`,
		r.Steps, train.HelpOnText)
}

// Recipe returns the recipe that the flags describe.
func (f *Flags) Recipe(target *model.Model) (train.HeadRecipe, error) {
	r := NewRecipe(&target.Config)
	train.SetFlags(&r, f)
	f.SetCourse(&r.Course)
	return &r, nil
}

// Folder is the folder below --dir.
func (f *Flags) Folder() string { return f.Name }
