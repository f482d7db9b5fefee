package grove_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/grovellm/grove"
	"github.com/grovellm/grove/gguf"
	"github.com/grovellm/grove/internal/drafters/eagle"
	"github.com/grovellm/grove/internal/drafters/falcon"
	"github.com/grovellm/grove/internal/drafters/jet"
	"github.com/grovellm/grove/internal/drafters/specblock"
	"github.com/grovellm/grove/internal/drafters/synthetic"
	routersynth "github.com/grovellm/grove/internal/drafters/synthetic/shortlist"
	"github.com/grovellm/grove/internal/heads/headfile"
	"github.com/grovellm/grove/internal/inside"
	"github.com/grovellm/grove/internal/model"
	"github.com/grovellm/grove/internal/model/synth"
	"github.com/grovellm/grove/tensor"
)

// headFile writes a random head for the model in a file.
func headFile(t testing.TB, target string, change func(*jet.Config)) string {
	t.Helper()
	f, err := gguf.Open(target)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	m, err := model.ReadGGUF(f)
	if err != nil {
		t.Fatal(err)
	}
	c := synthetic.Config[jet.Config](rand.New(rand.NewPCG(1, 2)), "", m, tensor.BF16)
	change(&c)
	weights, err := synthetic.Tensors(&c, tensor.BF16, 1)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "head.gguf")
	if err := headfile.WriteGGUF(path, "head", &c, weights, nil, f, tensor.BF16); err != nil {
		t.Fatal(err)
	}
	return path
}

// Of the offered heads, a model takes those made for its weights, whatever type its file has; heads
// that are named replace them.
func TestOfferedHeads(t *testing.T) {
	dir := t.TempDir()
	shape, err := synth.Lookup("tiny-qwen3")
	if err != nil {
		t.Fatal(err)
	}
	file := func(name string, typ tensor.Type, seed uint64) string {
		path := filepath.Join(dir, name+".gguf")
		if err := synth.Write(t.Context(), path, shape, synth.Options{Type: typ, Seed: seed}); err != nil {
			t.Fatal(err)
		}
		return path
	}
	files := map[string][]string{
		"one": {file("f32", tensor.F32, 1), file("bf16", tensor.BF16, 1), file("q8", tensor.Q8_0, 1),
			file("q4", tensor.Q4_0, 1)},
		"two": {file("other", tensor.Q8_0, 2)},
	}
	var offered [][]byte
	made := map[string]int{}
	for _, name := range []string{"one", "two", "unknown"} {
		target := files["one"][0]
		id := ""
		if list := files[name]; list != nil {
			target = list[0]
			m, err := grove.Open(target, grove.Options{Threads: 1})
			if err != nil {
				t.Fatal(err)
			}
			id = inside.Target(m).Model.WeightsID()
			if err := m.Close(); err != nil {
				t.Fatal(err)
			}
		}
		data, err := os.ReadFile(headFile(t, target, func(c *jet.Config) {
			c.Causal = true
			c.TargetWeights = id
		}))
		if err != nil {
			t.Fatal(err)
		}
		made[name] = len(offered)
		offered = append(offered, data)
	}
	named := headFile(t, files["one"][0], func(c *jet.Config) { c.Causal = false })
	for name, list := range files {
		for _, path := range list {
			m, err := grove.Open(path, grove.Options{Threads: 1, OfferedHeads: offered})
			if err != nil {
				t.Fatal(err)
			}
			heads := inside.Target(m).Heads
			if len(heads) != 1 || !slices.Equal(heads[0].Data, offered[made[name]]) {
				t.Errorf("%s of %s took %d heads: want its own", path, name, len(heads))
			}
			if err := m.Close(); err != nil {
				t.Fatal(err)
			}
		}
	}
	m, err := grove.Open(files["one"][0], grove.Options{Threads: 1, OfferedHeads: offered, Heads: []string{named}})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	if want := []string{named}; !slices.Equal(headNames(m), want) {
		t.Errorf("opened with %q: want %q alone", headNames(m), want)
	}
}

