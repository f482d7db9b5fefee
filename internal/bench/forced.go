// A target that is made to write a given text.

package bench

import (
	"context"

	"github.com/grovellm/grove/internal/speculate"
	"github.com/grovellm/grove/tree"
)

// forcedTarget is a target with its own logits, except that at each position of the text to be
// written, the logit of the text's token is raised above all others. Nodes of a tree that are not
// on the text's path keep their logits, so that drafters can learn from them. So every pass is
// computed, every drafter is asked and every token is chosen as usual, but the output is the text:
// the output of a model that can do a task for which ours is too small. Drafters read the target's
// own taps.
type forcedTarget struct {
	speculate.Target
	from int     // position of the text's first token; other positions keep their logits
	text []int32 // one sequence at a time
}

// forcedLogit is far above networks' logits, and small enough for a float32's exponential.
const forcedLogit = 1e4

// write makes the target write a prompt's forced text, and a request ask for no more.
func (t *forcedTarget) write(p encoded, r *speculate.Request) {
	t.from, t.text = len(p.prompt), p.forced
	if len(p.forced) > 0 {
		r.MaxTokens = min(r.MaxTokens, len(p.forced))
	}
}

func (t *forcedTarget) NewPass() speculate.Pass { return &forcedPass{Pass: t.Target.NewPass(), t: t} }

type forcedPass struct {
	speculate.Pass
	t     *forcedTarget
	first []int // for each sequence, its first entry in places
	place []int // for each row of logits, the position in the text of the token that it predicts; -1 for none
}

func (p *forcedPass) Run(ctx context.Context, rows []speculate.Rows, taps []int) error {
	p.first, p.place = p.first[:0], p.place[:0]
	for _, r := range rows {
		p.first = append(p.first, len(p.place))
		for _, node := range r.Logits {
			p.place = append(p.place, p.t.next(r.Tree, node, r.Cache.Len()))
		}
	}
	return p.Pass.Run(ctx, rows, taps)
}

func (p *forcedPass) Logits(sequence, i int) []float32 {
	row := p.Pass.Logits(sequence, i)
	if at := p.place[p.first[sequence]+i]; at >= 0 {
		row[p.t.text[at]] = forcedLogit
	}
	return row
}

// next returns the position in the text of the token after a node, or -1 if it is outside, or if
// the node's path is not the text's.
func (t *forcedTarget) next(in *tree.Tree, node int32, committed int) int {
	next := committed + int(in.Depth[node]) + 1 - t.from
	if next < 0 || next >= len(t.text) {
		return -1
	}
	for at := next - 1; at >= 0 && node >= 0; at, node = at-1, in.Parent[node] {
		if in.Token[node] != t.text[at] {
			return -1
		}
	}
	return next
}
