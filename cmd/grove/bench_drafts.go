// grove bench cost of a head's shape.

package main

import (
	"context"
	"fmt"
	"text/tabwriter"

	"github.com/grovellm/grove/internal/bench"
	"github.com/grovellm/grove/internal/command"
	"github.com/grovellm/grove/internal/heads/headfile"
)

// drafts measures what drafting with a target's head costs.
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
