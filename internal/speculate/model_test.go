package speculate

import (
	"context"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/grovellm/grove/draft"
	"github.com/grovellm/grove/internal/drafters/registry"
	"github.com/grovellm/grove/internal/model"
	"github.com/grovellm/grove/internal/testing/testdata"
	"github.com/grovellm/grove/sample"
	"github.com/grovellm/grove/tokenizer"
)

// chance drafts random trees over a few tokens of the text and the odd stranger.
type chance struct {
	draft.Base
	vocab int32
	rng   *rand.Rand
}

func (c *chance) Taps() []int                              { return []int{0, 2} }
func (c *chance) Begin(draft.Options) (draft.State, error) { return &oracleState{}, nil }
func (c *chance) Commit([]draft.Rows) error                { return nil }
func (c *chance) Propose(_ context.Context, requests []draft.Request) ([]draft.Proposal, error) {
	for _, q := range requests {
		for range c.rng.IntN(q.Budget) {
			q.Tree.Append(c.rng.IntN(q.Tree.Len()), c.rng.Int32N(c.vocab), -c.rng.Float32())
		}
	}
	return make([]draft.Proposal, len(requests)), nil
}

// On a real model, a batch of texts with lookup, the same with a drafter of random trees, and each
// text alone without a drafter have the same output.
func TestSameTokensOnAModel(t *testing.T) {
	m, err := model.Open(testdata.Path(t, "models/go-7m/go-7m-f32.gguf"), model.Options{Threads: 2})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	source := "func Sum(xs []int) int {\n\ttotal := 0\n\tfor _, x := range xs {\n\t\ttotal += x\n\t}\n\treturn total\n}\n\n"
	var prompts [][]int32
	for _, text := range []string{source + source + "func Sum(", "package strings\n\nimport (\n\t\"unicode\"\n",
		"Alice was beginning to"} {
		prompts = append(prompts, m.Tokenizer.Encode(text, tokenizer.EncodeOptions{}))
	}
	generate := func(d draft.Drafter, budget int, p sample.Params, prompts [][]int32) ([][]int32, *Stats) {
		l, err := New(Model(m), d, Options{Budget: budget, Chunk: 17})
		if err != nil {
			t.Fatal(err)
		}
		var batch []*Sequence
		for _, prompt := range prompts {
			s, err := l.Start(prompt, Request{Sampling: p, MaxTokens: 24})
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			batch = append(batch, s)
		}
		for slices.ContainsFunc(batch, func(s *Sequence) bool { return s.Finish() == Running }) {
			if err := l.Step(context.Background(), batch); err != nil {
				t.Fatal(err)
			}
		}
		var out [][]int32
		for _, s := range batch {
			out = append(out, slices.Clone(s.Output()))
		}
		return out, l.Stats()
	}
	for _, p := range []sample.Params{
		{},
		{Temperature: 1, Seed: 1},
		{Temperature: .7, TopP: .9, TopK: 50, RepetitionPenalty: 1.1, PenaltyLast: 32, Seed: 2},
	} {
		var want [][]int32
		for _, prompt := range prompts {
			out, _ := generate(nil, 0, p, [][]int32{prompt})
			want = append(want, out[0])
		}
		lookup, err := registry.New("lookup", registry.Target{})
		if err != nil {
			t.Fatal(err)
		}
		for name, d := range map[string]draft.Drafter{"lookup": lookup,
			"chance": &chance{vocab: int32(m.Config.Vocab), rng: rand.New(rand.NewPCG(1, 2))}} {
			got, stats := generate(d, 12, p, prompts)
			for i := range want {
				if !slices.Equal(got[i], want[i]) {
					t.Errorf("%s, temperature %g, text %d: %v, want %v", name, p.Temperature, i, got[i], want[i])
				}
			}
			t.Logf("%s, temperature %g: τ = %.2f, %d of %d nodes accepted", name, p.Temperature, stats.Tau(),
				stats.Accepted, stats.Drafted)
		}
	}
}
