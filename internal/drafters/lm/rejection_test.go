package lm_test

import (
	"context"
	"math"
	"path/filepath"
	"slices"
	"testing"

	"github.com/grovellm/grove/internal/drafters/registry"
	"github.com/grovellm/grove/internal/model"
	"github.com/grovellm/grove/internal/model/synth"
	"github.com/grovellm/grove/internal/speculate"
	"github.com/grovellm/grove/sample"
	"github.com/grovellm/grove/tensor"
)

// Under the rule "rejection", drawn trees of every shape preserve the target's distribution: the
// texts of many seeds are compared with the exact probabilities of all texts of that length. The
// draft model is the target without its last layer: similar enough that much is accepted, and
// different enough that much is rejected.
func TestRejectionKeepsTheDistribution(t *testing.T) {
	shape := synth.Shape{
		Name: "loop", Arch: "llama", Vocab: 400, Hidden: 32, Layers: 2, Heads: 2, KVHeads: 1, HeadDim: 16, FFN: 32,
		Context: 64, NormEps: 1e-5, RopeBase: 1e4, RopeDims: 16, Tokens: synth.Llama3,
	}
	ctx := context.Background()
	path := filepath.Join(t.TempDir(), "loop.gguf")
	if err := synth.Write(ctx, path, shape, synth.Options{Type: tensor.F32, Seed: 1}); err != nil {
		t.Fatal(err)
	}
	m, err := model.Open(path, model.Options{Threads: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	shallow, err := model.Open(path, model.Options{Workers: m})
	if err != nil {
		t.Fatal(err)
	}
	shallow.Blocks = shallow.Blocks[:1]

	p := sample.Params{Temperature: 1.5, TopK: 5}
	prompt := []int32{7, 8}
	const tokens, seeds, batch = 3, 3000, 50
	want := exactly(t, m, p, prompt, tokens)
	for _, text := range []string{"linear:k=2", "fixed:d=2,b=2,tau=0", "dynatree:tau-l=0.3,tau-h=0.6,adapt=false",
		"dynamic:k=2,depth=1", "best-first:width=3"} {
		d, err := registry.New(text, registry.Target{Vocab: 400, Context: 64, Model: m, Draft: shallow})
		if err != nil {
			t.Fatal(err)
		}
		l, err := speculate.New(speculate.Model(m), d, speculate.Options{Accept: "rejection", Uncontrolled: true,
			Budget: 8})
		if err != nil {
			t.Fatal(err)
		}
		count := map[[tokens]int32]float64{}
		for first := 0; first < seeds; first += batch {
			var seqs []*speculate.Sequence
			for i := range batch {
				p.Seed = uint64(first + i)
				s, err := l.Start(prompt, speculate.Request{Sampling: p, MaxTokens: tokens})
				if err != nil {
					t.Fatal(err)
				}
				seqs = append(seqs, s)
			}
			for slices.ContainsFunc(seqs, func(s *speculate.Sequence) bool { return s.Finish() == speculate.Running }) {
				if err := l.Step(ctx, seqs); err != nil {
					t.Fatal(err)
				}
			}
			for _, s := range seqs {
				count[[tokens]int32(s.Output())]++
				s.Close()
			}
		}
		x := 0.0
		free := -1.0
		rare := float64(seeds)
		rareWant := 0.0
		for out, q := range want {
			if e := q * seeds; e >= 4 {
				x += (count[out] - e) * (count[out] - e) / e
				rare -= count[out]
				free++
			} else {
				rareWant += e
			}
		}
		if rareWant > 0 {
			x += (rare - rareWant) * (rare - rareWant) / rareWant
			free++
		}
		if limit := free + 4*math.Sqrt(2*free); x > limit {
			t.Errorf("%s: chi-square %.1f with %.0f degrees of freedom", text, x, free)
		}
		if s := l.Stats(); s.Accepted == 0 || s.Accepted == s.Drafted {
			t.Errorf("%s: %d of %d nodes accepted: the test shows nothing", text, s.Accepted, s.Drafted)
		}
	}
}

// exactly returns the probability of every text of 3 tokens after a prompt.
func exactly(t *testing.T, m *model.Model, p sample.Params, prompt []int32, tokens int) map[[3]int32]float64 {
	s, err := sample.New(p, m.Config.Vocab)
	if err != nil {
		t.Fatal(err)
	}
	pass, all := m.NewPass(), map[[3]int32]float64{}
	var walk func(text []int32, chance float64)
	walk = func(text []int32, chance float64) {
		if len(text) == len(prompt)+tokens {
			all[[3]int32(text[len(prompt):])] = chance
			return
		}
		c := m.NewCache()
		defer c.Free()
		if err := pass.Prefill(context.Background(), c, text, true); err != nil {
			t.Fatal(err)
		}
		probs := make([]float32, m.Config.Vocab)
		s.Probs(probs, pass.Logits(0, 0), nil)
		for token, q := range probs {
			if q > 0 {
				walk(append(slices.Clone(text), int32(token)), chance*float64(q))
			}
		}
	}
	walk(prompt, 1)
	return all
}
