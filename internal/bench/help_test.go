package bench

import (
	"context"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"

	_ "github.com/grovellm/grove/internal/drafters/drafttest/hostile"
	"github.com/grovellm/grove/internal/drafters/eagle"
	"github.com/grovellm/grove/internal/drafters/falcon"
	"github.com/grovellm/grove/internal/drafters/jet"
	_ "github.com/grovellm/grove/internal/drafters/lm"
	_ "github.com/grovellm/grove/internal/drafters/lookup"
	"github.com/grovellm/grove/internal/drafters/medusa"
	_ "github.com/grovellm/grove/internal/drafters/merge"
	"github.com/grovellm/grove/internal/drafters/mtp"
	"github.com/grovellm/grove/internal/drafters/peagle"
	"github.com/grovellm/grove/internal/drafters/registry"
	"github.com/grovellm/grove/internal/drafters/spark"
	"github.com/grovellm/grove/internal/drafters/specblock"
	"github.com/grovellm/grove/internal/drafters/synthetic"
	randomlist "github.com/grovellm/grove/internal/drafters/synthetic/shortlist"
	"github.com/grovellm/grove/internal/heads/headfile"
	"github.com/grovellm/grove/internal/model"
	"github.com/grovellm/grove/internal/model/synth"
	_ "github.com/grovellm/grove/internal/testing/testfile" // no waiting for the disk
	"github.com/grovellm/grove/tensor"
)

// tinyPair returns a target with a draft model of the same vocabulary, a block head of each kind,
// an EAGLE-3 head, a SpecBlock head, a router, and Medusa, P-EAGLE, ParallelSpec and Falcon heads,
// all with random weights.
func tinyPair(t *testing.T) registry.Target {
	t.Helper()
	shape, err := synth.Lookup("tiny-qwen3")
	if err != nil {
		t.Fatal(err)
	}
	shape.Layers, shape.FFN = 2, 160
	return pairOf(t, shape)
}

// pairOf is tinyPair for models of a shape.
func pairOf(t *testing.T, shape synth.Shape) registry.Target {
	t.Helper()
	open := func(seed uint64, o model.Options) *model.Model {
		path := filepath.Join(t.TempDir(), "random.gguf")
		if err := synth.Write(context.Background(), path, shape, synth.Options{Seed: seed}); err != nil {
			t.Fatal(err)
		}
		m, err := model.Open(path, o)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { m.Close() })
		return m
	}
	m := open(1, model.Options{Threads: 1, Context: 256})
	target := registry.Target{Vocab: m.Config.Vocab, Context: m.Context(), Model: m,
		Draft: open(2, model.Options{Workers: m}), Shared: new(registry.Shared),
		Open: func(path string) (*model.Model, error) { return model.Open(path, model.Options{Workers: m}) }}
	for _, causal := range []bool{true, false} {
		c := synthetic.Config[jet.Config](rand.New(rand.NewPCG(1, 2)), "", m.Config, tensor.F32)
		c.Causal, c.Block = causal, 8
		weights, err := synthetic.Tensors(&c, tensor.F32, 3)
		if err != nil {
			t.Fatal(err)
		}
		dir := filepath.Join(t.TempDir(), fmt.Sprintf("causal-%v", causal))
		if err := headfile.WriteFolder(dir, &c, weights, nil); err != nil {
			t.Fatal(err)
		}
		target.Heads = append(target.Heads, registry.Head{Name: dir})
	}
	c := synthetic.Config[eagle.Config](rand.New(rand.NewPCG(3, 4)), "eagle3", m.Config, tensor.F32)
	c.DraftVocab = c.Vocab
	weights, err := synthetic.Tensors(&c, tensor.F32, 7)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "eagle.gguf")
	if err := headfile.WriteGGUF(path, "random", &c, weights, nil, nil, tensor.F32); err != nil {
		t.Fatal(err)
	}
	b := synthetic.Config[specblock.Config](rand.New(rand.NewPCG(8, 9)), "specblock", m.Config, tensor.F32)
	b.DraftVocab, b.RankWidth = 0, 16
	if weights, err = synthetic.Tensors(&b, tensor.F32, 5); err != nil {
		t.Fatal(err)
	}
	block := filepath.Join(t.TempDir(), "specblock.gguf")
	if err := headfile.WriteGGUF(block, "random", &b, weights, nil, nil, tensor.F32); err != nil {
		t.Fatal(err)
	}
	router := filepath.Join(t.TempDir(), "router.gguf")
	if err := randomlist.Write(router, rand.New(rand.NewPCG(5, 6)), m.Config.Vocab, m.Config.Hidden,
		tensor.F32); err != nil {
		t.Fatal(err)
	}
	target.Heads = append(target.Heads, registry.Head{Name: path}, registry.Head{Name: block}, registry.Head{Name: router})
	for drafter, kind := range map[string]*headfile.Kind{
		"medusa": (&medusa.Config{}).Kind(), "peagle": (&peagle.Config{}).Kind(), "parallelspec": (&peagle.Config{}).Kind(),
		"falcon": (&falcon.Config{}).Kind(), "dspark": (&spark.Config{}).Kind(), "dflash2": (&spark.Config{}).Kind(),
		"mtp": (&mtp.Config{}).Kind(), "eagle2": (&eagle.Config{}).Kind(),
	} {
		s := synthetic.Shape(rand.New(rand.NewPCG(9, 10)), kind, drafter, m.Config, tensor.F32)
		if weights, err = synthetic.Tensors(s, tensor.F32, 5); err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(t.TempDir(), drafter+".gguf")
		if err := headfile.WriteGGUF(path, "random", s, weights, synthetic.Tokens(s, 5), nil, tensor.F32); err != nil {
			t.Fatal(err)
		}
		target.Heads = append(target.Heads, registry.Head{Name: path})
	}
	return target
}

// tinySuite has prompts that repeat themselves, as text does, one of them longer than the context.
func tinySuite(name string, n int) Suite {
	s := Suite{Name: name, Spare: []Prompt{{Name: "spare", Text: "one two one two one"}}}
	for i := range n {
		s.Prompts = append(s.Prompts, Prompt{Name: name, Text: strings.Repeat("one two three ", 2+i), Question: true})
	}
	s.Prompts[n-1].Text = strings.Repeat("a b c d e f g ", 100)
	return s
}

func methods(t *testing.T, list string) []Method {
	t.Helper()
	m, err := ParseMethods(SplitList(list), Method{})
	if err != nil {
		t.Fatal(err)
	}
	return m
}
