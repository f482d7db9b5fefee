package jet_test

import (
	"math"
	"slices"
	"testing"

	"github.com/grovellm/grove/draft"
	. "github.com/grovellm/grove/internal/drafters/drafttest"
	"github.com/grovellm/grove/internal/drafters/jet"
	"github.com/grovellm/grove/internal/drafters/onepass"
	"github.com/grovellm/grove/internal/model"
	"github.com/grovellm/grove/internal/nn"
	"github.com/grovellm/grove/internal/testing/cases"
	"github.com/grovellm/grove/sample"
	"github.com/grovellm/grove/tree"
	"pgregory.net/rapid"
)

// oracle computes a block from scratch: the context in chunks of chunk rows, then rows rows of the
// block. It returns the logits of every row.
func oracle(n *jet.Network, m *model.Model, id int, text []int32, root int32, chunk, rows int) [][]float32 {
	e, pages := nn.NewExec(m.Pool()), n.Pages()
	c := pages.NewCache()
	defer c.Free()
	var f nn.Forest
	var bufs jet.Buffers
	p := Pass{Text: id, Hidden: n.Hidden}
	for len(text) > 0 {
		size := min(chunk, len(text))
		p.At, p.Tree = c.Len(), tree.Chain(text[:size])
		taps := nn.NewMat(size, len(n.Taps)*n.Hidden)
		for i := range size {
			for t := range n.Taps {
				copy(taps.Row(i)[t*n.Hidden:], p.Tap(t, 0, i))
			}
		}
		f.Reset()
		f.Add(c, p.Tree, 0)
		c.Reserve(0, size)
		n.Context(e, &f, taps, &bufs)
		c.CommitAll()
		text = text[size:]
	}
	var block tree.Tree
	n.LayOut(&block, root, rows)
	f.Reset()
	f.Add(c, &block, 0)
	c.Reserve(0, rows)
	x, out := nn.NewMat(rows, n.Hidden), nn.NewMat(rows, n.Vocab)
	n.Run(e, &f, block.Token, x, &bufs)
	e.Linear(nn.Source{X: x, Norm: &n.Norm}, nn.Proj{Linear: &n.Head, Dst: out})
	var logits [][]float32
	for i := range rows {
		logits = append(logits, out.Row(i))
	}
	return logits
}

func sameBits(a, b []float32) bool {
	return slices.EqualFunc(a, b, func(x, y float32) bool { return math.Float32bits(x) == math.Float32bits(y) })
}

// A context read in chunks equals one read a row at a time, and a causal block's rows do not change
// when the block is shortened, to the bit. (Those of a bidirectional block do.)
func TestBlockCachedAndShortened(t *testing.T) {
	m := OpenTarget(t, 400)
	cases.Check(t, 40, func(r *rapid.T) {
		n := genHead(r, m)
		text, root := GenText(r, 1, 70), rapid.Int32Range(0, Vocab-1).Draw(r, "root")
		want := oracle(n, m, 1, text, root, 1, n.Block)
		rows := n.Block
		if n.Causal {
			rows = rapid.IntRange(1, n.Block).Draw(r, "rows")
		}
		for i, got := range oracle(n, m, 1, text, root, rapid.IntRange(1, 70).Draw(r, "chunk"), rows) {
			if !sameBits(got, want[i]) {
				r.Fatalf("row %d of %d, causal %v: other logits", i, rows, n.Causal)
			}
		}
	})
}

// The proposed chain is what a target with the head's logits would choose: with the same
// processors, the same noise at the same positions, and row k for the token k places after the
// anchor.
func TestChainTakesTheNoise(t *testing.T) {
	m := OpenTarget(t, 400)
	cases.Check(t, 40, func(r *rapid.T) {
		n := genHead(r, m)
		d := newDrafter(r, jet.Options{Tree: onepass.Chain}, n, m)
		var requests []draft.Request
		var rows []draft.Rows
		var all []*Sequence
		var params []sample.Params
		for id := range 2 {
			p := GenParams(r)
			s := Begin(r, d, draft.Options{Sampling: p}, id)
			if cached := GenText(r, 0, 20); len(cached) > 0 {
				Commit(r, d, s.Prompt(cached, n.Hidden, false))
			}
			before := len(s.Text)
			text := make([]int32, rapid.IntRange(1, 379).Draw(r, "length"))
			for i := range text {
				text[i] = int32(i*i+id) % Vocab
			}
			rows = append(rows, s.Prompt(text, n.Hidden, true))
			rows[id].Pass.(*Pass).At -= before // taps by their place in the context
			all, params = append(all, s), append(params, p)
			requests = append(requests, s.Request(100, 100, nil))
		}
		Commit(r, d, rows...)
		Propose(r, d, requests...)
		for id, s := range all {
			logits := oracle(n, m, id, rows[id].Tokens, s.Root, 400, n.Block)
			sampler, err := sample.New(params[id], Vocab)
			if err != nil {
				r.Fatal(err)
			}
			h := sample.NewHistory(&params[id])
			for _, token := range append(slices.Clone(s.Text), s.Root) {
				h.Push(token)
			}
			for k := 1; k < n.Block; k++ {
				if want := sampler.Sample(logits[k], len(s.Text)+k, h); requests[id].Tree.Token[k] != want {
					r.Fatalf("sequence %d, %+v: token %d of the chain is %d, want %d", id, params[id], k,
						requests[id].Tree.Token[k], want)
				}
			}
		}
	})
}
