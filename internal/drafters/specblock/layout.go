// Layouts: which rows there are and what they see, for drafting and for training.

package specblock

import (
	"github.com/grovellm/grove/internal/nn"
	"github.com/grovellm/grove/tree"
)

// Layout has rows of blocks and their positions, as one tree: a row sees its ancestors (figure 3).
// Its buffers are reused.
//
// The main chain has all rows of the first blocks of the text's entries, one after the other. So slot
// k of an entry sees all rows of the entries before it, and the rows of its own up to k. Entry i has
// the taps of token i, counted from 0, and token i + 1. Its slot k has position i + 1 + k, where the
// text has token i + 1 + k, and predicts the token after that. A later block is a chain below the
// row that it starts from.
type Layout struct {
	Tree     tree.Tree
	Position []int32 // of each row
	Slot     []int32 // of each row in its block
}

// Text makes l the main chain of some tokens' entries. The first of them is entry number first of the
// text.
func (c *Config) Text(l *Layout, first int, tokens []int32) {
	c.text(l, first, tokens, c.Block, c.Block)
}

// text is Text with only the first rows of each entry's block: so many, and for the last entry last.
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
// predicts. It returns the number of the block's first row.
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

// Pass has blocks to be computed together. A tape reads it until it has run backward.
type Pass struct {
	Forest nn.Forest
	Tokens []int32 // of each block
	entry  []int32 // of each row: the number of its block, from 1; 0: it takes in neither condition nor token
	slot   []int32 // of each row
	before []int32 // of each row: the one before it in its block; for the first, itself
}

// Reset forgets all blocks.
func (p *Pass) Reset() {
	p.Forest.Reset()
	p.Tokens = p.Tokens[:0]
	p.entry = p.entry[:0]
	p.slot = p.slot[:0]
	p.before = p.before[:0]
}

// Add appends the blocks of l from row number from on to a pass over a cache. The cache gets room for
// them after the rows before: see nn.Forest.
func (c *Config) Add(p *Pass, l *Layout, cache *nn.Cache, from int) {
	rows := l.Tree.Len() - from
	if rows == 0 {
		return
	}
	p.Forest.AddAt(cache, &l.Tree, from, l.Position)
	cache.Reserve(from, rows)
	for i, slot := range l.Slot[from:] {
		if slot == 0 {
			p.Tokens = append(p.Tokens, l.Tree.Token[from+i])
		}
		entry := int32(len(p.Tokens))
		if slot > 0 && !c.Broadcast {
			entry = 0
		}
		p.before = append(p.before, int32(len(p.before))-min(slot, 1))
		p.entry, p.slot = append(p.entry, entry), append(p.slot, slot)
	}
}
