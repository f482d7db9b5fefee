package merge

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/grovellm/grove/draft"
	"github.com/grovellm/grove/internal/drafters/registry"
	"github.com/grovellm/grove/internal/speculate"
	"github.com/grovellm/grove/sample"
	"github.com/grovellm/grove/tree"
	"pgregory.net/rapid"
)

// toy is an exact target for the real loop: logits and taps are functions of the whole context.
type toy struct {
	vocab int
	salt  uint64
	near  bool // the last two tokens have the most weight, so text repeats
}

func (t *toy) Vocab() int                { return t.vocab }
func (t *toy) Context() int              { return 60 }
func (t *toy) NewCache() speculate.Cache { return new(toyCache) }
func (t *toy) NewPass() speculate.Pass   { return &toyPass{t: t} }

func (t *toy) ForkCache(speculate.Cache) speculate.Cache { panic("no cache is shared") }
func (t *toy) CheckCache(speculate.Cache) error          { return nil }

func (t *toy) logits(text []int32) []float32 {
	whole, near := hashText(t.salt, text), hashText(t.salt, text[max(0, len(text)-2):])
	l := make([]float32, t.vocab)
	for v := range l {
		l[v] = 3 * float32(mix(whole, uint64(v))>>40) / (1 << 24)
		if x := float32(mix(near, uint64(v))>>40) / (1 << 24); t.near {
			l[v] += 8 * x * x * x
		}
	}
	return l
}

type toyCache struct {
	rows    []int32
	pending *tree.Tree
}

func (c *toyCache) Len() int             { return len(c.rows) }
func (c *toyCache) Free()                {}
func (c *toyCache) Reach(n int) int      { return min(n, c.Len()) }
func (c *toyCache) KeepState()           {}
func (c *toyCache) Truncate(n int) error { c.rows = c.rows[:n]; return nil }
func (c *toyCache) Commit(nodes []int32) error {
	for k, n := range nodes {
		if k == 0 && n != 0 || k > 0 && c.pending.Parent[n] != nodes[k-1] {
			return fmt.Errorf("commit of %v, no path from the root", nodes)
		}
		c.rows = append(c.rows, c.pending.Token[n])
	}
	return nil
}

type toyPass struct {
	t    *toy
	rows []speculate.Rows
	base [][]int32
	taps []int
}

func (p *toyPass) Run(ctx context.Context, rows []speculate.Rows, taps []int) error {
	p.rows = slices.Clone(rows)
	p.base = nil
	p.taps = taps
	for _, r := range rows {
		c := r.Cache.(*toyCache)
		c.pending = tree.New(0)
		c.pending.Copy(r.Tree)
		p.base = append(p.base, slices.Clone(c.rows))
	}
	return ctx.Err()
}

func (p *toyPass) after(s, node int) []int32 {
	text := slices.Clone(p.base[s])
	pending := p.rows[s].Tree
	for _, n := range pending.Visible(node, nil) {
		text = append(text, pending.Token[n])
	}
	return text
}

func (p *toyPass) Logits(s, i int) []float32 {
	return p.t.logits(p.after(s, int(p.rows[s].Logits[i])))
}
func (p *toyPass) Tap(t, s, node int) []float32 {
	return []float32{feature(p.taps[t], p.after(s, node))}
}

// Law 2 with merges in the loop: in both modes, at any temperature, budget and batch, the tokens
// are those of plain decoding.
func TestSameTokens(t *testing.T) {
	modes(t, func(r *rapid.T, mode string) {
		target := &toy{rapid.SampledFrom([]int{2, 5, 60}).Draw(r, "vocab"), rapid.Uint64().Draw(r, "salt"),
			rapid.Bool().Draw(r, "near")}
		n := rapid.IntRange(1, 2).Draw(r, "sequences")
		texts := map[int32][]int32{} // by first token: prompt and output
		var prompts [][]int32
		var asks []speculate.Request
		for i := range n {
			prompt := rapid.SliceOfN(rapid.Int32Range(0, int32(target.vocab)-1), 1, 12).Draw(r, "prompt")
			prompt[0] = int32(i)
			p := sample.Params{
				Temperature: rapid.SampledFrom([]float32{0, .7, 1}).Draw(r, "temperature"),
				TopP:        rapid.SampledFrom([]float32{0, .8}).Draw(r, "top-p"),
				Seed:        rapid.Uint64().Draw(r, "seed"),
			}
			s, err := sample.New(p, target.vocab)
			if err != nil {
				r.Fatal(err)
			}
			text := slices.Clone(prompt)
			for range 25 {
				text = append(text, s.Sample(target.logits(text), len(text), nil))
			}
			texts[prompt[0]] = text
			prompts = append(prompts, prompt)
			asks = append(asks, speculate.Request{Sampling: p, MaxTokens: 25,
				Budget: rapid.SampledFrom([]int{2, 3, 8, 30}).Draw(r, "budget")})
		}
		var parts []Part
		for i := range rapid.IntRange(1, 2).Draw(r, "tellers") {
			p := genTeller(r)
			p.vocab, p.seed = target.vocab, uint64(i)
			p.truth = func(text []int32) int32 {
				if truth := texts[text[0]]; len(text) < len(truth) {
					return truth[len(text)]
				}
				return 0
			}
			p.taps = nil // only games look at them
			parts = append(parts, Part{"teller", &silentTeller{p}})
		}
		lookup, err := registry.New("lookup:floor=0.001", registry.Target{})
		if err != nil {
			r.Fatal(err)
		}
		d, err := New(Options{Mode: mode}, target.vocab, append(parts, Part{"lookup", lookup})...)
		if err != nil {
			r.Fatal(err)
		}
		l, err := speculate.New(target, d, speculate.Options{Chunk: rapid.SampledFrom([]int{0, 3}).Draw(r, "chunk"),
			Uncontrolled: rapid.Bool().Draw(r, "uncontrolled")})
		if err != nil {
			r.Fatal(err)
		}
		var all []*speculate.Sequence
		for i := range n {
			s, err := l.Start(prompts[i], asks[i])
			if err != nil {
				r.Fatal(err)
			}
			all = append(all, s)
		}
		for slices.ContainsFunc(all, func(s *speculate.Sequence) bool { return s.Finish() == speculate.Running }) {
			if err := l.Step(context.Background(), all); err != nil {
				r.Fatal(err)
			}
		}
		for i, s := range all {
			if want := texts[prompts[i][0]]; !slices.Equal(s.Text(), want) {
				r.Fatalf("sequence %d: %v, plainly %v", i, s.Text(), want)
			}
			s.Close()
		}
	})
}

// silentTeller is a teller in the real loop: it does not compare the logits with the game's.
type silentTeller struct{ *teller }

func (d *silentTeller) Commit(rows []draft.Rows) error {
	for _, r := range rows {
		s := r.State.(*listener)
		if s.next >= 0 && r.Tokens[0] != s.next {
			return fmt.Errorf("rows start with %d, want %d", r.Tokens[0], s.next)
		}
		s.text, s.next = append(s.text, r.Tokens...), r.Next
	}
	return nil
}
