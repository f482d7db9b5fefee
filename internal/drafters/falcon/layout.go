package falcon

import "github.com/grovellm/grove/tree"

// LayOut makes t a chain of rows of text that see one another within blocks of k. The first block
// starts at row 0. If last is set, one block ends with the last row; the rows before it that do not
// fill a block see one another.
func (c *Config) LayOut(t *tree.Tree, tokens []int32, last bool) {
	t.ResetChain(tokens)
	n := len(tokens)
	if last && n >= c.Block {
		n -= c.Block
		c.join(t, n, len(tokens))
	}
	for from := 0; from < n; from += c.Block {
		c.join(t, from, min(from+c.Block, n))
	}
}

// Branch appends a block of rows with the given tokens below a row, and returns the first.
func (c *Config) Branch(t *tree.Tree, row int, tokens []int32) int {
	first := t.Len()
	for _, token := range tokens {
		row = t.AppendApart(row, token)
	}
	c.join(t, first, first+len(tokens))
	return first
}

// join lets each of rows [from, to) of a chain see the later ones.
func (c *Config) join(t *tree.Tree, from, to int) {
	for i := from; i < to; i++ {
		for j := i + 1; j < to; j++ {
			t.SetSees(i, j, true)
		}
	}
}
