package falcon

import "github.com/grovellm/grove/tree"

// LayOut makes t a chain of rows of text whose rows see one another within blocks of k: the first
// at row 0, and where last is set a block that ends with the last row. The rows before that one, if
// not a whole block, see one another.
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

// Branch appends a block of rows with so many tokens below a row, and returns the first.
func (c *Config) Branch(t *tree.Tree, row int, tokens []int32) int {
	first := t.Len()
	for _, token := range tokens {
		row = t.AppendApart(row, token)
	}
	c.join(t, first, first+len(tokens))
	return first
}

// join makes rows [from, to) of a chain see those after them.
func (c *Config) join(t *tree.Tree, from, to int) {
	for i := from; i < to; i++ {
		for j := i + 1; j < to; j++ {
			t.SetSees(i, j, true)
		}
	}
}
