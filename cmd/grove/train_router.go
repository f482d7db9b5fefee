package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/grovellm/grove/train"
)

// trainRouterCmd varies the recipe of the shipped router: what is not given is its.
type trainRouterCmd struct {
	trainFlags
	Head string `help:"The EAGLE head that it is for: a folder below --dir that grove train eagle made, or a file." default:"eagle" placeholder:"NAME"`
	Name string `help:"Folder below --dir for this router." default:"router" placeholder:"NAME"`

	Clusters *int     `help:"Clusters of the vocabulary by the paper's k-means, of whatever sizes; without it clusters of --size tokens each." placeholder:"N" group:"What it learns"`
	Size     *int     `help:"Tokens of a cluster; a multiple of 32, the rows of a panel, wastes none." placeholder:"N" group:"What it learns"`
	Listed   *int     `help:"Clusters of a shortlist, where a user does not say." placeholder:"N" group:"What it learns"`
	Width    *int     `help:"Width of its hidden layer, a multiple of 32." placeholder:"N" group:"What it learns"`
	Top      *int     `help:"It learns which clusters hold so many of the head's likeliest tokens." placeholder:"N" group:"What it learns"`
	Places   *int     `help:"Rows of a text that it learns from." placeholder:"N" group:"What it learns"`
	Later    *int     `help:"Of these, rows after which the head drafts on." placeholder:"N" group:"What it learns"`
	Steps    *int     `help:"Steps of the optimiser." placeholder:"N" group:"What it learns"`
	Rate     *float32 `help:"Peak rate of AdamW." placeholder:"R" group:"What it learns"`
	Seed     *uint64  `help:"Of the clusters, the first weights and the order of texts." placeholder:"N" group:"What it learns"`
}

func (c *trainRouterCmd) Help() string {
	r := train.NewRouterRecipe()
	return fmt.Sprintf(`A router chooses, for every row that an EAGLE head computes, the part of the vocabulary that its output
is computed for (DynaSpec): shortlist=dynaspec. The vocabulary is parted into clusters of tokens with similar
output rows; a small network tells by the row's token and feature which of them hold the head's likeliest
tokens. It learns while the head drafts over text of the target's. Flags change the recipe of the
router that ships: clusters of %d tokens, a hidden layer of %d, %d steps, %d clusters a list.

The same command goes on where it was stopped, and ends in the very weights of a run left alone. A
folder holds one recipe: give every other one its own --name. On the way held-out text is drafted: the
share of the likeliest tokens that are listed (recall), of the first ones, and of their probability.

Below --dir, in --name: model-q8_0.gguf for --head, model-f32.gguf, loss.png, metrics.jsonl.

Examples:
    grove train router --dir own --data DATA
    grove train router --dir own --data DATA --clusters 256 --name kmeans
    grove run -m own/target/model-q8_0.gguf --head own/eagle/model-q8_0.gguf --head own/router/model-q8_0.gguf -d eagle3:shortlist=dynaspec --stats "func main() {"`,
		r.Size, r.Width, r.Steps, r.Listed)
}

func (c *trainRouterCmd) recipe() train.RouterRecipe {
	r := train.NewRouterRecipe()
	set(&r.Clusters, c.Clusters)
	set(&r.Size, c.Size)
	set(&r.Listed, c.Listed)
	set(&r.Width, c.Width)
	set(&r.Top, c.Top)
	set(&r.Places, c.Places)
	set(&r.Later, c.Later)
	set(&r.Steps, c.Steps)
	set(&r.Optimizer.Rate, c.Rate)
	set(&r.Seed, c.Seed)
	return r
}

func (c *trainRouterCmd) Run(p *program) error {
	if err := headName(c.Name); err != nil {
		return err
	}
	head := c.Head
	if _, err := os.Stat(filepath.Join(c.Dir, head, "model-q8_0.gguf")); err == nil {
		head = filepath.Join(c.Dir, head, "model-q8_0.gguf")
	} else if _, err := os.Stat(head); err != nil {
		return usagef("--head %s: there is neither a finished head of that name below %s nor such a file: grove train eagle makes one", c.Head, c.Dir)
	}
	return c.runStage(p, func(ctx context.Context, j train.Job) error {
		return train.TrainRouter(ctx, j, c.Name, head, c.recipe(), train.TargetRecipe().Shape)
	})
}
