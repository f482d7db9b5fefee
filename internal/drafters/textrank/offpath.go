// The target's logits at nodes that were not accepted, which predict its choices at the same
// positions.

package textrank

import (
	"slices"

	"github.com/grovellm/grove/draft"
	"github.com/grovellm/grove/internal/inside/lower"
	"github.com/grovellm/grove/internal/kernels/par"
	"github.com/grovellm/grove/sample"
	"github.com/grovellm/grove/tree"
)

// OffPath keeps the target's first candidates at nodes off the accepted paths of a sequence's last
// trees, at positions that the text has yet to reach. The pass that verified the tree computed them
// anyway. If the text reaches such a position with the same token, the target usually chooses as it
// did there: nearly the same text precedes it, and the same noise is added. The more preceding
// tokens agree, the more often it does.
type OffPath struct {
	entries []offPathEntry
	pool    []sample.Candidate // offPathKept for each entry
	old     int                // number of entries before the last Learn
}

// offPathEntry is the target's result at a node.
type offPathEntry struct {
	position int
	token    [contextMost]int32 // the node's, and those before it; -1 where the tree had none
	node     int32              // in its tree
	count    int                // candidates kept
}

const (
	contextMost = 3 // number of tokens that are compared
	offPathKept = 8 // number of candidates of an entry
)

// agreeAny is the agreement of a node if all entries at its position follow other tokens. Otherwise
// the agreement is the number of tokens that agree, 0 if there is no entry.
const agreeAny = contextMost + 1

// Learn takes in committed rows, the first of them at position root, and returns how many nodes of
// the tree are at later positions. The caller then calls Rank with each number below that, from any
// goroutines, while the rows' Pass is valid.
func (a *OffPath) Learn(r *draft.Rows, root int) (fresh int) {
	end := root + len(r.Tokens)
	n := 0
	for i, s := range a.entries {
		if s.position >= end {
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
			if at < end || at == end && t.Token[node] != r.Next {
				continue // such as nodes of the path; or it follows a token other than the next
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

// Rank ranks the target's candidates at a node that the last Learn counted, over the tokens of a
// vocabulary, with a sampler that chooses as the target's does. h is the committed text, which
// penalties may depend on.
func (a *OffPath) Rank(i int, r *draft.Rows, s *sample.Sampler, vocab int, h *sample.History) {
	at := a.old + i
	x := &a.entries[at]
	kept := a.pool[at*offPathKept : at*offPathKept : (at+1)*offPathKept]
	x.count = len(s.Top(kept, r.Pass.Logits(r.Sequence, int(x.node))[:vocab], x.position+1, h))
}

// context is a node's position, its token, and the tokens before it; -2 where there are none.
type context struct {
	position int
	tokens   [contextMost]int32
}

// contextOf returns the context of a node of a tree whose root follows the text.
func (x *Text) contextOf(t *tree.Tree, node int) context {
	c := context{position: len(x.tokens) + int(t.Depth[node])}
	up := int32(node)
	for i := range c.tokens {
		if up >= 0 {
			c.tokens[i], up = t.Token[up], t.Parent[up]
		} else {
			c.tokens[i] = x.before(c.position - i)
		}
	}
	return c
}

// contextAlong returns the context of the last token of a path that follows the text.
func (x *Text) contextAlong(path []int32) context {
	c := context{position: len(x.tokens) + len(path) - 1}
	for i := range c.tokens {
		if at := len(path) - 1 - i; at >= 0 {
			c.tokens[i] = path[at]
		} else {
			c.tokens[i] = x.before(c.position - i)
		}
	}
	return c
}

// before returns the token at a position of the text.
func (x *Text) before(at int) int32 {
	if at < 0 || at >= len(x.tokens) {
		return -2
	}
	return x.tokens[at]
}

// find returns the latest of the entries that agree with a context in the most tokens. agree is the
// number of these tokens; agreeAny if entries follow only other tokens, in which case kept has the
// first candidate of each; 0 if there is none.
func (a *OffPath) find(c context, room []sample.Candidate) (kept []sample.Candidate, agree int) {
	for i := len(a.entries) - 1; i >= 0; i-- {
		s := &a.entries[i]
		if s.position != c.position || s.count == 0 {
			continue
		}
		first := a.pool[i*offPathKept:][:s.count]
		n := 0
		for n < contextMost && s.token[n] == c.tokens[n] {
			n++
		}
		switch {
		case n > agree || n > 0 && agree == agreeAny:
			kept, agree = first, n
		case n == 0 && (agree == 0 || agree == agreeAny):
			agree = agreeAny
			if len(room) < cap(room) {
				room = append(room, first[0])
			}
			kept = room
		}
	}
	return kept, agree
}

// Commits ranks the off-path candidates that one Commit of a drafter brought for all its sequences,
// on all workers.
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

// Learn takes in rows of a sequence whose target chooses as like does. history is its committed
// text, which penalties may depend on. t is the tree whose nodes' features were kept.
func (c *Commits) Learn(x *Text, t *tree.Tree, r *draft.Rows, like *sample.Sampler, history *sample.History) {
	x.observe(t, r)
	root := len(x.tokens)
	x.learn(r.Tokens)
	for i := range x.offPath.Learn(r, root) {
		c.tasks = append(c.tasks, commitTask{&x.offPath, r, i, like, history})
	}
}

// Run ranks the candidates over the tokens of a vocabulary. Each worker has its own sampler as
// scratch.
func (c *Commits) Run(pool *par.Pool, samplers []*sample.Sampler, vocab int) {
	c.samplers, c.vocab = samplers, vocab
	pool.Run(len(c.tasks), (*commitJob)(c))
}

type commitJob Commits

func (c *commitJob) Do(worker, i int) {
	x := &c.tasks[i]
	sampler := c.samplers[worker]
	lower.SetLike(sampler, x.like)
	x.offPath.Rank(x.number, x.rows, sampler, c.vocab, x.history)
}
