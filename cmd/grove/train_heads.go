package main

import (
	"context"

	"github.com/grovellm/grove/internal/train"
	"github.com/grovellm/grove/internal/train/eagle"
	"github.com/grovellm/grove/internal/train/jet"
	"github.com/grovellm/grove/internal/train/specblock"
)

// trainHeadCmds train the kinds of heads.
type trainHeadCmds struct {
	Jet       trainHeadCmd[jet.Flags, *jet.Flags]             `cmd:"" help:"Train a JetSpec or DFlash head, which drafts a tree in one pass."`
	Eagle     trainHeadCmd[eagle.Flags, *eagle.Flags]         `cmd:"" help:"Train an EAGLE head, one layer that drafts token by token."`
	SpecBlock trainHeadCmd[specblock.Flags, *specblock.Flags] `cmd:"" name:"specblock" help:"Train a SpecBlock head, which drafts block by block."`
}

// trainHeadCmd trains a head of a kind.
type trainHeadCmd[F any, P interface {
	*F
	train.HeadFlags
}] struct {
	overFlags
	Flags F `embed:""`
}

func (c *trainHeadCmd[F, P]) Help() string { return P(&c.Flags).Help() }

func (c *trainHeadCmd[F, P]) Run(p *program) error {
	name := P(&c.Flags).Folder()
	if err := headName(name); err != nil {
		return err
	}
	return c.run(p, func(ctx context.Context, j train.Job) error { return P(&c.Flags).Train(ctx, j, name) })
}
