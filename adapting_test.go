package grove_test

import (
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/grovellm/grove"
	"github.com/grovellm/grove/gguf"
	"github.com/grovellm/grove/internal/drafters/jet"
	"github.com/grovellm/grove/internal/drafters/synthetic"
	"github.com/grovellm/grove/internal/heads/headfile"
	"github.com/grovellm/grove/internal/inside"
	"github.com/grovellm/grove/tensor"
)

// A model opened to adapt generates the same text as one that does not adapt, keeps what its
// drafters learned for the next time, and exports it.
func TestAdapt(t *testing.T) {
	path := tinyFile(t, "tiny-qwen3")
	plain, err := grove.Open(path, grove.Options{Threads: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer plain.Close()
	head := filepath.Join(t.TempDir(), "head.gguf")
	c := synthetic.Config[jet.Config](rand.New(rand.NewPCG(1, 1)), "", inside.Target(plain).Model.Config, tensor.BF16)
	c.Causal, c.Block = true, 5
	weights, err := synthetic.Tensors(&c, tensor.BF16, 1)
	if err != nil {
		t.Fatal(err)
	}
	vocabulary, err := gguf.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer vocabulary.Close()
	if err := headfile.WriteGGUF(head, "test", &c, weights, nil, vocabulary, tensor.BF16); err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "learned")
	open := func() *grove.Model {
		o := grove.Options{Threads: 1, Heads: []string{head}, Adapt: &grove.AdaptOptions{Dir: dir}}
		inside.SetOpenOptions(&o, inside.OpenOptions{LearnShare: 100})
		m, err := grove.Open(path, o)
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	const drafter = "jetspec:tree=ddtree"
	m := open()
	for i := range int32(24) {
		prompt := []int32{1 + i, 2, 3}
		r := grove.Request{MaxTokens: 16, IgnoreEnd: true}
		want, err := grove.Collect(plain.GenerateTokens(ctx, prompt, r))
		if err != nil {
			t.Fatal(err)
		}
		r.Drafter, r.Uncontrolled = drafter, true
		got, err := grove.Collect(m.GenerateTokens(ctx, prompt, r))
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(got.Tokens, want.Tokens) {
			t.Fatalf("query %d: %v while a drafter learns, %v without", i, got.Tokens, want.Tokens)
		}
	}
	a, err := inside.Adapter(m, drafter)
	if err != nil {
		t.Fatal(err)
	}
	a.Rest()
	was := a.Stats()
	if was.Queries != 24 || was.Updates == [3]int{} || was.Error != "" {
		t.Errorf("after 24 queries: %+v", was)
	}
	better := filepath.Join(dir, "better.gguf")
	if err := m.ExportHead(drafter, better); err != nil {
		t.Error(err)
	}
	if err := m.Close(); err != nil {
		t.Fatal(err)
	}
	if files, _ := filepath.Glob(filepath.Join(dir, "*.safetensors")); len(files) != 1 {
		t.Fatalf("files of what was learned: %v", files)
	}
	m = open()
	if a, err = inside.Adapter(m, drafter); err != nil {
		t.Fatal(err)
	}
	if s := a.Stats(); s.Queries != was.Queries {
		t.Errorf("opened again: %+v, closed with %+v", s, was)
	}
	if err := m.Close(); err != nil {
		t.Error(err)
	}
	if m, err = grove.Open(path, grove.Options{Threads: 1, Heads: []string{better}}); err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	var option *grove.OptionError
	if _, err := inside.Adapter(m, drafter); !errors.As(err, &option) {
		t.Errorf("without Options.Adapt: %v", err)
	}
	if _, err := os.Stat(better); err != nil {
		t.Error(err)
	}
}

func TestAdaptRefuses(t *testing.T) {
	path := tinyFile(t, "tiny-qwen3")
	var option *grove.OptionError
	if _, err := grove.Open(path, grove.Options{Adapt: &grove.AdaptOptions{Threads: -1}}); !errors.As(err, &option) {
		t.Errorf("-1 threads: %v", err)
	}
	m, err := grove.Open(path, grove.Options{Threads: 1, Adapt: &grove.AdaptOptions{}})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	for _, name := range []string{"lookup", "nothing"} {
		if _, err := inside.Adapter(m, name); !errors.As(err, &option) {
			t.Errorf("drafter %s: %v", name, err)
		}
	}
}
