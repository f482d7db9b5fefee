package main

import (
	"context"
	"fmt"

	"github.com/grovellm/grove/train"
)

// trainSpecBlockCmd varies the recipe of the shipped head: what is not given is its.
type trainSpecBlockCmd struct {
	trainFlags
	Name string `help:"Folder below --dir for this head." default:"specblock" placeholder:"NAME"`

	Text        *string  `enum:"generated,corpus" help:"Text to learn from: what the target says after beginnings of the training text (generated), or that text itself (corpus)." placeholder:"generated|corpus" group:"What it learns"`
	Only        string   `help:"Learn from text of one source alone, or that begins with it: go, prose, gsm8k, gsm8k-chat." placeholder:"SOURCE" group:"What it learns"`
	Steps       *int     `help:"Steps of the optimiser." placeholder:"N" group:"What it learns"`
	Rows        *int     `help:"Texts of a step, a multiple of 4." placeholder:"N" group:"What it learns"`
	Anchors     *int     `help:"Starts of blocks in a text." placeholder:"N" group:"What it learns"`
	Blocks      *int     `help:"Blocks that are taught one after the other, the first included." placeholder:"M" group:"What it learns"`
	Settle      *float64 `help:"Share of the steps with first blocks alone, and without the rank head." placeholder:"S" group:"What it learns"`
	Decay       *float64 `help:"Row k of a block counts decay^k; 1: all rows alike." placeholder:"D" group:"What it learns"`
	Balance     *float64 `help:"How much rare buckets count for the rank head: 0: all rows alike; 1: all buckets." placeholder:"B" group:"What it learns"`
	ValidPrefix bool     `help:"Teach no rows that come after a wrong one of their block." default:"true" negatable:"" group:"What it learns"`
	OnPath      bool     `help:"Start no later blocks from rows that come after a wrong one." default:"true" negatable:"" group:"What it learns"`
	RankTexts   *int     `help:"Fit the rank head, when the trunk is finished, to the texts of so many steps more. 0: leave it as it learned beside the trunk." placeholder:"N" group:"What it learns"`
	RankSteps   *int     `help:"Steps of the rank head's own." placeholder:"N" group:"What it learns"`
	Rate        *float32 `help:"Peak rate of Muon." placeholder:"R" group:"What it learns"`
	Seed        *uint64  `help:"Of the first weights, the order of texts and the starts." placeholder:"N" group:"What it learns"`

	Block     *int  `help:"Rows of a block: K." placeholder:"K" group:"Shape"`
	Layers    *int  `help:"Layers of the head; with --from as many as it lists." placeholder:"N" group:"Shape"`
	From      []int `help:"The target's block, from 0, that each layer begins as; -1 alone: random weights." placeholder:"N" group:"Shape"`
	FFN       *int  `name:"ffn" help:"Width of the MLPs, a multiple of 32; no wider than the target's where layers begin as its blocks." placeholder:"N" group:"Shape"`
	RankWidth *int  `help:"Width of the rank head; 0: none." placeholder:"N" group:"Shape"`
	Taps      []int `help:"Layers of the target to read: 0 is the embedding, i the output of the i-th layer." placeholder:"N" group:"Shape"`
	Shift     bool  `help:"Between layers, let a row take in the row before it." default:"true" negatable:"" group:"Shape"`
	Broadcast bool  `help:"Give all rows of a block the condition and the token, as the paper does, not the first alone." default:"false" negatable:"" group:"Shape"`
}

func (c *trainSpecBlockCmd) Help() string {
	r := train.NewSpecBlockRecipe()
	return fmt.Sprintf(`A SpecBlock head reads the target's hidden states of the text so far and says, in one pass, the
next %d tokens, each with the ones before it in mind; further passes go on from any of them. Its rank
head says how many alternatives each place needs. It learns over the frozen target of --dir; vocabulary,
target and the text that the target writes are made first where they are not there. Flags change the
recipe of the head that ships: %d layers with MLPs of %d, %d steps, %d blocks one after the other.
docs/training.md says what it does and why.

The same command goes on where it was stopped, and ends in the very weights of a run left alone. A
folder holds one recipe: give every other one its own --name. On the way held-out text is drafted: the
share of right tokens by place in the chain, those before it all right, the tokens a round that a chain
of the head's brings, and the rank head's mean F1. Then the trunk stays as it is, and a rank head is
fitted to it from new; a trunk that was finished without gets one when the command is given again. At the
end all of it is measured, as tables.

Below --dir, in --name: model-q8_0.gguf for --head (without a tokenizer), model-f32.gguf, hf/, loss.png,
metrics.jsonl, measures.json, and ranks/, the checkpoints and metrics of the rank head.

Examples:
    grove train specblock --dir own --data DATA
    grove train specblock --dir own --data DATA --only go --name specblock-go
    grove train specblock --dir own --data DATA --no-shift --name no-shift
    grove run -m own/target/model-q8_0.gguf --head own/specblock/model-q8_0.gguf -d specblock --stats "func main() {"`,
		r.Block, r.Layers, r.FFN, r.Steps, r.Rounds)
}

func (c *trainSpecBlockCmd) recipe() train.SpecBlockRecipe {
	r := train.NewSpecBlockRecipe()
	set(&r.Text, c.Text)
	r.Only = c.Only
	set(&r.Steps, c.Steps)
	set(&r.Rows, c.Rows)
	set(&r.Anchors, c.Anchors)
	set(&r.Rounds, c.Blocks)
	set(&r.Settle, c.Settle)
	set(&r.Decay, c.Decay)
	set(&r.Balance, c.Balance)
	r.ValidPrefix, r.OnPath = c.ValidPrefix, c.OnPath
	set(&r.Ranks.Texts, c.RankTexts)
	set(&r.Ranks.Steps, c.RankSteps)
	set(&r.Optimizer.MuonRate, c.Rate)
	set(&r.Seed, c.Seed)
	set(&r.Block, c.Block)
	set(&r.Layers, c.Layers)
	set(&r.FFN, c.FFN)
	set(&r.RankWidth, c.RankWidth)
	r.Shift, r.Broadcast = c.Shift, c.Broadcast
	if len(c.Taps) > 0 {
		r.Taps = c.Taps
	}
	if setFrom(&r.From, c.From) && c.Layers == nil {
		r.Layers = len(r.From)
	}
	return r
}

func (c *trainSpecBlockCmd) Run(p *program) error {
	return c.runHead(p, c.Name, func(ctx context.Context, j train.Job, target train.Shape) error {
		return train.TrainSpecBlock(ctx, j, c.Name, c.recipe(), target)
	})
}
