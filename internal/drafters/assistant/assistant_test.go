package assistant_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/grovellm/grove/draft"
	"github.com/grovellm/grove/internal/drafters/assistant"
	. "github.com/grovellm/grove/internal/drafters/drafttest"
	"github.com/grovellm/grove/internal/drafters/grow"
	"github.com/grovellm/grove/internal/drafters/registry"
	"github.com/grovellm/grove/internal/drafters/synthetic"
	"github.com/grovellm/grove/internal/heads/headfile"
	"github.com/grovellm/grove/internal/model"
	"github.com/grovellm/grove/internal/model/synth"
	"github.com/grovellm/grove/internal/nn"
	"github.com/grovellm/grove/internal/speculate"
	"github.com/grovellm/grove/internal/testing/cases"
	"github.com/grovellm/grove/sample"
	"github.com/grovellm/grove/tensor"
	"github.com/grovellm/grove/tree"
	"pgregory.net/rapid"
)

// openTarget opens a small random Gemma 4 model whose last layers read the keys and values of earlier ones.
func openTarget(t testing.TB, kv nn.KVType) *model.Model {
	t.Helper()
	path := filepath.Join(t.TempDir(), "target.gguf")
	shape := Must(synth.Lookup("tiny-gemma4"))(t)
	if err := synth.Write(t.Context(), path, shape, synth.Options{Type: tensor.F32, Seed: 1}); err != nil {
		t.Fatal(err)
	}
	m := Must(model.Open(path, model.Options{Threads: 2, KV: kv}))(t)
	t.Cleanup(func() { m.Close() })
	return m
}

func head(t Fataler, m *model.Model, seed uint64) *assistant.Network {
	t.Helper()
	c := synthetic.Config[assistant.Config](rand.New(rand.NewPCG(seed, 1)), "", m.Config, tensor.F32)
	return Must(assistant.NewNetwork(c, synthetic.Head(&c, tensor.F32, seed), nil, &m.Network))(t)
}

func newDrafter(t Fataler, shape grow.Shape, text bool, n *assistant.Network, m *model.Model) draft.Drafter {
	t.Helper()
	return Must(assistant.New(n, shape, registry.Modifiers{Text: text}, nil, As(m)))(t)
}

func shapes() []grow.Shape {
	dynamic, best := grow.DefaultDynamic(), grow.DefaultBestFirst()
	return []grow.Shape{&grow.Linear{K: 5}, &dynamic, &best, &grow.Fixed{D: 3, B: 2, N: 30}}
}

// A batch decodes to the same tokens as each text alone and without drafting, with each type of keys and values.
func TestSameTokens(t *testing.T) {
	for _, kv := range []nn.KVType{nn.KVF32, nn.KVBF16, nn.KVQ8} {
		m := openTarget(t, kv)
		var cases []Case
		for i, shape := range shapes() {
			if kv != nn.KVF32 && i%4 != int(kv)%4 {
				continue
			}
			n := head(t, m, uint64(i))
			cases = append(cases, Case{Name: fmt.Sprintf("%v, %T", kv, shape), New: func() draft.Drafter {
				return newDrafter(t, shape, i%2 == 1, n, m)
			}})
		}
		SameTokens(t, m, cases)
	}
}

// sequence is a sequence as the target knows it: its cache has the text, and also rows of trees.
type sequence struct {
	draft.State
	cache *nn.Cache
	pass  *model.Pass
	root  int32
}

// take runs a tree, commits some of its nodes and tells the drafter.
func (s *sequence) take(t Fataler, d draft.Drafter, tr *tree.Tree, nodes []int32, next int32) {
	t.Helper()
	if err := s.pass.Run(context.Background(), []model.Rows{{Cache: s.cache, Tree: tr}}, d.Taps()); err != nil {
		t.Fatal(err)
	}
	if err := s.cache.Commit(nodes); err != nil {
		t.Fatal(err)
	}
	r := draft.Rows{State: s.State, Tree: tr, Nodes: nodes, Next: next, Pass: s.pass}
	for _, node := range nodes {
		r.Tokens = append(r.Tokens, tr.Token[node])
	}
	Commit(t, d, r)
}

func (s *sequence) request() draft.Request {
	return draft.Request{State: s.State, Tree: tree.New(s.root), Budget: 30, Depth: 8, Cache: s.cache}
}

