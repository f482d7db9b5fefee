package spark_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/grovellm/grove/draft"
	. "github.com/grovellm/grove/internal/drafters/drafttest"
	"github.com/grovellm/grove/internal/drafters/onepass"
	"github.com/grovellm/grove/internal/drafters/registry"
	"github.com/grovellm/grove/internal/drafters/spark"
	"github.com/grovellm/grove/internal/drafters/synthetic"
	"github.com/grovellm/grove/internal/heads/headfile"
	"github.com/grovellm/grove/internal/model"
	"github.com/grovellm/grove/internal/testing/testfile"
	"github.com/grovellm/grove/tensor"
)

// head returns a random head for a target.
func head(t Fataler, m *model.Model, drafter string, seed uint64) *spark.Network {
	t.Helper()
	c := synthetic.Config[spark.Config](rand.New(rand.NewPCG(seed, 1)), drafter, m.Config, tensor.F32)
	return Must(spark.NewNetwork(c, synthetic.Head(&c, tensor.F32, seed), synthetic.Tokens(&c, seed), &m.Network))(t)
}

func newDrafter(t Fataler, o spark.Options, n *spark.Network, m *model.Model) draft.Drafter {
	t.Helper()
	return Must(spark.New(o, n, As(m)))(t)
}

// A batch decodes to the same tokens as each text alone and without drafting, with trees of every kind of head.
func TestSameTokens(t *testing.T) {
	m := OpenTarget(t, 400)
	var cases []Case
	for _, name := range []string{"dspark", "dflash2", "domino"} {
		for seed := range uint64(3) {
			o := spark.Options{Tree: []string{onepass.DDTree, onepass.AccumLogP, onepass.Chain}[seed],
				Confidence: float64(seed) / 4}
			n := head(t, m, name, seed)
			cases = append(cases, Case{Name: fmt.Sprintf("%s %+v", name, o), New: func() draft.Drafter {
				return newDrafter(t, o, n, m)
			}})
		}
	}
	SameTokens(t, m, cases)
}

// A chain is the first path of the tree: both depend on the scores after the tokens before.
func TestChainIsTheFirstPath(t *testing.T) {
	m := OpenTarget(t, 400)
	for _, name := range []string{"dspark", "dflash2", "domino"} {
		for seed := range uint64(6) {
			n := head(t, m, name, seed)
			tokens := func(o spark.Options) (line []int32) {
				d := newDrafter(t, o, n, m)
				s := Begin(t, d, draft.Options{}, 0)
				defer s.Close()
				Commit(t, d, s.Prompt([]int32{5, 6, 7, 8, 9}, m.Config.Hidden, true))
				q := s.Request(200, 100, nil)
				Propose(t, d, q)
				for node := 0; ; {
					child := slices.Index(q.Tree.Parent[1:], int32(node)) + 1
					if child == 0 {
						return line
					}
					node = child
					line = append(line, q.Tree.Token[node])
				}
			}
			chain, first := tokens(spark.Options{Tree: onepass.Chain}), tokens(spark.Options{Tree: onepass.AccumLogP, Width: 2})
			if len(chain) != n.Depths() || !slices.Equal(first, chain[:len(first)]) {
				t.Errorf("%s %d: the chain of %d is %v, the first path %v", name, seed, n.Depths(), chain, first)
			}
		}
	}
}

// Heads come back unchanged from GGUF files, under their drafters' names. What a folder may have
// but grove does not implement is refused by name.
func TestFiles(t *testing.T) {
	m, _ := FileTarget(t)
	for _, name := range []string{"dspark", "dflash2", "domino"} {
		for seed := range uint64(4) {
			c := synthetic.Config[spark.Config](rand.New(rand.NewPCG(seed, 2)), name, m.Config, tensor.F32)
			path := filepath.Join(t.TempDir(), "head.gguf")
			weights := Must(synthetic.Tensors(&c, tensor.F32, seed))(t)
			if err := headfile.WriteGGUF(path, "x", &c, weights, synthetic.Tokens(&c, seed), nil, tensor.F32); err != nil {
				t.Fatal(err)
			}
			target := As(m)
			target.Shared = new(registry.Shared)
			target.Heads = []registry.Head{{Name: path}}
			d, err := registry.New(name, target)
			if err != nil || !slices.Equal(d.Taps(), c.Taps) {
				t.Errorf("%s: %v", name, err)
			}
			got := Must(headfile.ReadConfig[spark.Config](registry.Head{Name: path}, nil))(t)
			got.Name = ""
			if fmt.Sprintf("%+v", got) != fmt.Sprintf("%+v", c) {
				t.Errorf("came back as\n%+v, was\n%+v", got, c)
			}
		}
	}
	for want, change := range map[string][3]string{
		"markov_head_type is":     {"vanilla", `"vanilla"`, `"other"`},
		"markov_rank":             {"vanilla", `"markov_rank": 8`, `"markov_rnk": 8`},
		"selector_top_k is 21":    {"dflash2", `"selector_top_k": 20`, `"selector_top_k": 21`},
		"gru_hidden_dim":          {"domino", `"gru_hidden_dim"`, `"gru_dim"`},
		"final_logit_softcapping": {"domino", `"block_size": 4`, `"block_size": 4, "final_logit_softcapping": 30`},
		"has shape":               {"dflash2", `"conv_group_size": 4`, `"conv_group_size": 8`},
		"confidence_head":         {"vanilla", `"confidence_head_with_markov": true`, `"confidence_head_with_markov": false`},
	} {
		from, dir := filepath.Join("testdata", "heads", change[0]), t.TempDir()
		config := string(Must(os.ReadFile(filepath.Join(from, "config.json")))(t))
		if !strings.Contains(config, change[1]) {
			t.Fatalf("%s has no %s", from, change[1])
		}
		weights := Must(os.ReadFile(filepath.Join(from, "model.safetensors")))(t)
		for name, data := range map[string][]byte{"config.json": []byte(strings.Replace(config, change[1], change[2], 1)),
			"model.safetensors": weights} {
			testfile.Write(t, filepath.Join(dir, name), data)
		}
		if _, err := headfile.ReadConfig[spark.Config](registry.Head{Name: dir}, nil); err == nil ||
			!strings.Contains(err.Error(), want) ||
			!strings.Contains(err.Error(), dir) {
			t.Errorf("%v: %v, want %q", change, err, want)
		}
	}
}
