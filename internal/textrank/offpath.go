// The target's logits at nodes that were not accepted, which predict its choices at the same positions.

package textrank

import (
	"math"
	"slices"

	"github.com/grovellm/grove/draft"
	"github.com/grovellm/grove/internal/par"
	"github.com/grovellm/grove/internal/simd"
	"github.com/grovellm/grove/sample"
	"github.com/grovellm/grove/tree"
)

// OffPath keeps the target's first candidates at nodes off the accepted paths of a sequence's last trees, at positions that the text has
// yet to reach. The pass that verified the tree has computed them in any case. Where the text comes to such a position with
// the same token, the target mostly chooses as it did there: nearly the same text precedes it, and the same noise is added. The
// more of the tokens before agree, the more often it does.
type OffPath struct {
	text    []int32 // committed
	entries []offPathEntry
	pool    []sample.Candidate // offPathKept of each entry
	old     int                // entries before the last Learn
}

// offPathEntry is what the target computed at a node.
type offPathEntry struct {
	position int
	token    [contextMost]int32 // the node's, and those before it; -1 where the tree had none
	node     int32              // in its tree
	count    int                // candidates kept
}

const (
	contextMost = 3 // tokens that are compared
	offPathKept = 8 // candidates of an entry
)

// The drafter's candidates and those kept are factors of one softmax. A candidate's logit is drafterWeight times its log-probability as the
// drafter has it; plus keptBias if the entry has it; plus gap times its score less the entry's first score; plus first if
// it is the entry's first. All other tokens together have the logit other. The last three go by the number of tokens that agree, 1 to 3.
// Where only entries after other tokens are known at the position, a candidate that is the first of one has anyBias more.
// The numbers were fitted on grove's own models, over code, prose and arithmetic.
const (
	drafterWeight    = 0.6
	keptBias         = 1.3
	drafterWeightAny = 0.8
	anyBias          = 0.75
)

var agreement = [contextMost]struct{ gap, first, other float64 }{{.1, 1.5, -3.4}, {.17, 2, -4.1}, {.26, 2.4, -5}}

// Learn takes in rows that were committed, and returns how many nodes of the tree are at positions to come. Rank is to be
// called with each number below that, on any goroutines, while the rows' Pass lasts.
func (a *OffPath) Learn(r *draft.Rows) (fresh int) {
	root := len(a.text)
	a.text = append(a.text, r.Tokens...)
	n := 0
	for i, s := range a.entries {
		if s.position >= len(a.text) {
			a.entries[n] = s
			copy(a.pool[n*offPathKept:][:offPathKept], a.pool[i*offPathKept:])
			n++
		}
	}
	a.entries, a.old = a.entries[:n], n
	if r.Pass != nil && r.Next >= 0 {
		t := r.Tree
		for node := range t.Token {
			at := root + int(t.Depth[node])
			if at < len(a.text) {
				continue // nodes of the path among them
			}
			s := offPathEntry{position: at, node: int32(node)}
			up := int32(node)
			for i := range s.token {
				s.token[i] = -1
				if up >= 0 {
					s.token[i], up = t.Token[up], t.Parent[up]
				}
			}
			a.entries = append(a.entries, s)
		}
	}
	size := len(a.entries) * offPathKept
	a.pool = slices.Grow(a.pool[:n*offPathKept], size-n*offPathKept)[:size]
	return len(a.entries) - n
}

// Rank ranks the target's candidates at a node that the last Learn counted, with a sampler that chooses as the target's does, over
// the tokens of its vocabulary. h is the committed text, where penalties look at it.
func (a *OffPath) Rank(i int, r *draft.Rows, s *sample.Sampler, vocab int, h *sample.History) {
	at := a.old + i
	x := &a.entries[at]
	kept := a.pool[at*offPathKept : at*offPathKept : (at+1)*offPathKept]
	x.count = len(s.Top(kept, r.Pass.Logits(r.Sequence, int(x.node))[:vocab], x.position+1, h))
}

// find returns the entry for a node of a tree whose root follows the committed text: of those with the most agreeing tokens the latest.
// agree is their number, 0 if there is none.
func (a *OffPath) find(t *tree.Tree, node int) (kept []sample.Candidate, agree int) {
	at := len(a.text) + int(t.Depth[node])
	for i := len(a.entries) - 1; i >= 0; i-- {
		s := &a.entries[i]
		if s.position != at || s.token[0] != t.Token[node] {
			continue
		}
		n, up := 1, t.Parent[node]
		for ; n < contextMost; n++ {
			token := int32(-2)
			if up >= 0 {
				token, up = t.Token[up], t.Parent[up]
			} else if before := at - n; before >= 0 {
				token = a.text[before]
			}
			if token != s.token[n] {
				break
			}
		}
		if n > agree {
			kept, agree = a.pool[i*offPathKept:][:s.count], n
		}
	}
	return kept, agree
}

