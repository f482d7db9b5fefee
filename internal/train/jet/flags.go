// Flags of the command that trains a block head.

package jet

import (
	"cmp"
	"fmt"

	"github.com/grovellm/grove/internal/model"
	"github.com/grovellm/grove/internal/train"
)

// Flags vary the recipes of the shipped heads: values that are not given are the recipe's.
type Flags struct {
	Head string `recipe:"-" required:"" enum:"causal,bidirectional" help:"Rows of a block see the rows before them (causal, JetSpec) or all (bidirectional, DFlash)." placeholder:"causal|bidirectional"`
	Name string `recipe:"-" help:"Folder below --dir for this head; default: jet or dflash." placeholder:"NAME"`

	train.TextFlags
	train.CourseFlags
	LossFlags
	BlockFlags
	ShapeFlags
}

// LossFlags describe what the block's own logits learn.
type LossFlags struct {
	Loss      *string  `enum:"kl,reverse-kl,ce" help:"Loss: divergence from the target (kl, reverse-kl), or cross-entropy of the text (ce)." placeholder:"kl|reverse-kl|ce" group:"Training"`
	Softening *float32 `needs:"Loss!=ce" recipe:"Temperature" help:"Temperature of both distributions in the divergence." placeholder:"T" group:"Training"`
}

// BlockFlags describe the blocks that any block head learns from.
type BlockFlags struct {
	Gamma     *float64 `help:"Row k of a block has weight exp(-(k-1)/G); 0 means equal weights." placeholder:"G" group:"Training"`
	Anchors   *int     `help:"Blocks of a text; twice as many if they are half as long." placeholder:"N" group:"Training"`
	ShortTime *float64 `recipe:"ShortUntil" name:"curriculum" help:"Share of the steps, at first, with blocks half as long; 0 means none." placeholder:"S" group:"Training"`
}

// ShapeFlags describe the shape of a block head.
type ShapeFlags struct {
	Block    *int     `help:"Rows of a block, the anchor's included." placeholder:"N" group:"Shape"`
	Layers   *int     `help:"Layers of the head; default: as many as --from lists." placeholder:"N" group:"Shape"`
	From     []int    `recipe:"-" help:"Layer of the target, from 0, that each layer is copied from; -1 passes the anchor on, -1 alone is random." placeholder:"N" group:"Shape"`
	FFN      *int     `name:"ffn" help:"Width of the MLPs, a multiple of 32; at most the target's for copied layers." placeholder:"N" group:"Shape"`
	Heads    *int     `help:"Attention heads; the target's for copied layers, as the next two." placeholder:"N" group:"Shape"`
	KVHeads  *int     `name:"kv-heads" help:"Key/value heads." placeholder:"N" group:"Shape"`
	HeadDim  *int     `name:"head-dim" help:"Dimensions of an attention head." placeholder:"N" group:"Shape"`
	RopeBase *float64 `help:"Base of the rotary position encoding." placeholder:"B" group:"Shape"`
	Taps     []int    `help:"Layers of the target to read: 0 is the embedding (then hf/ is not written), i the output of layer i." placeholder:"N" group:"Shape"`
}

// setLayers sets the values that follow from the shape's flags, after all others are set.
func (f *ShapeFlags) setLayers(r *Recipe) {
	r.ShortBlock = min(r.ShortBlock, r.Block)
	if train.SetFrom(&r.From, f.From) && f.Layers == nil {
		r.Layers = len(r.From)
	}
}

// Help explains the command.
func (*Flags) Help() string {
	r := NewRecipe(true)
	return fmt.Sprintf(`A block head reads hidden states of a model, the target, and computes the distributions of the next %d tokens in one
pass. It is trained for any model that grove runs. The flags change the usual recipe: layers that begin as the
target's, %d steps, loss %s, gamma %g. docs/train-a-head.md walks through it.

%s

Below --dir, in NAME: model-q8_0.gguf for --head, model-f32.gguf, hf/, loss.png, metrics.jsonl.

Examples:
    grove train jet -m model.gguf --text 'texts/*.txt' --head causal
    grove train jet --dir own --data DATA --head bidirectional --gamma 0 --name bidirectional
    grove train jet --dir own --data DATA --head causal --from=-1,0,1,2,5 --ffn 704 --name small`,
		r.Block-1, r.Steps, r.Loss, r.Gamma, train.HelpOnText)
}

// Recipe returns the recipe that the flags describe.
func (f *Flags) Recipe(target *model.Model) (train.HeadRecipe, error) {
	r := NewRecipe(f.Head == "causal").For(target)
	if f.Paper {
		r = r.AsPaper()
	}
	train.SetFlags(&r, f)
	f.SetCourse(&r.Course)
	f.setLayers(&r)
	return &r, nil
}

// Folder names the head's folder below --dir.
func (f *Flags) Folder() string {
	return cmp.Or(f.Name, map[string]string{"causal": "jet", "bidirectional": "dflash"}[f.Head])
}
