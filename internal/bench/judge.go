// A proposed tree, judged by the target.

package bench

import (
	"cmp"
	"math"
	"slices"

	"github.com/grovellm/grove/internal/kernels/simd"
	"github.com/grovellm/grove/tree"
)

// branches is the number of a tree's branches that are judged: those that the drafter trusts most.
const branches = 5

// impossible stands for the log-probability of 0, so that sums remain finite.
const impossible = -1000

// judged is the target's judgement of a tree.
type judged struct {
	accepted int      // tokens that a round would commit, including the bonus token
	ranks    []branch // the paths to the leaves, by the drafter's probability, the highest first
	best     []branch // the drafter's likeliest path, up to each depth: from each node to its likeliest child
}

// branch is a path of a tree, without its root.
type branch struct {
	Tokens []int32 `json:"-"`
	// the sum of the drafter's log-probabilities of its nodes (JetSpec, equation 10)
	Draft  float64 `json:"draft_logprob"`
	Target float64 `json:"target_logprob"` // the target's sum, each node given those before it (its equation 4)
}

// gap returns how much likelier the branch is to the drafter than to the target, in nats.
func (b *branch) gap() float64 { return b.Draft - b.Target }

// judge judges a tree by the target's logits at its nodes.
func judge(t *tree.Tree, logits func(node int) []float32) (j judged) {
	target := make([]float64, t.Len()) // log-probability of each path; 0 if not asked for yet
	normal := make([]float64, t.Len()) // for each node, the logarithm of its logits' normaliser; NaN: not known yet
	for i := range normal {
		normal[i] = math.NaN()
	}
	var path func(node int) float64
	path = func(node int) float64 {
		if node == 0 || target[node] != 0 {
			return target[node]
		}
		parent := int(t.Parent[node])
		row := logits(parent)
		if math.IsNaN(normal[parent]) {
			most := row[argmax(row)]
			normal[parent] = float64(most) + math.Log(simd.SumExp(row, most))
		}
		target[node] = path(parent) + float64(row[t.Token[node]]) - normal[parent]
		return target[node]
	}
	branchTo := func(node int) (b branch) {
		for _, i := range t.Path(node, nil)[1:] {
			b.Tokens = append(b.Tokens, t.Token[i])
			b.Draft += max(float64(t.LogProb[i]), impossible)
		}
		b.Target = path(node)
		return b
	}

	var leaves []int
	for i := 1; i < t.Len(); i++ {
		if !slices.Contains(t.Parent, int32(i)) {
			leaves = append(leaves, i)
		}
	}
	slices.SortStableFunc(leaves, func(a, b int) int { return cmp.Compare(t.PathLogProb(b), t.PathLogProb(a)) })
	for _, leaf := range leaves[:min(len(leaves), branches)] {
		j.ranks = append(j.ranks, branchTo(leaf))
	}

	var children []int32
	for node := 0; ; {
		children = t.Children(node, children[:0])
		if len(children) == 0 {
			break
		}
		node = int(slices.MaxFunc(children, func(a, b int32) int { return cmp.Compare(t.LogProb[a], t.LogProb[b]) }))
		j.best = append(j.best, branchTo(node))
	}

	j.accepted = 1
	for node := t.Child(0, argmax(logits(0))); node >= 0; node = t.Child(node, argmax(logits(node))) {
		j.accepted++
	}
	return j
}

// argmax returns the token with the largest logit, the first of equal ones.
func argmax(logits []float32) int32 { return int32(simd.ArgMax(logits)) }
