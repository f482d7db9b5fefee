// Flags of the command that trains a SpecBlock head.

package specblock

import (
	"fmt"

	"github.com/grovellm/grove/internal/model"
	"github.com/grovellm/grove/internal/train"
)

// Flags vary the recipe of the shipped head: values that are not given are the recipe's.
type Flags struct {
	Name string `recipe:"-" help:"Folder below --dir for this head (${default})." default:"specblock" placeholder:"NAME"`

	train.TextFlags
	train.CourseFlags
	Anchors     *int     `help:"Starts of blocks in a text." placeholder:"N" group:"Training"`
	Blocks      *int     `recipe:"Rounds" help:"Blocks in a row to train, the first included." placeholder:"M" group:"Training"`
	Settle      *float64 `help:"Share of the steps with first blocks only, and without the rank head." placeholder:"S" group:"Training"`
	Decay       *float64 `help:"Row k of a block has weight D^k; 1 means equal weights." placeholder:"D" group:"Training"`
	Balance     *float64 `needs:"RankWidth!=0" help:"Weight of rare buckets for the rank head: 0 weighs rows equally, 1 buckets." placeholder:"B" group:"Training"`
	ValidPrefix *bool    `help:"Leave rows after a wrong one of their block out of the loss." negatable:"" group:"Training"`
	OnPath      *bool    `help:"Start no later blocks from rows after a wrong one." negatable:"" group:"Training"`
	RankTexts   *int     `needs:"RankWidth!=0" recipe:"Ranks.Texts" help:"Fit the rank head to the texts of N more steps at the end; 0 means not at all." placeholder:"N" group:"Training"`
	RankSteps   *int     `needs:"Ranks.Texts!=0,RankWidth!=0" recipe:"Ranks.Steps" help:"Steps of that fit." placeholder:"N" group:"Training"`
	PlaceMeans  *bool    `help:"Weight each place of a block by its number of rows in the loss, as the paper does (equation 6)." negatable:"" group:"Training"`
	Slots       *float64 `help:"Begin with slot queries S times as large as the rest of the first layer's input; 0 means a tenth of random weights." placeholder:"S" group:"Training"`

	Block      *int  `help:"Rows of a block." placeholder:"K" group:"Shape"`
	Layers     *int  `help:"Layers of the head; default: as many as --from lists." placeholder:"N" group:"Shape"`
	From       []int `recipe:"-" help:"Layer of the target, from 0, that each layer is copied from; -1 alone means random weights." placeholder:"N" group:"Shape"`
	FFN        *int  `name:"ffn" help:"Width of the MLPs, a multiple of 32; at most the target's for copied layers." placeholder:"N" group:"Shape"`
	DraftVocab *int  `help:"Output for the N most frequent tokens only; 0 means all." placeholder:"N" group:"Shape"`
	RankWidth  *int  `help:"Width of the rank head; 0 means none." placeholder:"N" group:"Shape"`
	RankFull   *bool `needs:"RankWidth!=0" help:"The rank head's features describe the whole distribution, as in the paper, not the 20 largest logits." negatable:"" group:"Shape"`
	Taps       []int `help:"Layers of the target to read: 0 is the embedding, i the output of layer i." placeholder:"N" group:"Shape"`
	Shift      *bool `help:"Between layers, add the row before to each row." negatable:"" group:"Shape"`
	Broadcast  *bool `help:"Give every row of a block the condition and the token, as the paper does, not only the first." negatable:"" group:"Shape"`
}

// Help explains the command.
func (*Flags) Help() string {
	r := NewRecipe()
	return fmt.Sprintf(`A SpecBlock head reads hidden states of a model, the target, and computes the next %d tokens in one pass, each with
those before it. Further passes continue from any of them. Its rank head says how many alternatives each token needs.
It is trained for any model that grove runs. The flags change the usual recipe: layers that begin as the target's
last ones, %d steps, %d blocks in a row. docs/train-a-head.md walks through it. At the end a rank head is fitted to
the finished head, and tables of measures are written.

%s

Below --dir, in NAME: model-q8_0.gguf for --head, model-f32.gguf, hf/, loss.png, metrics.jsonl, measures.json, and
ranks/, the checkpoints of the rank head.

Examples:
    grove train specblock -m model.gguf --text 'texts/*.txt'
    grove train specblock --dir own --data DATA --only go --name specblock-go
    grove train specblock --dir own --data DATA --no-shift --name no-shift`,
		r.Block, r.Steps, r.Rounds, train.HelpOnText)
}

// Recipe returns the recipe that the flags describe.
func (f *Flags) Recipe(target *model.Model) (train.HeadRecipe, error) {
	r := NewRecipe().For(target)
	if f.Paper {
		r = r.AsPaper(target)
	}
	train.SetFlags(&r, f)
	f.SetCourse(&r.Course)
	if train.SetFrom(&r.From, f.From) && f.Layers == nil {
		r.Layers = len(r.From)
	}
	return &r, nil
}

// Folder names the head's folder below --dir.
func (f *Flags) Folder() string { return f.Name }
