package train

import (
	"context"
	"fmt"

	"github.com/grovellm/grove/draft"
	"github.com/grovellm/grove/internal/drafters/grow"
	"github.com/grovellm/grove/internal/nn"
	"github.com/grovellm/grove/tree"
)

// Rounds decodes a text from token first on with the trees of a drafter, at most most tokens. taps
// are those of all its tokens, each width wide for each layer that the drafter reads. It returns
// the number of rounds that this takes, and of the tokens produced.
func Rounds(d draft.Drafter, taps nn.Mat, width int, text []int32, first, most, budget int) (rounds, tokens int,
	err error) {
	s, err := d.Begin(draft.Options{})
	if err != nil {
		return 0, 0, err
	}
	defer s.Close()
	t, p := new(tree.Tree), &heldPass{taps: taps, width: width}
	t.ResetChain(text[:first])
	path := make([]int32, first)
	for i := range path {
		path[i] = int32(i)
	}
	p.tree = t
	if err := d.Commit([]draft.Rows{{State: s, Tokens: text[:first], Tree: t, Nodes: path, Next: -1,
		Pass: p}}); err != nil {
		return 0, 0, err
	}
	for tokens < most {
		t.Reset(text[first])
		if _, err := d.Propose(context.Background(), []draft.Request{{State: s, Tree: t, Budget: budget,
			Depth: len(text)}}); err != nil {
			return 0, 0, err
		}
		path, p.at = append(path[:0], 0), first
		for node := 0; first+len(path) < len(text); path = append(path, int32(node)) {
			node = t.Child(node, text[first+len(path)])
			if node < 0 {
				break
			}
		}
		n := min(len(path), len(text)-1-first) // the last token remains the next root
		if n == 0 {
			break
		}
		if err := d.Commit([]draft.Rows{{State: s, Tokens: text[first : first+n], Tree: t, Nodes: path[:n],
			Next: text[first+n], Pass: p}}); err != nil {
			return 0, 0, err
		}
		first += n
		tokens += min(n, most-tokens)
		rounds++
	}
	return rounds, tokens, nil
}

// heldPass is a target pass over rows of a text whose taps are available.
type heldPass struct {
	taps  nn.Mat // of all tokens
	width int    // of one tap
	at    int    // the place of the tree's root
	tree  *tree.Tree
}

func (p *heldPass) Tap(t, _, node int) []float32 {
	return p.taps.Row(p.at + int(p.tree.Depth[node]))[t*p.width : (t+1)*p.width]
}

// of which nobody asks whose shape takes the drafter at its word
func (p *heldPass) Logits(int, int) []float32 { return nil }

// HeldDepth is the depth to which held-out text is drafted token by token.
const HeldDepth = 8

// Grown is the result on held-out text of drafters that grow trees: with chains, and with EAGLE-2's
// trees with its authors' numbers.
type Grown [2]struct{ rounds, tokens int }

// Add decodes a text as Rounds does, with a drafter from open for each shape.
func (g *Grown) Add(open func(grow.Shape) (draft.Drafter, error), taps nn.Mat, width int, text []int32,
	first, most int) error {
	tree := grow.DefaultDynamic()
	for i, shape := range []grow.Shape{&grow.Linear{K: HeldDepth}, &tree} {
		d, err := open(shape)
		if err != nil {
			return err
		}
		rounds, tokens, err := Rounds(d, taps, width, text, first, most, []int{HeldDepth + 1, tree.N}[i])
		if err != nil {
			return err
		}
		g[i].rounds += rounds
		g[i].tokens += tokens
	}
	return nil
}

// Figures reports τ of both shapes.
func (g *Grown) Figures(figure func(name string, v float64)) {
	for i, name := range []string{"chain", fmt.Sprintf("tree of %d", grow.DefaultDynamic().N)} {
		figure(name, float64(g[i].tokens)/float64(g[i].rounds))
	}
}
