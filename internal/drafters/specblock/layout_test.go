package specblock_test

import (
	"testing"

	"github.com/grovellm/grove/internal/drafters/specblock"
	"github.com/grovellm/grove/internal/heads/headfile"
	"github.com/grovellm/grove/internal/model"
	"github.com/grovellm/grove/internal/testing/cases"
	"pgregory.net/rapid"
)

// The mask of the paper's figure 3, row by row: a slot of an entry sees all slots of earlier
// entries, and its own entry's up to itself. A row of a later block sees what the row from which
// its block started sees, and its own block up to itself.
func TestWhatRowsSee(t *testing.T) {
	cases.Check(t, 40, func(t *rapid.T) {
		c := specblock.Config{Base: headfile.Base{Config: model.Config{Vocab: 50}},
			Block:        rapid.IntRange(1, 5).Draw(t, "block"),
			SamePosition: rapid.Bool().Draw(t, "same position")}
		k := c.Block
		text := rapid.SliceOfN(rapid.Int32Range(0, 49), 1, 12).Draw(t, "text")
		before := rapid.IntRange(0, 9).Draw(t, "before")
		var l specblock.Layout
		c.Text(&l, before, text)
		type block struct {
			first, rows int
			from        int // row from which it starts; -1: an entry of text
		}
		var blocks []block
		of := map[int]int{} // the block of each row
		for i := range text {
			blocks = append(blocks, block{i * k, k, -1})
		}
		for range rapid.IntRange(0, 6).Draw(t, "blocks") {
			from := rapid.IntRange(0, l.Tree.Len()-1).Draw(t, "from")
			rows := rapid.IntRange(1, k).Draw(t, "rows")
			blocks = append(blocks, block{c.Branch(&l, from, 7, rows), rows, from})
		}
		for i, b := range blocks {
			for j := range b.rows {
				of[b.first+j] = i
			}
		}
		if len(of) != l.Tree.Len() || len(l.Position) != l.Tree.Len() || len(l.Slot) != l.Tree.Len() {
			t.Fatalf("%d rows of %d blocks: a tree of %d, positions of %d, slots of %d", len(of), len(blocks),
				l.Tree.Len(), len(l.Position), len(l.Slot))
		}
		var sees func(row, other int) bool
		sees = func(row, other int) bool {
			b := blocks[of[row]]
			switch {
			case of[row] == of[other]:
				return other <= row
			case b.from < 0: // text
				return of[other] < of[row]
			}
			return sees(b.from, other)
		}
		for row := range l.Tree.Len() {
			b := blocks[of[row]]
			slot := row - b.first
			position := before + of[row] + 1 + slot
			if b.from >= 0 {
				position = int(l.Position[b.from]) + 1 + slot
				for c.SamePosition && b.from >= 0 {
					position = int(l.Position[blocks[of[b.from]].first]) + slot
					b = blocks[of[b.from]]
				}
			}
			if int(l.Position[row]) != position || int(l.Slot[row]) != slot {
				t.Fatalf("row %d, slot %d, stands at %d, want %d", row, l.Slot[row], l.Position[row], position)
			}
			for other := range l.Tree.Len() {
				if got, want := l.Tree.Sees(row, other), sees(row, other); got != want {
					t.Fatalf("K = %d: row %d of block %d sees row %d of block %d: %v", k, row, of[row], other,
						of[other], got)
				}
			}
		}
	})
}
