package main

import (
	"context"
	"fmt"

	"github.com/grovellm/grove/train"
)

// trainEagleCmd varies the recipe of the shipped head: what is not given is its.
type trainEagleCmd struct {
	trainFlags
	Name string `help:"Folder below --dir for this head." default:"eagle" placeholder:"NAME"`

	Text      *string  `enum:"generated,corpus" help:"Text to learn from: what the target says after beginnings of the training text (generated), or that text itself (corpus)." placeholder:"generated|corpus" group:"What it learns"`
	Only      *string  `help:"A source of the training text: learn from that alone, and from what the target says after beginnings of it." placeholder:"SOURCE" group:"What it learns"`
	TestSteps *int     `help:"Steps of the training-time test: the later ones go on from the head's own states. 1: none do." placeholder:"N" group:"What it learns"`
	Decay     *float64 `help:"Test step s, from 0, counts decay^s." placeholder:"D" group:"What it learns"`
	Places    *int     `help:"Tokens of a text to learn at." placeholder:"N" group:"What it learns"`
	Later     *int     `help:"Those of them to go on from." placeholder:"N" group:"What it learns"`
	Steps     *int     `help:"Steps of the optimiser." placeholder:"N" group:"What it learns"`
	Rows      *int     `help:"Texts of a step, a multiple of 4." placeholder:"N" group:"What it learns"`
	Rate      *float32 `help:"Peak rate of Muon." placeholder:"R" group:"What it learns"`
	Seed      *uint64  `help:"Of the first weights, the order of texts and the places." placeholder:"N" group:"What it learns"`

	Version    *int     `name:"eagle" enum:"2,3" help:"3, or 2: EAGLE-2 reads one layer, the target's last, and learns what that says next beside the tokens." placeholder:"3|2" group:"Shape"`
	From       []int    `help:"Blocks of the target, from 0, as whose MLPs the layer's begins. -1: the whole layer begins as random numbers." placeholder:"N" group:"Shape"`
	FFN        *int     `name:"ffn" help:"Width of the MLP, a multiple of 32." placeholder:"N" group:"Shape"`
	Heads      *int     `help:"Attention heads." placeholder:"N" group:"Shape"`
	KVHeads    *int     `name:"kv-heads" help:"Key/value heads." placeholder:"N" group:"Shape"`
	HeadDim    *int     `name:"head-dim" help:"Dimensions of an attention head." placeholder:"N" group:"Shape"`
	RopeBase   *float64 `help:"Base of the rotation of positions." placeholder:"B" group:"Shape"`
	Taps       []int    `help:"Layers of the target to read: 0 is the embedding, i the output of the i-th layer. llama.cpp wants three, none of them the last." placeholder:"N" group:"Shape"`
	DraftVocab *int     `help:"Output for so many of the most frequent tokens alone. 0: all." placeholder:"N" group:"Shape"`
}

func (c *trainEagleCmd) Help() string {
	r := train.NewEagleRecipe(3)
	return fmt.Sprintf(`An EAGLE head is one layer that reads the target's hidden states of the text so far, and goes on from its
own: eagle3 and eagle2 make draft trees of what it says. It learns over the frozen target of --dir;
vocabulary, target and the text that the target writes are made first where they are not there. Flags
change the recipe of the head that ships: taps %v, %d attention heads, an MLP of %d, %d steps, a
training-time test of %d. docs/training.md says what it does and why.

The same command goes on where it was stopped, and ends in the very weights of a run left alone. A
folder holds one recipe: give every other one its own --name. On the way held-out text is drafted: of the
chains that were right before, those right at each depth, and the tokens a round that chains bring.

Below --dir, in --name: model-q8_0.gguf for --head (without a tokenizer), model-f32.gguf, hf/,
speculators/ for vLLM (not of EAGLE-2), loss.png, metrics.jsonl.

Examples:
    grove train eagle --dir own --data DATA
    grove train eagle --dir own --data DATA --test-steps 1 --name one-step
    grove train eagle --dir own --data DATA --eagle 2 --name eagle2
    grove run -m own/target/model-q8_0.gguf --head own/eagle/model-q8_0.gguf -d eagle3 --stats "func main() {"`,
		r.Taps, r.Heads, r.FFN, r.Steps, r.TestSteps)
}

func (c *trainEagleCmd) recipe() train.EagleRecipe {
	version := 3
	set(&version, c.Version)
	r := train.NewEagleRecipe(version)
	set(&r.Text, c.Text)
	set(&r.Only, c.Only)
	set(&r.TestSteps, c.TestSteps)
	set(&r.Decay, c.Decay)
	set(&r.Places, c.Places)
	set(&r.Later, c.Later)
	set(&r.Steps, c.Steps)
	set(&r.Rows, c.Rows)
	set(&r.Optimizer.MuonRate, c.Rate)
	set(&r.Seed, c.Seed)
	set(&r.FFN, c.FFN)
	set(&r.Heads, c.Heads)
	set(&r.KVHeads, c.KVHeads)
	set(&r.HeadDim, c.HeadDim)
	set(&r.RopeBase, c.RopeBase)
	set(&r.DraftVocab, c.DraftVocab)
	if len(c.Taps) > 0 {
		r.Taps = c.Taps
	}
	setFrom(&r.From, c.From)
	return r
}

func (c *trainEagleCmd) Run(p *program) error {
	return c.runHead(p, c.Name, func(ctx context.Context, j train.Job, target train.Shape) error {
		return train.Eagle(ctx, j, c.Name, c.recipe(), target)
	})
}
