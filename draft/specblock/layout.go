// Which rows there are and what they see: for drafting, and for training.

package specblock

import (
	"github.com/grovellm/grove/nn"
	"github.com/grovellm/grove/tree"
)

// Layout is rows of blocks and where they stand, as one tree: a row sees its ancestors (figure 3).
// Its buffers are kept.
//
// The trunk is the first blocks of the text's entries, one after the other, all their rows: so slot
// k of an entry sees all rows of the entries before it, and of its own those up to k. Entry i is
// the taps of token i, counted from 0, and token i + 1; its slot k stands at position i + 1 + k,
// where the text has token i + 1 + k, and is to say the token after that. A later block is a chain
// below the row that it starts from.
type Layout struct {
	Tree     tree.Tree
	Position []int32 // of each row
	Slot     []int32 // of each row in its block
}

// Text makes l the trunk of the entries of some tokens; the first of them is entry number first of
// the text.
func (c *Config) Text(l *Layout, first int, tokens []int32) {
	c.text(l, first, tokens, c.Block, c.Block)
}

// text is Text where entries have the first rows of their blocks alone, so many, and the last entry
// so many.
func (c *Config) text(l *Layout, first int, tokens []int32, rows, last int) {
	l.Tree.ResetChain(nil)
	l.Position, l.Slot = l.Position[:0], l.Slot[:0]
	for i, token := range tokens {
		if i == len(tokens)-1 {
			rows = last
		}
		for k := range rows {
			if at := l.Tree.Len(); at == 0 {
				l.Tree.Reset(token)
			} else {
				l.Tree.AppendApart(at-1, token)
			}
			l.Position, l.Slot = append(l.Position, int32(first+i+1+k)), append(l.Slot, int32(k))
		}
	}
}

// Branch adds a block of so many rows, which starts from a row of l with a token that this row
// says. It returns the number of the block's first row.
func (c *Config) Branch(l *Layout, row int, token int32, rows int) int {
	position := l.Position[row] + 1
	if c.SamePosition {
		position = l.Position[row] - l.Slot[row]
	}
	first := l.Tree.Len()
	for k := range rows {
		row = l.Tree.AppendApart(row, token)
		l.Position, l.Slot = append(l.Position, position+int32(k)), append(l.Slot, int32(k))
	}
	return first
}

// Add appends the rows from number from on to a pass over a cache, which has room for them after
// those before: see nn.Forest.
func (l *Layout) Add(f *nn.Forest, c *nn.Cache, from int) { f.AddAt(c, &l.Tree, from, l.Position) }
