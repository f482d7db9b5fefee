package assistant

import (
	"context"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/grovellm/grove/draft"
	"github.com/grovellm/grove/internal/drafters/grow"
	"github.com/grovellm/grove/internal/drafters/registry"
	"github.com/grovellm/grove/internal/drafters/shortlist"
	"github.com/grovellm/grove/internal/heads/headfile"
	"github.com/grovellm/grove/internal/kernels/simd"
	"github.com/grovellm/grove/internal/model"
	"github.com/grovellm/grove/internal/nn"
	"github.com/grovellm/grove/internal/nn/output"
	"github.com/grovellm/grove/sample"
	"github.com/grovellm/grove/tensor"
	"github.com/grovellm/grove/tree"
)

// golden is what transformers computes (testdata/golden.py): a text, and drafts after some of its tokens.
type golden struct {
	Text        []int32
	Short, Long struct {
		Text    int
		Tokens  []int32 // the first tokens of Long, and the root
		Parents []int
		Logits  [][]float32
	}
}

// Published folders draft here what the reference drafts, with logits of all tokens and of
// clusters: along a chain, and in a tree whose levels are one pass each. So do the GGUF files that
// grove and llama.cpp make of them.
func TestAsReference(t *testing.T) {
	for _, name := range []string{"dense", "ordered"} {
		dir := filepath.Join("testdata", "heads", name)
		var g golden
		data, err := os.ReadFile(filepath.Join(dir, "golden.json"))
		if err == nil {
			err = json.Unmarshal(data, &g)
		}
		if err != nil {
			t.Fatal(err)
		}
		m := openGolden(t)
		asGolden(t, m, &g, dir)

		h, err := headfile.Read(registry.Head{Name: dir}, &kind)
		if err != nil {
			t.Fatal(err)
		}
		file := filepath.Join(t.TempDir(), "head.gguf")
		if err := headfile.WriteGGUF(file, "x", h.Shape, h.Weights, nil, nil, tensor.F32); err != nil {
			t.Fatal(err)
		}
		if err := h.Close(); err != nil {
			t.Fatal(err)
		}
		asGolden(t, m, &g, file)
		if name == "dense" {
			asGolden(t, m, &g, filepath.Join("testdata", "heads", "llama.cpp.gguf"))
		}
	}
}

func openGolden(t *testing.T) *model.Model {
	t.Helper()
	m, err := model.Open(filepath.Join("testdata", "heads", "target"), model.Options{Threads: 2, KV: nn.KVF32})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { m.Close() })
	return m
}

// asGolden compares the head at path with a golden.
func asGolden(t *testing.T, m *model.Model, g *golden, path string) {
	t.Helper()
	of := registry.Target{Vocab: m.Config.Vocab, Context: m.Context(), Model: m}
	n, err := Open(registry.Head{Name: path}, of)
	if err != nil {
		t.Fatal(err)
	}
	p := newPasses(t, n, m, g.Text[:g.Long.Text], g.Text[g.Long.Text])
	for i, parent := range g.Long.Parents {
		if parent >= 0 {
			p.tree.Append(p.root+parent, g.Long.Tokens[i], 0)
		}
	}
	levels := []int{1, 3, 5}
	from := 0
	for _, to := range levels {
		p.run(t, to-from)
		for i := from; i < to; i++ {
			p.compare(t, path, i-from, g.Long.Logits[i])
		}
		from = to
	}

	p = newPasses(t, n, m, g.Text[:g.Short.Text], g.Text[g.Short.Text])
	for i, want := range g.Short.Tokens {
		p.run(t, 1)
		if got := p.compare(t, path, 0, g.Short.Logits[i]); got != want {
			t.Errorf("%s: draft %d is token %d, want %d", path, i, got, want)
		}
		p.tree.Append(p.tree.Len()-1, want, 0)
	}
}

// passes are the passes of a draft after a text.
type passes struct {
	n     *Network
	r     *rows
	lists shortlist.Method
	state shortlist.State
	text  *grow.Text
	cache *nn.Cache
	all   tree.Tree // the part of tree that run has computed so far
	tree  *tree.Tree
	root  int
	list  []*shortlist.List
}

func newPasses(t *testing.T, n *Network, m *model.Model, text []int32, root int32) *passes {
	t.Helper()
	cache := m.NewCache()
	t.Cleanup(cache.Free)
	pass := m.NewPass()
	chain := tree.Chain(text)
	if err := pass.Run(context.Background(), []model.Rows{{Cache: cache, Tree: chain}}, n.Taps); err != nil {
		t.Fatal(err)
	}
	cache.CommitAll()
	p := &passes{n: n, r: newRows(n, m.Pool(), cache.Pages()), cache: cache, root: len(text) - 1}
	p.text = p.r.NewText()
	rows := draft.Rows{Tokens: text, Tree: chain, Next: -1, Pass: pass}
	for i := range text {
		rows.Nodes = append(rows.Nodes, int32(i))
	}
	if !p.text.Commit(&rows) {
		t.Fatal("the text was not taken in")
	}
	if n.Config.Centroids > 0 {
		var err error
		if p.lists, err = n.lists(m.Pool(), nil); err != nil {
			t.Fatal(err)
		}
		p.state = p.lists.Begin(&sample.Params{})
	}
	p.tree = tree.Chain(append(slices.Clone(text[1:]), root)) // the text's first token has no entry
	return p
}

// run computes the next rows of the tree.
func (p *passes) run(t *testing.T, rows int) {
	t.Helper()
	from, to := p.all.Len(), p.all.Len()+rows
	if from == 0 {
		to = p.root + 1
	}
	var asked []int32
	for i := to - rows; i < to; i++ {
		asked = append(asked, int32(i))
	}
	all := make([]int32, to)
	for i := range all {
		all[i] = int32(i)
	}
	p.tree.Pick(&p.all, all, nil)
	laid := []grow.Rows{{Text: p.text, Tree: &p.all, From: from, Known: p.root + 1, Asked: asked, Cache: p.cache}}
	p.r.Prepare(laid)
	if p.lists != nil {
		var queries []shortlist.Query
		for k := range asked {
			queries = append(queries, shortlist.Query{State: p.state, Step: min(from, 1), Hidden: p.r.RouterInput(0, k, true)})
		}
		p.list = make([]*shortlist.List, len(queries))
		p.r.Follow(p.lists.(shortlist.Phased).Start(queries, p.list))
		for _, l := range p.list {
			laid[0].Lists = append(laid[0].Lists, &l.Shortlist)
		}
	}
	if err := p.r.Run(context.Background()); err != nil {
		t.Fatal(err)
	}
}

// compare compares the k-th row's logits with the reference's, and returns the likeliest token.
// Tokens that are not listed have a logit below all others there.
func (p *passes) compare(t *testing.T, path string, k int, want []float32) int32 {
	t.Helper()
	logits := p.r.Logits(0, k)
	if p.lists != nil {
		least := slices.Min(want)
		spread := make([]float32, len(want))
		for i := range spread {
			spread[i] = least
		}
		for i, token := range p.list[k].Tokens() {
			if token != output.NoToken {
				spread[token] = logits[i]
			}
		}
		logits = spread
	}
	for i, v := range logits {
		if !(math.Abs(float64(v-want[i])) <= 1e-4) {
			t.Fatalf("%s: after %d tokens, node %d: logit %d is %g, want %g", path, p.root+1, p.all.Len()-1, i, v, want[i])
		}
	}
	return int32(simd.ArgMax(logits))
}
