package specblock_test

import (
	"math"
	"slices"
	"testing"

	"github.com/grovellm/grove/internal/drafters/drafttest"
	"github.com/grovellm/grove/internal/drafters/specblock"
	"github.com/grovellm/grove/internal/model"
	"github.com/grovellm/grove/internal/nn"
	"github.com/grovellm/grove/internal/testing/cases"
	"github.com/grovellm/grove/tree"
	"pgregory.net/rapid"
)

// oracle is a head over a text, without a drafter.
type oracle struct {
	n      *specblock.Network
	e      *nn.Exec
	cache  *nn.Cache
	bufs   specblock.Buffers
	layout specblock.Layout
	states [][]float32 // of every row of the layout
}

// newOracle reads a text and its root in chunks of chunk entries. The last entry's rows stay
// pending; the states of those before it are not needed.
func newOracle(n *specblock.Network, m *model.Model, id int, text []int32, root int32, chunk int) *oracle {
	pages := n.Pages()
	o := &oracle{n: n, e: nn.NewExec(m.Pool()), cache: pages.NewCache()}
	p := drafttest.Pass{Text: id, Hidden: n.Hidden, Tree: tree.Chain(text)}
	tokens := append(slices.Clone(text[1:]), root)
	for at := 0; at < len(text); {
		size := min(chunk, len(text)-at)
		if at < len(text)-1 {
			size = min(size, len(text)-1-at) // the last one by itself
		}
		taps := nn.NewMat(size, len(n.Taps)*n.Hidden)
		for i := range size {
			for t := range n.Taps {
				copy(taps.Row(i)[t*n.Hidden:], p.Tap(t, 0, at+i))
			}
		}
		n.Text(&o.layout, at, tokens[at:at+size])
		c := nn.NewMat(size, n.Hidden)
		n.Condition(o.e, taps, c)
		o.run(at+size < len(text) && chunk > 1, 0, c)
		at += size
		if at < len(text) {
			o.cache.CommitAll()
			o.states = o.states[:0]
		}
	}
	return o
}

// run computes the layout's rows from the given one on, or reads them without computing states.
func (o *oracle) run(read bool, from int, c nn.Mat) {
	rows := o.layout.Tree.Len() - from
	var p specblock.Pass
	o.n.Add(&p, &o.layout, o.cache, from)
	x := nn.NewMat(rows, o.n.Hidden)
	if read {
		o.n.Read(o.e, &p, c, x, &o.bufs)
	} else {
		o.n.Run(o.e, &p, c, x, &o.bufs)
	}
	for i := range rows {
		o.states = append(o.states, x.Row(i))
	}
}

// branch computes blocks that start from rows with tokens, all in one pass. It returns the first
// row of each.
func (o *oracle) branch(rows []int, tokens []int32, slots int) (first []int) {
	from := o.layout.Tree.Len()
	c := nn.NewMat(len(rows), o.n.Hidden)
	for i, row := range rows {
		copy(c.Row(i), o.states[row])
		first = append(first, o.n.Branch(&o.layout, row, tokens[i], slots))
	}
	o.run(false, from, c)
	return first
}

// logits returns the logits of rows.
func (o *oracle) logits(first, rows int) nn.Mat {
	x, out := nn.NewMat(rows, o.n.Hidden), nn.NewMat(rows, o.n.Output())
	for i := range rows {
		copy(x.Row(i), o.states[first+i])
	}
	o.e.Linear(nn.Source{X: x, Norm: &o.n.Norm}, nn.Proj{Linear: &o.n.Head, Dst: out})
	return out
}

func sameBits(a, b []float32) bool {
	return slices.EqualFunc(a, b, func(x, y float32) bool { return math.Float32bits(x) == math.Float32bits(y) })
}

// Entries read in chunks equal those read one at a time; blocks computed in one pass equal those
// computed one by one; and a block's rows do not change when it is shortened: to the bit, whatever
// the head, and however many blocks continue each other.
func TestBlocksTogetherAndAlone(t *testing.T) {
	m := drafttest.OpenTarget(t, 400)
	cases.Check(t, 40, func(r *rapid.T) {
		n := genHead(r, m)
		text, root := drafttest.GenText(r, 1, 40), rapid.Int32Range(0, vocab-1).Draw(r, "root")
		size := rapid.IntRange(1, 40).Draw(r, "chunk")
		all := newOracle(n, m, 1, text, root, size)
		var froms [][]int // starts of each level
		var tokens [][]int32
		slots := []int{n.Block}
		lastLevel := []int{0, n.Block} // rows
		for range rapid.IntRange(1, 3).Draw(r, "levels") {
			var rows []int
			var said []int32
			for range rapid.IntRange(1, 5).Draw(r, "starts") {
				rows = append(rows, rapid.IntRange(lastLevel[0], lastLevel[1]-1).Draw(r, "row"))
				said = append(said, rapid.Int32Range(0, vocab-1).Draw(r, "token"))
			}
			froms, tokens = append(froms, rows), append(tokens, said)
			slots = append(slots, rapid.IntRange(1, n.Block).Draw(r, "slots"))
			all.branch(rows, said, slots[len(slots)-1])
			lastLevel = []int{lastLevel[1], all.layout.Tree.Len()}
		}

		// One path of blocks after the other, each with its own cache.
		first := n.Block
		for level, rows := range froms {
			for i := range rows {
				one := newOracle(n, m, 1, text, root, 1)
				// the way up, from the row of this start to the first block
				var way []int
				var words []int32
				at, word := rows[i], tokens[level][i]
				for l := level; ; l-- {
					way, words = append(way, at), append(words, word)
					if l == 0 {
						break
					}
					start := n.Block
					for k := 1; k < l; k++ {
						start += len(froms[k-1]) * slots[k]
					}
					block := (at - start) / slots[l]
					way[len(way)-1] = (at - start) % slots[l] // slot
					at, word = froms[l-1][block], tokens[l-1][block]
				}
				row := way[len(way)-1]
				for j := len(way) - 1; j >= 0; j-- {
					b := one.branch([]int{row}, []int32{words[j]}, n.Block)[0]
					if j > 0 {
						row = b + way[j-1]
						continue
					}
					for k := range slots[level+1] {
						if got, want := all.states[first+i*slots[level+1]+k], one.states[b+k]; !sameBits(got, want) {
							r.Fatalf("level %d, block %d of %d, slot %d of %d: other bits", level+2, i, len(rows), k,
								n.Block)
						}
					}
				}
			}
			first += len(rows) * slots[level+1]
		}
	})
}
