// The union of the parts' trees, node by node with what each part says of it.

package merge

import (
	"math/bits"

	"github.com/grovellm/grove/tree"
)

type union struct {
	tree, spare *tree.Tree

	parts  int
	claims []float32 // node × part: the probability that the part gives the node after its parent, −1 where it has no such node
	by     []uint16  // by node: the parts that propose it, a bit each
	asked  []uint16  // by node: the parts that propose a child of it
	best   []float32 // by node: the largest chance, calibrated, that a part gives it
}

// Who says that a node comes next. Drafters that agree are right more often than the surer of them alone would be, and one whose
// node another leaves out for its own is right less often.
const (
	alone     = iota // a part, and no other says anything
	contested        // a part, and others say something else
	agreed           // two parts or more
	kinds
)

func (u *union) claim(node, part int) float32 { return u.claims[node*u.parts+part] }

func (u *union) kind(node int) int {
	by := u.by[node]
	switch {
	case bits.OnesCount16(by) > 1:
		return agreed
	case u.asked[u.tree.Parent[node]] != by:
		return contested
	}
	return alone
}

// room makes room for what is said of nodes up to i.
func (u *union) room(i int) {
	for len(u.by) <= i {
		u.by, u.asked, u.best = append(u.by, 0), append(u.asked, 0), append(u.best, 0)
		for range u.parts {
			u.claims = append(u.claims, -1)
		}
	}
}

func (u *union) clear(parts int) {
	u.parts = parts
	u.claims, u.by, u.asked, u.best = u.claims[:0], u.by[:0], u.asked[:0], u.best[:0]
}

// say notes that a part proposes a node, as node i of its tree t.
func (u *union) say(node, part int, t *tree.Tree, i int) {
	u.room(node)
	c := &u.claims[node*u.parts+part]
	*c = max(*c, within(exp(t.LogProb[i])))
	u.by[node] |= 1 << part
	u.asked[u.tree.Parent[node]] |= 1 << part
}

// splice shares common prefixes: a node for each token after each path. where is scratch.
func (u *union) splice(trees []*tree.Tree, where []int32) []int32 {
	u.clear(len(trees))
	u.tree.Reset(trees[0].Token[0])
	u.room(0)
	for k, t := range trees {
		where = append(where[:0], 0) // node i of t is node where[i] of the union
		for i := 1; i < t.Len(); i++ {
			node := u.tree.Append(int(where[t.Parent[i]]), t.Token[i], 0)
			where = append(where, int32(node))
			u.say(node, k, t, i)
		}
	}
	return where
}

// align puts the trees side by side (paper 000 §4.1): φ as tree.Splice has it, once for each tree after the first.
func (u *union) align(trees []*tree.Tree, phi []int32) ([]int32, error) {
	if u.spare == nil {
		u.spare = tree.New(0)
	}
	u.clear(len(trees))
	u.tree.Copy(trees[0])
	var err error
	for _, t := range trees[1:] {
		if phi, err = tree.Splice(u.spare, u.tree, t, phi); err != nil {
			return phi, err
		}
		u.tree, u.spare = u.spare, u.tree
	}
	u.room(0)
	node := 1
	for k, t := range trees {
		for i := 1; i < t.Len(); i++ {
			u.say(node, k, t, i)
			node++
		}
	}
	return phi, nil
}