func upTo(n int) (list []int32) {
	for i := range n {
		list = append(list, int32(i))
	}
	return list
}

// A tree depends only on the committed text: not on the trees drafted, verified and rejected
// before, not on the batch, and not on whether the text was read at once, in chunks, or came with a
// cache that was filled earlier, whose last row is computed again.
func TestTreesAreOfTheCommittedText(t *testing.T) {
	m := openTarget(t, nn.KVF32)
	all := shapes()
	cases.Check(t, 40, func(r *rapid.T) {
		n := head(r, m, rapid.Uint64Range(0, 40).Draw(r, "head"))
		d := newDrafter(r, all[rapid.IntRange(0, len(all)-1).Draw(r, "shape")], false, n, m)
		token := rapid.Int32Range(0, int32(m.Config.Vocab-1))
		p := sample.Params{Temperature: rapid.SampledFrom([]float32{0, 1}).Draw(r, "temperature"), Seed: 5}
		o := draft.Options{Sampling: p, Sampled: rapid.Bool().Draw(r, "sampled"), Seed: 6}
		begin := func() *sequence {
			s := &sequence{State: Must(d.Begin(o))(r), cache: m.NewCache(), pass: m.NewPass(), root: token.Draw(r, "root")}
			return s
		}
		s, other := begin(), begin()
		defer func() {
			s.Close()
			s.cache.Free()
			other.Close()
			other.cache.Free()
		}()
		var text []int32
		for range rapid.IntRange(1, 3).Draw(r, "chunks") {
			chunk := rapid.SliceOfN(token, 1, 60).Draw(r, "chunk")
			text = append(text, chunk...)
			s.take(r, d, tree.Chain(chunk), upTo(len(chunk)), -1)
		}
		other.take(r, d, tree.Chain([]int32{3, 4, 5}), upTo(3), -1)
		for range rapid.IntRange(0, 5).Draw(r, "rounds") {
			q := []draft.Request{s.request(), other.request()}
			Propose(r, d, q...)
			if rapid.Bool().Draw(r, "twice") {
				q[0].Tree.Reset(s.root)
				Propose(r, d, q[:1]...)
			}
			path := q[0].Tree.Path(rapid.IntRange(0, q[0].Tree.Len()-1).Draw(r, "accepted"), nil)
			for _, node := range path {
				text = append(text, q[0].Tree.Token[node])
			}
			s.root = token.Draw(r, "next")
			s.take(r, d, q[0].Tree, path, s.root)
		}
		got := s.request()
		Propose(r, d, got)

		fresh := &sequence{State: Must(d.Begin(o))(r), cache: m.NewCache(), pass: m.NewPass(), root: s.root}
		defer func() {
			fresh.Close()
			fresh.cache.Free()
		}()
		cached := rapid.IntRange(0, len(text)).Draw(r, "cached")
		if cached > 0 {
			if err := fresh.pass.Prefill(context.Background(), fresh.cache, text[:cached], false); err != nil {
				r.Fatal(err)
			}
			from := draft.State(nil)
			if rapid.Bool().Draw(r, "from another") {
				from = s.State
			}
			first := d.Resume(fresh.State, cached, from, cached)
			if first != cached-1 {
				r.Fatalf("of %d rows those from %d on are computed again, want the last", cached, first)
			}
			if err := fresh.cache.Truncate(first); err != nil {
				r.Fatal(err)
			}
			if first > 0 {
				Commit(r, d, draft.Rows{State: fresh.State, Tokens: text[:first], Next: -1})
			}
			cached = first
		}
		fresh.take(r, d, tree.Chain(text[cached:]), upTo(len(text)-cached), -1)
		want := fresh.request()
		Propose(r, d, want, other.request())
		if err := Same(got.Tree, want.Tree); err != nil {
			r.Fatal(err)
		}
		if got.Tree.Len() == 1 {
			r.Fatal("nothing was drafted")
		}

		// Without such a cache, or with one that lacks the text, nothing is read.
		for _, cache := range []*nn.Cache{nil, other.cache} {
			q := fresh.request()
			q.Cache = nil
			if cache != nil {
				q.Cache = cache
			}
			Propose(r, d, q)
			if q.Tree.Len() > 1 && (cache == nil || cache.Len() != len(text)) {
				r.Fatalf("a tree of %d nodes over %v", q.Tree.Len(), cache)
			}
		}
	})
}

