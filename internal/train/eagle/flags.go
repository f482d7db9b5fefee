// Flags of the command that trains an EAGLE head.

package eagle

import (
	"fmt"

	"github.com/grovellm/grove/internal/model"
	"github.com/grovellm/grove/internal/train"
)

// Flags vary the recipe of the shipped head: values that are not given are the recipe's.
type Flags struct {
	Name string `recipe:"-" help:"Folder below --dir for this head (${default})." default:"eagle" placeholder:"NAME"`

	Start *string `placeholder:"FILE" help:"Begin with the weights of this EAGLE-3 head; its shape too, but --ffn may be more." group:"Training"`

	train.TextFlags
	train.CourseFlags
	TestSteps *int     `help:"Steps of the training-time test; all but the first use the head's states." placeholder:"N" group:"Training"`
	Decay     *float64 `needs:"TestSteps!=1" help:"Test step s, from 0, has weight D^s." placeholder:"D" group:"Training"`
	Places    *int     `help:"Positions of a text to train on." placeholder:"N" group:"Training"`
	Later     *int     `needs:"TestSteps!=1" help:"Positions of these that the later steps start from." placeholder:"N" group:"Training"`

	Version              *int  `name:"eagle" enum:"2,3" help:"EAGLE-3, or EAGLE-2, which reads the target's last layer and learns to predict it." placeholder:"3|2" group:"Shape"`
	From                 []int `needs:"Start=" recipe:"-" help:"Layers of the target, from 0, that the MLP is copied from; -1 means random weights." placeholder:"N" group:"Shape"`
	FFN                  *int  `name:"ffn" help:"Width of the MLPs, a multiple of 32." placeholder:"N" group:"Shape"`
	train.AttentionFlags `needs:"Start="`
	Taps                 []int `needs:"Start=" help:"Layers of the target to read: 0 is the embedding, i the output of layer i. llama.cpp wants three, not the last." placeholder:"N" group:"Shape"`
	DraftVocab           *int  `needs:"Start=" help:"Output for the N most frequent tokens only; 0 means all." placeholder:"N" group:"Shape"`
}

// Help explains the command.
func (*Flags) Help() string {
	r := NewRecipe(3)
	return fmt.Sprintf(`An EAGLE head is one layer that reads hidden states of a model, the target, and then drafts from its own states. It is
trained for any model that grove runs. The flags change the usual recipe: the head's width follows the target's, %d
steps, a training-time test of %d steps (3 with more than 16,384 tokens). docs/train-a-head.md walks through it.

%s

Below --dir, in NAME: model-q8_0.gguf for --head, model-f32.gguf, hf/, speculators/ for vLLM (EAGLE-3), loss.png,
metrics.jsonl.

Examples:
    grove train eagle -m model.gguf
    grove train eagle -m model.gguf --text 'texts/*.txt'
    grove train eagle -m model.gguf --prompts prompts.jsonl --steps 500
    grove train eagle -m model.gguf --text 'texts/*.txt' --start eagle.gguf --name longer
    grove train eagle --dir own --data DATA
    grove train eagle --dir own --data DATA --test-steps 1 --name one-step
    grove train eagle --dir own --data DATA --eagle 2 --name eagle2`,
		r.Steps, r.TestSteps, train.HelpOnText)
}

// Recipe returns the recipe that the flags describe.
func (f *Flags) Recipe(target *model.Model) (train.HeadRecipe, error) {
	version := 3
	if f.Version != nil {
		version = *f.Version
	}
	r := NewRecipe(version).For(target)
	if f.Paper {
		r = r.AsPaper(target)
	}
	train.SetFlags(&r, f)
	f.SetCourse(&r.Course)
	train.SetFrom(&r.From, f.From)
	if f.Start != nil && f.FFN == nil {
		r.FFN = 0
	}
	return &r, nil
}

// Folder names the head's folder below --dir.
func (f *Flags) Folder() string { return f.Name }
