package jet_test

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/grovellm/grove/internal/drafters/jet"
	"github.com/grovellm/grove/internal/heads/headfile"
	"github.com/grovellm/grove/internal/model"
	"github.com/grovellm/grove/internal/testing/cases"
	"github.com/grovellm/grove/tree"
)

// A block's rows see the text up to the anchor's parent and, within the block, what its mask says.
// Blocks of one text do not see each other.
func TestBranchSees(t *testing.T) {
	cases.Check(t, 40, func(t *rapid.T) {
		c := jet.Config{Base: headfile.Base{Config: model.Config{Vocab: 50}},
			Block:  rapid.IntRange(2, 9).Draw(t, "block"),
			Causal: rapid.Bool().Draw(t, "causal"), Mask: 7}
		chain := rapid.SliceOfN(rapid.Int32Range(0, 49), 1, 30).Draw(t, "text")
		var b tree.Tree
		b.ResetChain(chain)
		type block struct{ first, parent int }
		var blocks []block
		for range rapid.IntRange(1, 5).Draw(t, "blocks") {
			parent := rapid.IntRange(0, len(chain)-1).Draw(t, "parent")
			blocks = append(blocks, block{c.Branch(&b, parent, rapid.Int32Range(0, 49).Draw(t, "anchor")), parent})
		}
		if b.Len() != len(chain)+len(blocks)*c.Block {
			t.Fatalf("%d nodes for a text of %d and %d blocks of %d", b.Len(), len(chain), len(blocks), c.Block)
		}
		for _, k := range blocks {
			for i := range c.Block {
				row := k.first + i
				if int(b.Depth[row]) != k.parent+1+i {
					t.Fatalf("row %d of a block below %d is at position %d", i, k.parent, int(b.Depth[row]))
				}
				if want := i > 0; (b.Token[row] == c.Mask) != want && b.Token[k.first] != c.Mask {
					t.Fatalf("row %d has token %d", i, b.Token[row])
				}
				for j := range b.Len() {
					want := j <= k.parent || j >= k.first && j < k.first+c.Block && (!c.Causal || j <= row)
					if b.Sees(row, j) != want {
						t.Fatalf("causal %v, block of %d below %d: row %d sees node %d: %v", c.Causal, c.Block,
							k.parent, i, j, !want)
					}
				}
			}
		}
	})
}
