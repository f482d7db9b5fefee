package shortlist

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/grovellm/grove/internal/inside/lower"
	"github.com/grovellm/grove/internal/kernels/gemm"
	"github.com/grovellm/grove/internal/kernels/par"
	"github.com/grovellm/grove/internal/nn"
	"github.com/grovellm/grove/internal/nn/output"
	"github.com/grovellm/grove/sample"
)

// randomHead returns a head with random weights in f32, and the weights.
func randomHead(r *rand.Rand, vocab, d int) (*Head, nn.Mat) {
	m := nn.NewMat(vocab, d)
	for i := range m.Data {
		m.Data[i] = float32(r.NormFloat64())
	}
	return headOf(m), m
}

func randomRanks(r *rand.Rand, vocab int) *Ranks {
	ranks := &Ranks{Kept: r.IntN(min(vocab, 40) + 1)}
	for _, token := range r.Perm(vocab) {
		ranks.Order = append(ranks.Order, int32(token))
	}
	return ranks
}

// listed returns a list's actual tokens, which must all differ.
func listed(t *rapid.T, l *List) map[int32]bool {
	set := map[int32]bool{}
	for _, token := range l.Tokens() {
		if set[token] {
			t.Fatalf("token %d is listed twice", token)
		}
		if token != output.NoToken {
			set[token] = true
		}
	}
	return set
}

// Frequent lists have the tokens of highest rank: as many as the step's budget and the kept tokens,
// rounded up to at most a whole panel more. Each step's list is part of the previous one's.
func TestFrequentListsByRank(t *testing.T) {
	pool := par.New(1)
	defer pool.Close()
	rapid.Check(t, func(t *rapid.T) {
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
		vocab := rapid.IntRange(1, 700).Draw(t, "vocab")
		head, _ := randomHead(r, vocab, 8)
		ranks := randomRanks(r, vocab)
		size := rapid.IntRange(1, vocab).Draw(t, "size")
		aware := rapid.Bool().Draw(t, "position-aware")
		f, err := NewFrequent(pool, head, ranks, size, aware)
		if err != nil {
			t.Fatal(err)
		}
		before := vocab
		for step := range 30 {
			want := size
			if aware && step >= 2 {
				want = max(size/(min(step, lastStep)+1), 1)
			}
			lists := make([]*List, 1)
			f.Choose([]Query{{State: f.Begin(&sample.Params{}), Step: step}}, lists)
			got := listed(t, lists[0])
			want = max(want, ranks.Kept)
			if n := len(got); n < want || n > (want+gemm.Panel-1)/gemm.Panel*gemm.Panel || n > before {
				t.Fatalf("step %d lists %d tokens after %d, want %d", step, n, before, want)
			}
			before = len(got)
			for _, token := range ranks.Order[:len(got)] {
				if !got[token] {
					t.Fatalf("step %d lists %d tokens without %d", step, len(got), token)
				}
			}
		}
	})
}

// A context list has the core and the tokens that came up last, whatever came up, and its rows are
// the head's.
func TestContextListsWhatCameUp(t *testing.T) {
	pool := par.New(1)
	defer pool.Close()
	rapid.Check(t, func(t *rapid.T) {
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 2))
		vocab := rapid.IntRange(1, 300).Draw(t, "vocab")
		head, w := randomHead(r, vocab, 8)
		ranks := randomRanks(r, vocab)
		c, err := NewContext(pool, head, ranks, rapid.IntRange(1, vocab).Draw(t, "core"),
			rapid.IntRange(0, 70).Draw(t, "extra"))
		if err != nil {
			t.Fatal(err)
		}
		e := nn.NewExec(pool)
		for range 2 { // the second sequence reuses the memory of the first
			p := &sample.Params{Temperature: float32(rapid.IntRange(0, 1).Draw(t, "temperature")),
				TopK: 9 * rapid.IntRange(0, 1).Draw(t, "top-k"), Seed: r.Uint64()}
			s := c.Begin(p)
			var text []int32 // what came up, in order
			at := 0
			for range rapid.IntRange(0, 6).Draw(t, "commits") {
				if rapid.Bool().Draw(t, "alternatives") {
					said := nn.NewMat(rapid.IntRange(1, 5).Draw(t, "places"), vocab)
					for i := range said.Data {
						said.Data[i] = float32(r.NormFloat64())
					}
					s.Alternatives(said.Rows, said)
					for i := range said.Rows {
						logits, best := said.Row(i), make([]int32, vocab)
						for i := range best {
							best[i] = int32(i)
						}
						slices.SortFunc(best, func(a, b int32) int { return cmp.Compare(logits[b], logits[a]) })
						text = append(text, best[:min(alternatives, vocab)]...)
					}
				} else {
					tokens := make([]int32, r.IntN(60))
					for i := range tokens {
						tokens[i] = r.Int32N(int32(vocab + 2)) // a target may have more tokens
					}
					s.Commit(tokens)
					text = append(text, tokens...)
					at += len(tokens)
				}
				lists := make([]*List, 1)
				c.Choose([]Query{{State: s}}, lists)
				got := listed(t, lists[0])
				want := map[int32]bool{}
				for token, in := range c.in {
					if in {
						want[int32(token)] = true
					}
				}
				if core := len(want); core < ranks.Kept {
					t.Fatalf("a core of %d tokens, and %d are kept", core, ranks.Kept)
				}
				for most, i := len(want)+c.extra, len(text)-1; i >= 0 && len(want) < most; i-- {
					if int(text[i]) < vocab {
						want[text[i]] = true
					}
				}
				for position := at + 1; position <= at+ahead && p.Temperature > 0 && p.TopK == 0 &&
					c.extra > 0; position++ {
					n := 0
					for _, token := range lower.AppendHighNoise(nil, p.Seed, position, vocab, noiseTokens) {
						if !want[token] && n < noiseRows {
							want[token] = true
							n++
						}
					}
				}
				if len(got) != len(want) {
					t.Fatalf("%d tokens are listed, want %d", len(got), len(want))
				}
				for token := range want {
					if !got[token] {
						t.Fatalf("token %d came up and is not listed", token)
					}
				}
				// The logits of a unit vector are a column of the weights.
				x := nn.NewMat(1, 8)
				dst := nn.NewMat(1, lists[0].Width())
				k := r.IntN(8)
				x.Data[k] = 1
				new(output.Lists).Run(e, nn.Source{X: x}, []*output.Shortlist{&lists[0].Shortlist}, dst)
				for i, token := range lists[0].Tokens() {
					if token != output.NoToken && dst.Data[i] != w.Row(int(token))[k] {
						t.Fatalf("token %d has another's row", token)
					}
				}
			}
			s.Close()
		}
	})
}
