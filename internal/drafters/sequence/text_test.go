package sequence_test

import (
	"testing"

	"github.com/grovellm/grove/draft"
	"github.com/grovellm/grove/internal/drafters/sequence"
	"github.com/grovellm/grove/internal/nn"
	"github.com/grovellm/grove/tree"
	"pgregory.net/rapid"
)

// place is a pass whose taps are places in the text.
type place struct{ at int }

func (p place) Logits(int, int) []float32    { return nil }
func (p place) Tap(t, _, node int) []float32 { return []float32{float32(t), float32(p.at + node)} }
func (p place) rows(tokens []int32) (r draft.Rows) {
	r = draft.Rows{Tokens: tokens, Next: -1, Pass: p, Tree: tree.Chain(tokens)}
	for i := range tokens {
		r.Nodes = append(r.Nodes, int32(i))
	}
	return r
}

// read reads entries of a text, in passes of random size.
func read(r *rapid.T, x *sequence.Text) {
	for x.Waiting() > 0 && rapid.IntRange(0, 5).Draw(r, "read") > 0 {
		n := rapid.IntRange(1, min(x.Waiting(), x.Room())).Draw(r, "entries")
		x.Cache.Reserve(0, n*x.Rows)
		x.Cache.CommitAll()
		x.Read(n)
		if entries := x.Cache.Len() / x.Rows; entries > x.Window {
			r.Fatalf("%d entries in a window of %d", entries, x.Window)
		}
	}
}

// A text keeps each token with its taps from the commit until it has been read, and keeps entries
// within its window. A text that resumes another begins where the target's rows begin, requests at
// most as many rows as a text without memory needs, and has at least as many entries as those rows
// give.
func TestText(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		o := sequence.TextOptions{
			Layers: rapid.IntRange(0, 2).Draw(r, "taps"), Ahead: rapid.Bool().Draw(r, "ahead"),
			Rows:   rapid.SampledFrom([]int{1, 3, 4}).Draw(r, "rows"),
			Window: rapid.SampledFrom([]int{1, 30, 128, 200, 700}).Draw(r, "window"),
		}
		o.Ahead = o.Ahead && o.Layers > 0
		pages := nn.Pages{Layers: 1, Heads: 1, Dim: 4, Rope: nn.NewRope(nn.Frequencies(100, 4, nil), false)}
		verify := func(x *sequence.Text, at int) { // at least at tokens are known
			for i, token := range x.Tokens {
				want := int(x.Tokens[0]) + i
				late := i == len(x.Tokens)-1 && want < at-1
				if int(token) != want || late || o.Layers > 0 && x.Taps[i*2*o.Layers+1] != float32(want) {
					r.Fatalf("token %d of %d that wait after %d is %d, taps are %g", i, len(x.Tokens), at, token,
						x.Taps)
				}
			}
			if ahead := map[bool]int{true: 1}[o.Ahead && len(x.Tokens) > 0]; len(x.Todo()) != len(x.Tokens)-ahead {
				r.Fatalf("%d of %d tokens that wait can be read", len(x.Todo()), len(x.Tokens))
			}
		}
		commit := func(x *sequence.Text, at, to int) {
			for at < to {
				n := min(rapid.IntRange(1, 300).Draw(r, "tokens"), to-at)
				tokens := make([]int32, n)
				for i := range tokens {
					tokens[i] = int32(at + i)
				}
				rows := place{at}.rows(tokens)
				if !x.Commit(&rows) {
					r.Fatal("the text is forgotten")
				}
				at += n
				verify(x, at)
				read(r, x)
				verify(x, at)
			}
		}
		a := sequence.NewText(o, pages.NewCache())
		length := rapid.IntRange(0, 1500).Draw(r, "length")
		commit(a, 0, length)

		common := rapid.IntRange(0, length).Draw(r, "common")
		if rapid.Bool().Draw(r, "late") {
			common = max(length-rapid.IntRange(0, 200).Draw(r, "other"), 0)
		}
		n := common + rapid.IntRange(0, 100).Draw(r, "more")
		b := sequence.NewText(o, pages.NewCache())
		from := a
		if rapid.IntRange(0, 3).Draw(r, "alone") == 0 {
			from = nil
		}
		first := b.Resume(n, from, common)
		recall := min(sequence.Recall, o.Window)
		if first > n || first < n-recall || o.Layers == 0 && first != n {
			r.Fatalf("of %d rows those from %d on are wanted again", n, first)
		}
		if from != nil && length < o.Window && n-common < recall && first < common-1 {
			r.Fatalf("nothing is taken over of %d tokens: rows from %d on are wanted again", common, first)
		}
		for at := 0; at < first; {
			chunk := min(rapid.IntRange(1, 500).Draw(r, "chunk"), first-at)
			rows := draft.Rows{Tokens: make([]int32, chunk), Next: -1}
			for i := range rows.Tokens {
				rows.Tokens[i] = int32(at + i)
			}
			if !b.Commit(&rows) {
				r.Fatalf("rows up to %d of %d without a pass make the text forget", at+chunk, first)
			}
			at += chunk
			verify(b, at)
			read(r, b)
		}
		commit(b, first, n)
		for b.Waiting() > 0 {
			read(r, b)
		}
		has := b.Cache.Len()/o.Rows + len(b.Tokens)
		if has > n || o.Window >= 128 && has < min(recall, n) { // smaller windows may have been emptied
			r.Fatalf("%d tokens in common, %d cached, read again from %d on: the text has %d", common, n, first, has)
		}
		a.Close()
		b.Close()
		if rows := (draft.Rows{Tokens: []int32{1}, Skip: true}); b.Commit(&rows) || len(b.Tokens) > 0 {
			r.Fatal("rows to be skipped are kept")
		}
	})
}