// Sequences that end while others continue, and sequences that begin over what those left, decode
// as each does alone: freed rows are not read.
func TestSequencesComeAndGo(t *testing.T) {
	m := openTarget(t, nn.KVBF16)
	n := head(t, m, 3)
	best := grow.DefaultBestFirst()
	l := Must(speculate.New(speculate.Model(m), newDrafter(t, &best, false, n, m),
		speculate.Options{Budget: 24, Uncontrolled: true}))(t)
	prompt := slices.Repeat([]int32{9, 8, 7, 6}, 30)
	request := speculate.Request{MaxTokens: 40}
	plain, _ := Generate(t, m, nil, speculate.Options{}, sample.Params{}, [][]int32{prompt})
	first := Must(l.Start(prompt, request))(t)
	batch := []*speculate.Sequence{first}
	for step := 0; first.Finish() == speculate.Running; step++ {
		if step%3 == 2 { // one is stopped, as by preemption, and another begins over the same prompt's cache
			if len(batch) > 1 {
				batch[1].Close()
			}
			r := request
			cache := m.NewCache()
			defer cache.Free()
			if err := m.NewPass().Prefill(t.Context(), cache, prompt[:100], false); err != nil {
				t.Fatal(err)
			}
			r.Cache = cache
			batch = append(batch[:1], Must(l.Start(prompt, r))(t))
		}
		if err := l.Step(t.Context(), batch); err != nil {
			t.Fatal(err)
		}
		for _, s := range batch {
			if out := s.Output(); !slices.Equal(out[:min(len(out), 30)], plain[0][:min(len(out), 30)]) || s.Err() != nil {
				t.Fatalf("%v %v, want %v", out, s.Err(), plain[0])
			}
		}
	}
	for _, s := range batch {
		s.Close()
	}
	if l.Stats().Drafted == 0 {
		t.Error("nothing was drafted")
	}
}

// Heads come back from GGUF files unchanged, under their drafter's name. For other targets they are
// refused with an error that says what differs.
func TestFiles(t *testing.T) {
	m := openTarget(t, nn.KVF32)
	for seed := range uint64(6) {
		c := synthetic.Config[assistant.Config](rand.New(rand.NewPCG(seed, 2)), "", m.Config, tensor.F32)
		path := filepath.Join(t.TempDir(), "head.gguf")
		weights := Must(synthetic.Tensors(&c, tensor.F32, seed))(t)
		if err := headfile.WriteGGUF(path, "x", &c, weights, nil, nil, tensor.F32); err != nil {
			t.Fatal(err)
		}
		target := As(m)
		target.Shared = new(registry.Shared)
		target.Heads = []registry.Head{{Name: path}}
		d, err := registry.New("gemma4-assistant:tree=linear,k=3+text", target)
		if err != nil || !slices.Equal(d.Taps(), c.Taps) {
			t.Fatal(err)
		}
		got := Must(headfile.ReadConfig[assistant.Config](registry.Head{Name: path}, &m.Config))(t)
		got.Name = ""
		if d := cmp.Diff(c, got); d != "" {
			t.Error(d)
		}
		if _, err := model.Open(path, model.Options{}); err == nil || !strings.Contains(err.Error(), "drafter's head") {
			t.Errorf("opened as a model: %v", err)
		}
	}
	for want, change := range map[string]func(c *model.Config){
		"values of gemma4":       func(c *model.Config) { c.Arch = "llama" },
		"hidden size 96":         func(c *model.Config) { c.Hidden = 64 },
		"416 tokens":             func(c *model.Config) { c.Vocab = 400 },
		"window is 70":           func(c *model.Config) { c.Window = 80 },
		"key/value heads of 24":  func(c *model.Config) { c.LocalHeadDim = 48 },
		"has none":               func(c *model.Config) { c.Windowed = nil },
		"taps layer 6 of a":      func(c *model.Config) { c.Layers = 7 },
		"2 key/value heads of 4": func(c *model.Config) { c.KVHeads = 4 },
	} {
		c := synthetic.Config[assistant.Config](rand.New(rand.NewPCG(1, 2)), "", m.Config, tensor.F32)
		c.TargetLayers = 0
		other := m.Config
		change(&other)
		if err := headfile.Fits(&c, &other); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}
