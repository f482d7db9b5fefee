package shortlist

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/grovellm/grove/internal/kernels/gemm"
	"github.com/grovellm/grove/internal/kernels/par"
	"github.com/grovellm/grove/internal/nn/output"
)

// A sequence's own rows are for the tokens that came up last, as many as there are rows, each once.
// When the stale rows have been filled, they are the head's rows, however often that was postponed
// or left unfinished.
func TestOwnRowsAreTheLatestTokens(t *testing.T) {
	pool := par.New(2)
	defer pool.Close()
	rapid.Check(t, func(t *rapid.T) {
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 3))
		vocab := rapid.IntRange(40, 200).Draw(t, "vocab")
		head, w := randomHead(r, vocab, 8)
		size := gemm.Panel * rapid.IntRange(1, 3).Draw(t, "panels")
		o := newTextRows(&Context{pool: pool, head: head, in: make([]bool, vocab), extra: size})
		var text []int32
		for range rapid.IntRange(1, 12).Draw(t, "steps") {
			for range rapid.IntRange(0, 60).Draw(t, "tokens") {
				token := r.Int32N(int32(vocab))
				if known := o.head.Row(token) >= 0; o.add(token) == known {
					t.Fatalf("token %d was there: %v", token, known)
				}
				text = append(text, token)
			}
			switch rapid.IntRange(0, 3).Draw(t, "then") {
			case 0:
				pool.Run(o.fills(), o)
			case 1: // a pass that was cancelled, or interrupted
				if n := o.fills(); n > 0 {
					o.Do(0, r.IntN(n))
				}
			case 2:
				if rapid.Bool().Draw(t, "clear") {
					o.clear()
					text = text[:0]
				}
			}
		}
		pool.Run(o.fills(), o)
		want := map[int32]bool{}
		for i := len(text) - 1; i >= 0 && len(want) < size; i-- {
			want[text[i]] = true
		}
		listed := slices.DeleteFunc(slices.Clone(o.head.Tokens), func(token int32) bool { return token == output.NoToken })
		if len(listed) != len(want) || o.n != len(want) {
			t.Fatalf("%d tokens in %d rows, want %d", len(listed), o.n, len(want))
		}
		row := make([]float32, 8)
		for i, token := range o.head.Tokens[:o.n] {
			if !want[token] {
				t.Fatalf("row %d is of token %d, which is not among the last %d", i, token, size)
			}
			o.head.W.Row(row, i)
			for k, x := range w.Row(int(token)) {
				if math.Float32bits(row[k]) != math.Float32bits(x) {
					t.Fatalf("row %d of token %d is not the head's", i, token)
				}
			}
		}
	})
}
