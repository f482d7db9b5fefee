// grove bench cost of an EAGLE-3 head's shape.

package main

import (
	"context"
	"fmt"
	"text/tabwriter"

	"github.com/grovellm/grove/internal/bench"
)

// drafts measures what drafting with a target's head costs.
func (cmd *benchCostCmd) drafts(ctx context.Context, p *program, target string) error {
	shape, typ, err := shapeAndType(target, cmd.Type)
	if err != nil {
		return err
	}
	bar := p.progress("making weights", false)
	what := ""
	r, err := bench.DraftCosts(ctx, bench.DraftCostOptions{
		Target: shape, Type: kernelType(typ.String()), Threads: p.Threads, Rounds: cmd.Rounds, Seed: 1,
		Progress: func(now string, done, total int) {
			if now != what {
				bar.end()
				bar, what = p.progress(now, false), now
			}
			bar.set(int64(done), int64(total))
		},
	})
	bar.end()
	if err != nil {
		return err
	}
	if p.JSON {
		return p.printJSON(r)
	}
	fmt.Fprintf(p.stdout, "EAGLE-3 head of %s in %s, %d threads, %s: %d tokens × %d, %s of output head, %s of layer\n", r.Target, r.Type, r.Threads, r.CPU, r.Vocab, r.Hidden, size(int64(r.HeadBytes)), size(int64(r.LayerBytes)))
	fmt.Fprintf(p.stdout, "a draft: %d rows in %d passes, and 3 tokens of text; the router has %d clusters, of which dynaspec lists k_max at steps 0 and 1, then ⌊k_max/(2(step+1))⌋\n", r.Rows, r.Passes, r.Clusters)
	fmt.Fprintf(p.stdout, "memory %.1f GB/s, multiply peak %.0f Gop/s: a draft cannot take less than %.2f ms with the whole head, and %.2f ms with none: %.3f of it\n\n", r.Bandwidth, r.Peak, r.FullRoof, r.LayerRoof, r.LayerRoof/r.FullRoof)
	t := tabwriter.NewWriter(p.stdout, 0, 0, 3, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "shortlist\ttokens of a row\tms a draft\tover full\t")
	for _, l := range r.Lists {
		fmt.Fprintf(t, "%s\t%.0f\t%.2f\t%.3f\t\n", l.Name, l.Size, l.MS, l.Ratio)
	}
	return t.Flush()
}
