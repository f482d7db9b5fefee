package eagle_test

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"testing"

	"github.com/grovellm/grove/draft"
	. "github.com/grovellm/grove/internal/drafters/drafttest"
	"github.com/grovellm/grove/internal/drafters/grow"
	"github.com/grovellm/grove/internal/drafters/shortlist"
	listsynth "github.com/grovellm/grove/internal/drafters/synthetic/shortlist"
	"github.com/grovellm/grove/internal/testing/cases"
	"github.com/grovellm/grove/tensor"
	"pgregory.net/rapid"
)

// routers writes the files of random routers.
func routers(t *testing.T, hidden int) (paths []string) {
	t.Helper()
	dir := t.TempDir()
	for seed := range uint64(4) {
		path := filepath.Join(dir, fmt.Sprintf("router%d.gguf", seed))
		if err := listsynth.Write(path, rand.New(rand.NewPCG(seed, 3)), Vocab, hidden, tensor.F32); err != nil {
			t.Fatal(err)
		}
		paths = append(paths, path)
	}
	return paths
}

// Drafts over a router's lists do not depend on other sequences in the batch, nor on how the text
// came about: a row's list is that of its step in its own draft.
func TestRoutedDraftsAreTheTexts(t *testing.T) {
	m := OpenTarget(t, 400)
	files := routers(t, m.Config.Hidden)
	cases.Check(t, 40, func(r *rapid.T) {
		n, shape := genHead(r, m), genShape(r)
		o := shortlist.Options{
			Method: rapid.SampledFrom([]string{"dynaspec", "dynaspec-fixed"}).Draw(r, "shortlist"),
			Router: rapid.SampledFrom(files).Draw(r, "router"), Extra: -1,
			Own: rapid.Bool().Draw(r, "own"),
		}
		d, other := newDrafter(r, n, shape, o, m), newDrafter(r, n, shape, o, m)
		var all []*Sequence
		var options []draft.Options
		for id := range rapid.IntRange(1, 3).Draw(r, "sequences") {
			options = append(options, draft.Options{Sampling: GenParams(r)})
			all = append(all, Begin(r, d, options[id], id))
		}
		Live(r, d, n.Hidden, 4, all...)
		var got []draft.Request
		for _, s := range all {
			got = append(got, s.Request(40, 20, nil))
		}
		Propose(r, d, got...)
		for i, s := range all {
			fresh := s.Fresh(r, other, options[i], n.Hidden)
			want := fresh.Request(40, 20, nil)
			Propose(r, other, want)
			if err := Same(got[i].Tree, want.Tree); err != nil {
				r.Fatalf("sequence %d of %d, version %d, %+v, %+v: %v", i, len(all), n.Version, shape, o, err)
			}
			fresh.Close()
			s.Close()
		}
	})
}

// Nor does a round over these lists allocate anything, once the longest lists have been laid out.
func TestRoutedRoundsAllocateNothing(t *testing.T) {
	m := OpenTarget(t, 4000)
	n := head(t, m, 3, 1)
	shape := grow.Dynamic{K: 4, Depth: 4, N: 24}
	d := newDrafter(t, n, &shape, shortlist.Options{Method: "dynaspec", Router: routers(t, n.Hidden)[1],
		Extra: min(32, n.DraftVocab)}, m)
	s := Begin(t, d, draft.Options{}, 1)
	defer s.Close()
	Commit(t, d, s.Prompt(make([]int32, 50), n.Hidden, true))
	q := []draft.Request{s.Request(24, 4, nil)}
	rows := []draft.Rows{{State: s.State, Nodes: []int32{0}, Tokens: make([]int32, 1), Next: 1, Tree: q[0].Tree,
		Pass: fixedTaps{make([]float32, n.Hidden), make([]float32, Vocab)}}}
	round := func() {
		q[0].Tree.Reset(1)
		if _, err := d.Propose(t.Context(), q); err != nil {
			t.Fatal(err)
		}
		rows[0].Tokens[0] = q[0].Tree.Token[0]
		if err := d.Commit(rows); err != nil {
			t.Fatal(err)
		}
	}
	for range 200 {
		round()
	}
	if got := testing.AllocsPerRun(40, round); got > 0.5 { // the cache's pages grow with the text
		t.Errorf("%g allocations a round", got)
	}
}