// Weigh corrects the candidates below a node of a tree by the entry for the node, if there is one. LogProb are log-probabilities, the
// largest first, and stay so. Tokens of the entry that are not among the candidates are added, up to the capacity of c, or
// replace the least likely.
func (a *OffPath) Weigh(c []sample.Candidate, t *tree.Tree, node int) []sample.Candidate {
	if len(c) == 0 || len(a.entries) == 0 {
		return c
	}
	kept, agree := a.find(t, node)
	if len(kept) == 0 {
		a.weighAny(c, len(a.text)+int(t.Depth[node]))
		return c
	}
	w := &agreement[agree-1]
	last := drafterWeight * c[len(c)-1].LogProb // an upper bound for tokens that are no candidates
	for i := range c {
		c[i].LogProb *= drafterWeight
	}
	for i, x := range kept {
		more := keptBias + w.gap*(x.Score-kept[0].Score)
		if i == 0 {
			more += w.first
		}
		at := slices.IndexFunc(c, func(o sample.Candidate) bool { return o.Token == x.Token })
		if at >= 0 {
			c[at].LogProb += float32(more)
			continue
		}
		x.LogProb = last + float32(more)
		if len(c) < cap(c) {
			c = append(c, x)
			continue
		}
		at = 0
		for k := range c {
			if c[k].LogProb < c[at].LogProb {
				at = k
			}
		}
		if x.LogProb > c[at].LogProb {
			c[at] = x
		}
	}
	normalise(c, w.other)
	return c
}

// weighAny is Weigh where all entries at the position follow other tokens.
func (a *OffPath) weighAny(c []sample.Candidate, position int) {
	var room [offPathTokens]int32
	first, found := room[:0], false // the first candidates of entries, once each
	for k := range a.entries {
		s := &a.entries[k]
		if s.position != position {
			continue
		}
		found = true
		if s.count > 0 && !slices.Contains(first, a.pool[k*offPathKept].Token) {
			first = append(first, a.pool[k*offPathKept].Token)
		}
	}
	if !found {
		return
	}
	rest := -math.Expm1(float64(logSum(c, float32(math.Inf(-1)))))
	for i := range c {
		c[i].LogProb *= drafterWeightAny
		if slices.Contains(first, c[i].Token) {
			c[i].LogProb += anyBias
		}
	}
	normalise(c, drafterWeightAny*math.Log(max(rest, 1e-9)))
}

// More tokens or candidates than these take memory from the heap.
const (
	offPathTokens  = 16
	candidatesMost = 32
)

// normalise orders candidates and makes their logits log-probabilities. All other tokens together have the logit other.
func normalise(c []sample.Candidate, other float64) {
	for i := 1; i < len(c); i++ {
		x, at := c[i], i
		for ; at > 0 && c[at-1].LogProb < x.LogProb; at-- {
			c[at] = c[at-1]
		}
		c[at] = x
	}
	norm := logSum(c, float32(other))
	for i := range c {
		c[i].LogProb -= norm
	}
}

// logSum is the logarithm of the sum of exp over the candidates' logits and another.
func logSum(c []sample.Candidate, other float32) float32 {
	var room [candidatesMost + 1]float32
	x := room[:0]
	for i := range c {
		x = append(x, c[i].LogProb)
	}
	return simd.LogSumExp(append(x, other))
}

// Commits ranks the off-path candidates that one Commit of a drafter brought, of all its sequences, on all workers.
type Commits struct {
	tasks    []commitTask
	samplers []*sample.Sampler
	vocab    int
}

type commitTask struct {
	offPath *OffPath
	rows    *draft.Rows
	number  int
	like    *sample.Sampler
	history *sample.History
}

// Reset begins a Commit.
func (c *Commits) Reset() { c.tasks = c.tasks[:0] }

// Learn takes in rows of a sequence whose target chooses as like does; history is its committed text, where penalties look at it. t is the
// tree whose nodes' features were kept.
func (c *Commits) Learn(x *Text, t *tree.Tree, r *draft.Rows, like *sample.Sampler, history *sample.History) {
	x.observe(t, r)
	x.learn(r.Tokens)
	for i := range x.offPath.Learn(r) {
		c.tasks = append(c.tasks, commitTask{&x.offPath, r, i, like, history})
	}
}

// Run ranks them, over the tokens of a vocabulary, each worker with a sampler of its own for scratch.
func (c *Commits) Run(pool *par.Pool, samplers []*sample.Sampler, vocab int) {
	c.samplers, c.vocab = samplers, vocab
	pool.Run(len(c.tasks), (*commitJob)(c))
}

type commitJob Commits

func (c *commitJob) Do(worker, i int) {
	x := &c.tasks[i]
	sampler := c.samplers[worker]
	sampler.Like(x.like)
	x.offPath.Rank(x.number, x.rows, sampler, c.vocab, x.history)
}
