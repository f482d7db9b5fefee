package main

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/grovellm/grove/internal/command"
	"github.com/grovellm/grove/internal/heads/headfile"
	"github.com/grovellm/grove/internal/train"
	"github.com/grovellm/grove/internal/train/draft"
	"github.com/grovellm/grove/internal/train/eagle"
	"github.com/grovellm/grove/internal/train/falcon"
	"github.com/grovellm/grove/internal/train/jet"
	"github.com/grovellm/grove/internal/train/medusa"
	"github.com/grovellm/grove/internal/train/mtp"
	"github.com/grovellm/grove/internal/train/peagle"
	"github.com/grovellm/grove/internal/train/specblock"
)

// trainHeadCmds train the kinds of heads.
type trainHeadCmds struct {
	Jet       trainHeadCmd[jet.Flags, *jet.Flags]               `cmd:"" help:"Train a JetSpec or DFlash head, which drafts a tree in one pass."`
	DSpark    trainHeadCmd[jet.DSparkFlags, *jet.DSparkFlags]   `cmd:"" name:"dspark" help:"Train a DSpark head, a DFlash head corrected by the previous token."`
	DFlash2   trainHeadCmd[jet.DFlash2Flags, *jet.DFlash2Flags] `cmd:"" name:"dflash2" help:"Train a DFlash 2 head, a DFlash head with convolutions and a selector."`
	Eagle     trainHeadCmd[eagle.Flags, *eagle.Flags]           `cmd:"" help:"Train an EAGLE head, one layer that drafts token by token."`
	Medusa    trainHeadCmd[medusa.Flags, *medusa.Flags]         `cmd:"" help:"Train Medusa heads, each of which drafts one token from a hidden state."`
	PEagle    trainHeadCmd[peagle.Flags, *peagle.Flags]         `cmd:"" name:"peagle" help:"Train a P-EAGLE or ParallelSpec head, which drafts a tree in one pass."`
	MTP       trainHeadCmd[mtp.Flags, *mtp.Flags]               `cmd:"" name:"mtp" help:"Train a layer for multi-token prediction, like the one that some models have."`
	Falcon    trainHeadCmd[falcon.Flags, *falcon.Flags]         `cmd:"" help:"Train a Falcon head, an LSTM and one layer that draft two tokens a pass."`
	SpecBlock trainHeadCmd[specblock.Flags, *specblock.Flags]   `cmd:"" name:"specblock" help:"Train a SpecBlock head, which drafts block by block."`
	Draft     trainHeadCmd[draft.Flags, *draft.Flags]           `cmd:"" help:"Train a draft model, a few layers of the model."`
}

// trainHeadCmd trains a head of a kind.
type trainHeadCmd[F any, P interface {
	*F
	train.HeadFlags
}] struct {
	overFlags
	Verifier string `help:"For the folder speculators: model for vLLM to serve, ORG/REPO or a folder; default: --model, if it is one of these, or the source that its file names." placeholder:"NAME" group:"Model"`
	Flags    F      `embed:""`
}

func (c *trainHeadCmd[F, P]) Help() string { return P(&c.Flags).Help() }

func (c *trainHeadCmd[F, P]) Run(p *command.Program) error {
	name := P(&c.Flags).Folder()
	if err := command.HeadName(name); err != nil {
		return err
	}
	if c.Verifier != "" {
		if _, err := headfile.Verifier(c.Verifier, c.Model); err != nil {
			return command.Usagef("%v", err)
		}
	}
	check := func(j train.Job) error { return j.CheckHead(P(&c.Flags)) }
	return c.run(p, check, func(ctx context.Context, j train.Job) error {
		j.Verifier, _ = headfile.Verifier(c.Verifier, c.Model) // empty if no file says: a note reports that
		r, err := P(&c.Flags).Recipe(j.Target)
		if err != nil {
			return err
		}
		return j.TrainHead(ctx, name, r)
	})
}

// trainRouterCmd varies the recipe of the shipped router: flags that are not given keep its values.
type trainRouterCmd struct {
	overFlags `recipe:"-"`
	Head      string `recipe:"-" help:"Its EAGLE head: a folder below --dir that grove train eagle wrote, or a file (${default})." default:"eagle" placeholder:"NAME"`
	Name      string `recipe:"-" help:"Folder below --dir for this router (${default})." default:"router" placeholder:"NAME"`

	train.GreedyFlag
	Clusters *int     `help:"Clusters by the paper's k-means, of any sizes; default: clusters of --size tokens." placeholder:"N" group:"Training"`
	Size     *int     `needs:"Clusters=0" help:"Tokens per cluster, preferably a multiple of 32." placeholder:"N" group:"Training"`
	Listed   *int     `help:"Clusters of a shortlist, by default." placeholder:"N" group:"Training"`
	Width    *int     `help:"Width of the hidden layer, a multiple of 32." placeholder:"N" group:"Training"`
	Output   *bool    `help:"Read a row's output, not the feature that it is made of, as the paper does." group:"Training"`
	Top      *int     `help:"Learn which clusters hold the head's N most probable tokens." placeholder:"N" group:"Training"`
	Places   *int     `help:"Positions of a text to train on." placeholder:"N" group:"Training"`
	Later    *int     `help:"Positions of these after which the head continues to draft." placeholder:"N" group:"Training"`
	Steps    *int     `help:"Steps of the optimiser." placeholder:"N" group:"Training"`
	Rate     *float32 `recipe:"Optimizer.Rate" help:"Peak learning rate of AdamW." placeholder:"R" group:"Training"`
	Seed     *uint64  `help:"Seed of clusters, first weights and order of texts." placeholder:"N" group:"Training"`
}

func (c *trainRouterCmd) Help() string {
	r := eagle.NewRouterRecipe()
	return fmt.Sprintf(`A router chooses the part of the vocabulary that an EAGLE head computes for each row (DynaSpec, +dynaspec).
Tokens with similar output rows form clusters, and a small network predicts which clusters hold the head's most
probable tokens. It is trained while the head drafts over the target's text. The flags change the recipe of the
router that is part of grove: clusters of %d tokens, a hidden layer of %d, %d steps, %d clusters a list.

An interrupted command continues when it is run again, and ends with the same weights. Each folder holds one
recipe: give another recipe another --name.

Below --dir, in NAME: model-q8_0.gguf for --head, model-f32.gguf, loss.png, metrics.jsonl.

Examples:
    grove train router --dir own --data DATA
    grove train router --dir own --data DATA --clusters 256 --name kmeans`,
		r.Size, r.Width, r.Steps, r.Listed)
}

func (c *trainRouterCmd) Run(p *command.Program) error {
	if err := command.HeadName(c.Name); err != nil {
		return err
	}
	head := c.Head
	if _, err := os.Stat(filepath.Join(c.dir(), head, "model-q8_0.gguf")); err == nil {
		head = filepath.Join(c.dir(), head, "model-q8_0.gguf")
	} else if _, err := os.Stat(head); err != nil {
		return command.Usagef("--head %s: there is neither a finished head of that name below %s nor such a file: grove train eagle makes one", c.Head, c.dir())
	}
	r := eagle.NewRouterRecipe()
	train.SetFlags(&r, c)
	r.Head = head
	check := func(j train.Job) error { return cmp.Or(j.CheckFlags(&r, c), r.Prepare(&j)) }
	return c.run(p, check, func(ctx context.Context, j train.Job) error {
		return j.TrainHead(ctx, c.Name, &r)
	})
}
