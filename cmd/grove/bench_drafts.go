// grove bench cost for heads.

package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"text/tabwriter"

	"github.com/grovellm/grove/internal/bench"
	"github.com/grovellm/grove/internal/command"
	"github.com/grovellm/grove/internal/heads/headfile"
	"github.com/grovellm/grove/internal/model"
	"github.com/grovellm/grove/tensor"
)

// drafts measures the cost of drafting with a target's head.
func (cmd *benchCostCmd) drafts(ctx context.Context, p *command.Program, kind *headfile.Kind, target string) error {
	shape, typ, err := command.ShapeAndType(target, cmd.Type)
	if err != nil {
		return err
	}
	bar := p.Progress("measuring", false)
	r, err := bench.DraftCosts(ctx, bench.DraftCostOptions{
		Kind: kind, Target: shape, Type: typ, Threads: p.Threads, Rounds: cmd.Rounds,
		Progress: func(done, total int) { bar.Set(int64(done), int64(total)) },
	})
	bar.End()
	if err != nil {
		return err
	}
	if p.JSON {
		return p.PrintJSON(r)
	}
	fmt.Fprintf(p.Stdout, "%s of %s in %s, %d threads, %s: %d tokens × %d, %s of output matrix, %s of layer\n\n",
		kind.Name, r.Target, r.Type, r.Threads, r.CPU, r.Vocab, r.Hidden, command.Size(int64(r.Head)),
		command.Size(int64(r.Layer)))
	t := tabwriter.NewWriter(p.Stdout, 0, 0, 3, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "shortlist\ttokens of a row\tms a draft\tover full\t")
	for _, l := range r.Lists {
		fmt.Fprintf(t, "%s\t%.0f\t%.2f\t%.3f\t\n", l.Name, l.Size, l.MS, l.Ratio)
	}
	return t.Flush()
}

// heads measures the cost of drafting with heads of every kind, compared with a plain pass of m.
func (cmd *benchCostCmd) heads(ctx context.Context, p *command.Program, m *model.Model, path, name string) error {
	cmd.HeadType = cmp.Or(cmd.HeadType, "q8_0")
	typ, err := tensor.ParseType(cmd.HeadType)
	if err != nil {
		return command.Usagef("--head-type: %v", err)
	}
	o := bench.HeadCostOptions{Model: name, Path: path, Type: typ, Drafters: cmd.Heads, Committed: cmd.Committed,
		Rounds: cmd.Rounds}
	if slices.Equal(cmd.Heads, []string{"all"}) {
		o.Drafters = nil
	}
	bar := p.Progress("measuring", false)
	o.Progress = func(done, total int) { bar.Set(int64(done), int64(total)) }
	r, err := bench.HeadCosts(ctx, m, o)
	bar.End()
	if err != nil {
		return err
	}
	if p.JSON {
		return p.PrintJSON(r)
	}
	fmt.Fprintf(p.Stdout, "%s, %s of weights; heads in %s, %d threads, %s; %d tokens in the cache\n\n", r.Model,
		command.Size(int64(r.Weights)), r.Type, r.Threads, r.CPU, r.Committed)
	t := tabwriter.NewWriter(p.Stdout, 0, 0, 3, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "drafter\thead\tsize\tnodes\tms a draft\tms a pass\tshare\t")
	for _, h := range r.Heads {
		fmt.Fprintf(t, "%s\t%s\t%s\t%d\t%.2f\t%.2f\t%.2f\t\n", h.Drafter, h.Shape, command.Size(h.Bytes), h.Nodes, h.MS,
			h.PlainMS, h.Share)
	}
	return t.Flush()
}
