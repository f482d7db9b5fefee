package mtp_test

import (
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/grovellm/grove"
	"github.com/grovellm/grove/draft"
	. "github.com/grovellm/grove/internal/drafters/drafttest"
	"github.com/grovellm/grove/internal/drafters/grow"
	"github.com/grovellm/grove/internal/drafters/learn"
	"github.com/grovellm/grove/internal/drafters/mtp"
	"github.com/grovellm/grove/internal/drafters/registry"
	"github.com/grovellm/grove/internal/inside"
	"github.com/grovellm/grove/internal/model"
	"github.com/grovellm/grove/internal/speculate"
	"github.com/grovellm/grove/sample"
	"github.com/grovellm/grove/tree"
)

// The layers of Qwen 3.5, Qwen 3 Next, GLM, DeepSeek, Nemotron 3, K-EXAONE, Hy3 and MiMo-V2, in a published
// folder and in the GGUF file that llama.cpp's converter makes of it (if it keeps the layer), draft
// what testdata/golden.py computes. The text generated with them is the same as without.
func TestPublishedLayers(t *testing.T) {
	for _, name := range []string{"tiny-qwen35-mtp", "tiny-qwen3next-mtp", "tiny-glm4moe-mtp", "tiny-glm4lite-mtp",
		"tiny-deepseek3-mtp", "tiny-nemotron-mtp", "tiny-exaone-moe-mtp", "tiny-hy3-mtp", "tiny-mimo2-mtp"} {
		var want struct {
			Text, Tokens []int32
			LogProbs     []float64 `json:"log_probs"`
		}
		if err := json.Unmarshal(Must(os.ReadFile(filepath.Join("testdata", "golden_"+name+".json")))(t), &want); err != nil {
			t.Fatal(err)
		}
		folder := filepath.Join("testdata", name)
		paths := []string{folder, folder + ".gguf"}
		if name == "tiny-nemotron-mtp" {
			paths = paths[:1]
		}
		for _, path := range paths {
			m := Must(model.Open(path, model.Options{Threads: 2}))(t)
			defer m.Close()
			n := Must(mtp.Open(registry.Head{Name: path, Inside: true}, As(m)))(t)
			if own := name == "tiny-glm4lite-mtp"; n.OwnEmbed != own || n.OwnHead != own { // others have copies of the model's
				t.Errorf("%s: an embedding of its own: %v, an output matrix: %v", path, n.OwnEmbed, n.OwnHead)
			}
			d := newDrafter(t, n, &grow.Linear{K: len(want.Tokens)}, m)
			if _, learns := d.(learn.Learner); learns {
				t.Errorf("%s: the layer has no gradient, and the drafter learns", path)
			}
			s := Begin(t, d, draft.Options{}, 1)
			defer s.Close()

			text := want.Text[:len(want.Text)-1]
			rows := s.Prompt(text, m.Config.Hidden, true)
			p, c := m.NewPass(), m.NewCache()
			defer c.Free()
			if err := p.Run(t.Context(), []model.Rows{{Cache: c, Tree: tree.Chain(text)}}, n.Taps); err != nil {
				t.Fatal(err)
			}
			rows.Pass = p
			Commit(t, d, rows)
			s.Root = want.Text[len(text)]
			q := s.Request(len(want.Tokens)+1, len(want.Tokens), nil)
			Propose(t, d, q)
			checkChain(t, path, q.Tree, want.Tokens, want.LogProbs)

			prompts := [][]int32{want.Text, want.Text[:3]}
			var plain [][]int32
			for _, prompt := range prompts {
				out, _ := Generate(t, m, nil, speculate.Options{}, sample.Params{}, [][]int32{prompt})
				plain = append(plain, out[0])
			}
			shape := grow.DefaultDynamic()
			out, _ := Generate(t, m, newDrafter(t, n, &shape, m), speculate.Options{Budget: 24, Uncontrolled: true},
				sample.Params{}, prompts)
			for i := range plain {
				if !slices.Equal(out[i], plain[i]) {
					t.Errorf("%s: text %d is %v with drafts, want %v", path, i, out[i], plain[i])
				}
			}

			g := Must(grove.Open(path, grove.Options{}))(t)
			if auto := Must(registry.Resolve("auto", inside.Target(g)))(t); !strings.HasPrefix(auto, "mtp:") {
				t.Errorf("%s: auto is %s", path, auto)
			}
			g.Close()
		}
	}
}

// checkChain compares a drafted chain with a reference's tokens and log-probabilities.
func checkChain(t *testing.T, path string, chain *tree.Tree, tokens []int32, logProbs []float64) {
	t.Helper()
	if !slices.Equal(chain.Token[1:], tokens) {
		t.Errorf("%s drafts %v, want %v", path, chain.Token[1:], tokens)
	}
	for i, want := range logProbs {
		if got := float64(chain.LogProb[i+1]); math.Abs(got-want) > 1e-4 {
			t.Errorf("%s: draft %d has log-probability %g, want %g", path, i, got, want)
		}
	}
}
