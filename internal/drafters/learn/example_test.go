package learn_test

import (
	"testing"

	"github.com/grovellm/grove/draft"
	"github.com/grovellm/grove/internal/drafters/drafttest"
	"github.com/grovellm/grove/internal/drafters/learn"
	"github.com/grovellm/grove/tree"
	"pgregory.net/rapid"
)

const vocab = 256

// counted is a pass over a text whose tokens and taps are the token's place modulo the vocabulary.
type counted struct{ *tree.Tree }

func (p counted) Tap(t, _, node int) []float32 { return []float32{float32(p.Token[node]), float32(t)} }
func (p counted) Logits(_, i int) []float32 {
	x := make([]float32, vocab)
	x[p.Token[i]] = 1
	return x
}

// For any lengths of prompts, chunks and rounds, each example is a stretch of the text, of limited
// length, with taps and the target's tokens at the right rows. Together the examples have each
// round once. The memory of a collector is bounded, whether or not rounds had drafts.
func TestCollector(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := drafttest.Must(learn.NewCollector(2, vocab))(t)
		at, rounds := 0, 0
		rows := func(n int, next int32) *draft.Rows {
			r := &draft.Rows{Next: next}
			for i := range n {
				r.Tokens, r.Nodes = append(r.Tokens, int32((at+i)%vocab)), append(r.Nodes, int32(i))
			}
			r.Tree = tree.Chain(r.Tokens)
			r.Pass = counted{r.Tree}
			at += n
			return r
		}
		var examples []*learn.Example
		for _, n := range rapid.SliceOfN(rapid.IntRange(1, 600), 1, 4).Draw(t, "chunks") {
			if c.Take(rows(n, -1), nil) != nil {
				t.Fatal("a prompt is an example")
			}
		}
		plain := rapid.SampledFrom([]int{0, 3, 200, 1500}).Draw(t, "plain rounds between")
		for _, n := range rapid.SliceOfN(rapid.IntRange(1, 30), 1, 60).Draw(t, "rounds") {
			if l := c.Take(rows(n, int32((at+n)%vocab)), &learn.Round{Accepted: n - 1}); l != nil {
				examples = append(examples, l)
			}
			rounds++
			for range rapid.IntRange(0, plain).Draw(t, "plain") {
				if l := c.Take(rows(1, int32((at+1)%vocab)), nil); l != nil {
					examples = append(examples, l)
				}
				if c.Bytes() > 1<<17 {
					t.Fatalf("%d bytes are held after %d tokens", c.Bytes(), at)
				}
			}
		}
		if l := c.Finish(); l != nil {
			examples = append(examples, l)
		}
		for i, l := range examples {
			n, first := len(l.Tokens), l.Tokens[0]
			if len(l.Taps) != (n-1)*4 || l.Width != 4 || n > 384+31 {
				t.Fatalf("example %d: %d tokens, %d numbers of taps, %d a row", i, n, len(l.Taps), l.Width)
			}
			for k, token := range l.Tokens {
				wrong := k < n-1 && (l.Taps[4*k] != float32(token) || l.Taps[4*k+2] != float32(token))
				if wrong || token != (first+int32(k))%vocab {
					t.Fatalf("example %d: token %d is of place %d, the first of %d", i, k, token, first)
				}
			}
			for row := l.From; row < n-1; row++ {
				if s := l.Said[(row-l.From)*learn.Places]; s.Token != l.Tokens[row] {
					t.Fatalf("example %d: of row %d the target said %d, want %d", i, row, s.Token, l.Tokens[row])
				}
			}
			for _, r := range l.Rounds {
				if r.Root < 0 || r.Root+r.Accepted >= n-1 {
					t.Fatalf("example %d: a round of %d from row %d of %d", i, r.Accepted, r.Root, n)
				}
			}
			rounds -= len(l.Rounds)
			if l.Bytes() < 4*len(l.Tokens)+4*len(l.Taps)+8*len(l.Said) || l.Bytes() > 1<<17 {
				t.Fatalf("example %d: %d bytes", i, l.Bytes())
			}
		}
		if rounds != 0 {
			t.Fatalf("%d rounds are in no example", rounds)
		}
	})
}