// A model drafts with the heads that it was opened with, or that a drafter names, and its text is
// that of plain decoding; heads of another model are refused when it is opened.
func TestHeads(t *testing.T) {
	target := tinyFile(t, "tiny-qwen3")
	causal := headFile(t, target, func(c *jet.Config) { c.Causal = true })
	both := headFile(t, target, func(c *jet.Config) { c.Causal = false })
	data, err := os.ReadFile(both)
	if err != nil {
		t.Fatal(err)
	}
	m, err := grove.Open(target, grove.Options{Threads: 1, Heads: []string{causal}, HeadGGUF: [][]byte{data}})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	if want := []string{causal, "HeadGGUF[0]"}; !slices.Equal(headNames(m), want) {
		t.Errorf("opened with %q: want %q", headNames(m), want)
	}
	request := grove.Request{MaxTokens: 30, IgnoreEnd: true, Uncontrolled: true}
	want := collect(t, m, "a b c", request)
	for _, d := range []string{"jetspec", "dflash", "ddtree:tree=accum-logp", "jetspec:model=" + causal} {
		request.Drafter = d
		r := collect(t, m, "a b c", request)
		if !slices.Equal(r.Tokens, want.Tokens) {
			t.Errorf("%s: %v, want %v", d, r.Tokens, want.Tokens)
		}
		if r.Stats.Drafted == 0 {
			t.Errorf("%s drafted nothing", d)
		}
	}
	for wrong, o := range map[string]grove.Options{
		"hidden size 96":   {Heads: []string{headFile(t, target, func(c *jet.Config) { c.Hidden = 96 })}},
		"not a draft head": {Heads: []string{target}},
		"no such file":     {Heads: []string{filepath.Join(t.TempDir(), "none")}},
		"HeadGGUF[0]":      {HeadGGUF: [][]byte{data[:40]}},
		"HeadGGUF[1]: header: this is not a GGUF file":     {HeadGGUF: [][]byte{data, nil}},
		"OfferedHeads[0]: header: this is not a GGUF file": {OfferedHeads: [][]byte{nil}},
	} {
		o.Threads = 1
		if m, err := grove.Open(target, o); err == nil || !strings.Contains(err.Error(), wrong) {
			t.Errorf("%s: %v", wrong, err)
			if err == nil {
				m.Close()
			}
		}
	}
}

// Heads of every kind are accepted together, a router with the head that it was made for, and each
// drafter finds its own; whatever they draft, the text is that of plain decoding.
func TestHeadsOfAllKinds(t *testing.T) {
	target := tinyFile(t, "tiny-qwen3")
	dir, rng := t.TempDir(), rand.New(rand.NewPCG(4, 2))
	at := func(name string) string { return filepath.Join(dir, name) }
	m, err := grove.Open(target, grove.Options{Threads: 1})
	if err != nil {
		t.Fatal(err)
	}
	c := inside.Target(m).Model.Config
	request := grove.Request{MaxTokens: 30, IgnoreEnd: true, Uncontrolled: true}
	want := collect(t, m, "a b c", request)
	m.Close()
	for _, version := range []int{2, 3} {
		e := synthetic.Config[eagle.Config](rng, fmt.Sprint("eagle", version), c, tensor.BF16)
		weights, err := synthetic.Tensors(&e, tensor.BF16, 1)
		if err != nil {
			t.Fatal(err)
		}
		if err := headfile.WriteGGUF(at(fmt.Sprint("eagle", version)), "head", &e, weights, synthetic.Tokens(&e, 1), nil,
			tensor.BF16); err != nil {
			t.Fatal(err)
		}
	}
	b := synthetic.Config[specblock.Config](rng, "specblock", c, tensor.F32)
	weights, err := synthetic.Tensors(&b, tensor.F32, 1)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(headfile.WriteFolder(at("specblock"), &b, weights, synthetic.Tokens(&b, 1)),
		routersynth.Write(at("router"), rng, c.Vocab, c.Hidden, tensor.F32)); err != nil {
		t.Fatal(err)
	}
	f := synthetic.Config[falcon.Config](rng, "falcon", c, tensor.F32)
	if weights, err = synthetic.Tensors(&f, tensor.F32, 1); err != nil {
		t.Fatal(err)
	}
	if err := headfile.WriteFolder(at("falcon"), &f, weights, nil); err != nil {
		t.Fatal(err)
	}
	heads := []string{headFile(t, target, func(c *jet.Config) { c.Causal = true }), at("falcon"), at("eagle2"),
		at("specblock"), at("eagle3"), at("router")}
	if m, err = grove.Open(target, grove.Options{Threads: 1, Heads: heads}); err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	for _, d := range []string{"jetspec", "eagle2", "eagle3", "specblock", "falcon", "eagle3+dynaspec",
		"eagle3:model=" + at("eagle3")} {
		request.Drafter = d
		r := collect(t, m, "a b c", request)
		if !slices.Equal(r.Tokens, want.Tokens) {
			t.Errorf("%s: %v, want %v", d, r.Tokens, want.Tokens)
		}
		if r.Stats.Drafted == 0 {
			t.Errorf("%s drafted nothing", d)
		}
	}
	if _, err := grove.Open(tinyFile(t, "tiny-llama2"), grove.Options{
		Threads: 1, Heads: []string{at("router")}}); err == nil || !strings.Contains(err.Error(), at("router")) {
		t.Errorf("a router of another vocabulary: %v", err)
	}
}

// headNames are the names of the heads that a model was opened with.
func headNames(m *grove.Model) (names []string) {
	for _, h := range inside.Target(m).Heads {
		names = append(names, h.Name)
	}
	return names
}
