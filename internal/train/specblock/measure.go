package specblock

import (
	"fmt"
	"math"
	"slices"

	"github.com/grovellm/grove/internal/autograd"
	"github.com/grovellm/grove/internal/drafters/specblock"
	"github.com/grovellm/grove/internal/train"
)

// Validate measures, on each held-out source, the loss of all rows, also those after a wrong
// one; α by place in the chain; τ, the tokens per round when verifying the head's chains;
// and the rank head's mean F1.
func (l *learner) Validate() (losses, figures map[string]float64, err error) {
	return l.Heads.Validate(func(t *train.HeldText, figure func(string, float64)) (autograd.Loss, error) {
		m, err := l.head.measure(t, l.r.Rounds, train.HeldTexts, train.HeldTokens, l.r.Block)
		if err != nil {
			return autograd.Loss{}, err
		}
		figure("chain", m.Chain())
		for k, c := range m.Places {
			figure(fmt.Sprintf("place %02d", k+1), c.Share())
		}
		if l.r.RankWidth > 0 {
			figure("rank F1", m.Ranks.MeanF1())
		}
		return m.loss, nil
	})
}

// measure is the result of a SpecBlock head on a source's held-out text.
type measure struct {
	Source string
	Places []count   // α_k of appendix C: right rows among those with only right rows before them in the chain
	After  [][]count // the same for the rows of a second block that starts from row s of a first
	Ranks  confusion // for the rows with only right rows before them in the chain

	Tokens, Rounds float64 // when verifying chains

	loss autograd.Loss
}

// count is how many rows of a number of rows are right.
type count struct{ right, of int }

func (c *count) add(right bool) {
	c.of++
	if right {
		c.right++
	}
}

// Share is the share of right rows, or 0 if there are no rows.
func (c count) Share() float64 { return float64(c.right) / math.Max(1, float64(c.of)) }

// Chain is τ of chains as long as all blocks together.
func (m *measure) Chain() float64 { return m.Tokens / m.Rounds }

// confusion counts rows by the bucket of the target's token, and by the bucket that
// the rank head chose.
type confusion [specblock.RankBuckets][specblock.RankBuckets]int

// Bucket returns how well a bucket is distinguished from the others (table 3), and its share of all rows.
func (c *confusion) Bucket(b int) (share, precision, recall, f1 float64) {
	var all, of, chosen float64
	for i := range c {
		for k, n := range c[i] {
			all += float64(n)
			if i == b {
				of += float64(n)
			}
			if k == b {
				chosen += float64(n)
			}
		}
	}
	hit := float64(c[b][b])
	precision, recall = hit/math.Max(1, chosen), hit/math.Max(1, of)
	return of / math.Max(1, all), precision, recall, 2 * hit / math.Max(1, chosen+of)
}

// MeanF1 is the unweighted mean of the buckets' F1.
func (c *confusion) MeanF1() float64 {
	sum := 0.0
	for b := range c {
		_, _, _, f1 := c.Bucket(b)
		sum += f1
	}
	return sum / float64(len(c))
}

// measure makes the head draft after each of the first tokens that the target generated in the
// first texts. Chains consist of whole blocks, one after the other; second blocks are also started
// from other rows of the first, from row least on.
func (h *Head) measure(t *train.HeldText, rounds, texts, tokens, least int) (*measure, error) {
	h.Tape.Detach()
	block := h.net.Block
	m := &measure{Source: t.Name, Places: make([]count, rounds*block)}
	for range block {
		m.After = append(m.After, make([]count, block))
	}
	err := t.Each(texts, tokens, rounds*block, func(text []int32, places []int) error {
		for cut := block; cut == block || cut >= least && rounds > 1; cut-- {
			starts := make([]start, len(places))
			for i, p := range places {
				starts[i] = start{p, slices.Repeat([]float64{(float64(cut) - .5) / float64(block)}, rounds-1)}
			}
			n := rounds
			if cut < block {
				n = 2
			}
			if err := h.forward([][]int32{text}, [][]start{starts}, n, false); err != nil {
				return err
			}
			h.drafts(m, cut, n, len(starts))
		}
		return nil
	})
	return m, err
}

// drafts adds the predictions of a forward pass to m; all its blocks started from row
// cut of the blocks before them.
func (h *Head) drafts(m *measure, cut, rounds, starts int) {
	block := h.net.Block
	right := make([]int, starts) // length of each chain's run of right rows so far
	for b, r := range h.rounds[:rounds] {
		var drafted []int32 // rows of the blocks
		for i, at := range r.blocks {
			if right[at.start] < b*cut {
				continue // drafting would not go on from there
			}
			for k, row := range r.said[i*block : (i+1)*block] {
				if !row.valid {
					break
				}
				drafted = append(drafted, int32(i*block+k))
				if cut == block {
					m.Places[b*block+k].add(row.right)
				}
				if b == 1 {
					m.After[cut-1][k].add(row.right)
				}
				if row.right && (b == 0 || cut == block) {
					right[at.start]++
				}
			}
		}
		if cut == block {
			h.tally(m, r, drafted)
		}
	}
	for n := 0; cut == block && n < starts; m.Rounds++ {
		m.Tokens += math.Min(float64(right[n]+1), float64(starts-n)) // the accepted ones plus the target's own
		n += right[n] + 1
	}
}

// tally adds the loss of a round's rows to m, and the rank head's choices for the
// rows that drafting reaches.
func (h *Head) tally(m *measure, r *round, drafted []int32) {
	var rows []int32
	for i, s := range r.said {
		if s.here {
			rows = append(rows, int32(i))
		}
	}
	m.loss.Add(h.loss(r, rows, h.statesOf(r, rows), nil, 1))
	if h.net.RankWidth == 0 || len(drafted) == 0 {
		return
	}
	out := h.ranks(r, drafted, h.statesOf(r, drafted))
	for i, row := range drafted {
		m.Ranks[specblock.BucketOf(r.said[row].rank)][specblock.Chosen(out.Row(i), &h.net.RankOffset)]++
	}
}
