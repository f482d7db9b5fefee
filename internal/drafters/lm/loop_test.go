package lm_test

import (
	"context"
	"path/filepath"
	"slices"
	"testing"

	"github.com/grovellm/grove/draft"
	_ "github.com/grovellm/grove/internal/drafters/lm"
	"github.com/grovellm/grove/internal/drafters/registry"
	"github.com/grovellm/grove/internal/model"
	"github.com/grovellm/grove/internal/model/synth"
	"github.com/grovellm/grove/internal/speculate"
	"github.com/grovellm/grove/internal/testing/testdata"
	"github.com/grovellm/grove/sample"
	"github.com/grovellm/grove/tensor"
	"github.com/grovellm/grove/tokenizer"
)

// generate decodes prompts in one loop.
func generate(t *testing.T, m *model.Model, d draft.Drafter, o speculate.Options, p sample.Params,
	prompts [][]int32) ([][]int32, *speculate.Stats) {
	t.Helper()
	l, err := speculate.New(speculate.Model(m), d, o)
	if err != nil {
		t.Fatal(err)
	}
	var batch []*speculate.Sequence
	for _, prompt := range prompts {
		s, err := l.Start(prompt, speculate.Request{Sampling: p, MaxTokens: 30})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		batch = append(batch, s)
	}
	for slices.ContainsFunc(batch, func(s *speculate.Sequence) bool { return s.Finish() == speculate.Running }) {
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

var drafters = []string{"linear:k=5", "fixed:d=4,b=2", "dynatree", "dynamic:k=4", "best-first", "best-first+text",
	"linear+text", "dynatree+text"}

// Law 2 in a loop: a batch decodes to the same tokens as each text alone and without drafting, with
// every shape, with and without a controller. If a target drafts chains for itself, every chain is
// accepted whole: τ is K + 1.
func TestSameTokens(t *testing.T) {
	shape := synth.Shape{
		Name: "loop", Arch: "llama", Vocab: 500, Hidden: 48, Layers: 2, Heads: 3, KVHeads: 1, HeadDim: 16, FFN: 96,
		Context: 512, NormEps: 1e-5, RopeBase: 1e4, RopeDims: 16, Tokens: synth.Llama3,
	}
	path := filepath.Join(t.TempDir(), "loop.gguf")
	if err := synth.Write(context.Background(), path, shape, synth.Options{Type: tensor.F32, Seed: 1}); err != nil {
		t.Fatal(err)
	}
	m, err := model.Open(path, model.Options{Threads: 2})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	prompts := [][]int32{{1, 2, 3}, make([]int32, 70), {9}, {400, 401, 402, 403}}
	target := registry.Target{Vocab: 500, Context: m.Context(), Model: m, Draft: m}
	for _, p := range []sample.Params{{}, {Temperature: 1, Seed: 4},
		{Temperature: .8, TopP: .9, TopK: 60, RepetitionPenalty: 1.2, PenaltyLast: 20, Seed: 5}} {
		var want [][]int32
		for _, prompt := range prompts {
			out, _ := generate(t, m, nil, speculate.Options{}, p, [][]int32{prompt})
			want = append(want, out[0])
		}
		for _, text := range append(drafters, "linear:k=4", "best-first+freq:size=100",
			"fixed:d=4,b=2+freq-pa:size=200", "best-first+text+context:size=50,extra=60") {
			for _, free := range []bool{false, true} {
				d, err := registry.New(text, target)
				if err != nil {
					t.Fatal(err)
				}
				out, stats := generate(t, m, d, speculate.Options{Budget: 24, Chunk: 33, Uncontrolled: free}, p,
					prompts)
				for i := range want {
					if !slices.Equal(out[i], want[i]) {
						t.Errorf("%s, %+v, uncontrolled %v, text %d: %v, want %v", text, p, free, i, out[i], want[i])
					}
				}
				// The first token comes with the prompt; 29 more in 6 rounds, the last of which has room for 4.
				if free && text == "linear:k=4" && stats.Rounds != len(prompts)*6 {
					t.Errorf("%+v: %d rounds of %d texts, want 6 for each: τ is %g", p, stats.Rounds, len(prompts),
						stats.Tau())
				}
			}
		}
	}
}

// The same on a trained model, which drafts for itself.
func TestSameTokensOnATrainedModel(t *testing.T) {
	path := testdata.Path(t, "models/go-7m/go-7m-f32.gguf")
	m, err := model.Open(path, model.Options{Threads: 2})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	var prompts [][]int32
	for _, text := range []string{"package strings\n\nimport (\n\t\"unicode\"\n", "func (s *Server) handle("} {
		prompts = append(prompts, m.Tokenizer.Encode(text, tokenizer.EncodeOptions{}))
	}
	target := registry.Target{Vocab: m.Config.Vocab, Context: m.Context(), Model: m, Draft: m}
	for _, p := range []sample.Params{{}, {Temperature: 1, Seed: 1}} {
		want, _ := generate(t, m, nil, speculate.Options{}, p, prompts)
		for _, text := range drafters {
			d, err := registry.New(text, target)
			if err != nil {
				t.Fatal(err)
			}
			out, stats := generate(t, m, d, speculate.Options{Budget: 16, Uncontrolled: true}, p, prompts)
			for i := range want {
				if !slices.Equal(out[i], want[i]) {
					t.Errorf("%s, temperature %g, text %d: %v, want %v", text, p.Temperature, i, out[i], want[i])
				}
			}
			if stats.Tau() < 3 {
				t.Errorf("%s, temperature %g: τ is %.2f with the target's own draft", text, p.Temperature, stats.Tau())
			}
		}
	}
}
