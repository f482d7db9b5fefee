package drafttest

import (
	"math/rand/v2"
	"path/filepath"
	"testing"

	"github.com/grovellm/grove/draft"
	"github.com/grovellm/grove/internal/autograd"
	"github.com/grovellm/grove/internal/drafters/learn"
	"github.com/grovellm/grove/internal/heads/headfile"
	"github.com/grovellm/grove/tree"
	"pgregory.net/rapid"
)

// Exports checks that a head that is written to a file and opened again drafts the same to the bit,
// whether or not it has learned, and also after it is written once more. generate makes a drafter
// with a random head; its second result makes the same drafter with the head of a file.
func Exports(t *testing.T, hidden int, generate func(r *rapid.T) (learn.Learner, func(path string) learn.Learner)) {
	dir := t.TempDir()
	own := map[string]int{}
	rapid.Check(t, func(r *rapid.T) {
		d, open := generate(r)
		seed := rapid.Uint64().Draw(r, "text")
		if rapid.Bool().Draw(r, "learned") {
			rng := rand.New(rand.NewPCG(seed, 1))
			l, _ := example(r, rng, d, 0, hidden, 3, -1)
			s := Must(learn.NewStudent(d.Head(), 1))(r)
			defer s.Close()
			study := learn.Study{AdamW: autograd.AdamW{Rate: 0.05, Beta1: .9, Beta2: .99, Eps: 1e-8}}
			if err := s.Learn(whole(l), study); err != nil {
				r.Fatal(err)
			}
			d.Use(Must(s.Packed())(r))
		}
		d.Head().Tensors().Weights(func(w headfile.Weight) {
			if w.Fixed {
				own[w.Name]++
			}
		})
		want := drafts(r, d, hidden, seed)
		for range 2 {
			path := filepath.Join(dir, "head.gguf")
			if err := learn.Write(path, "exported", d.Head()); err != nil {
				r.Fatal(err)
			}
			d = open(path)
			for i, tree := range drafts(r, d, hidden, seed) {
				if err := Same(tree, want[i]); err != nil {
					r.Fatalf("round %d with the exported head: %v", i, err)
				}
			}
		}
	})
	for _, name := range []string{"token_embd.weight", "output.weight"} {
		if own[name] == 0 {
			t.Errorf("no head had a %s of its own", name)
		}
	}
}

// drafts returns the trees that a drafter proposes in a few rounds of a random text.
func drafts(t Fataler, d draft.Drafter, hidden int, seed uint64) (trees []*tree.Tree) {
	rng := rand.New(rand.NewPCG(seed, 2))
	s := Begin(t, d, draft.Options{}, int(rng.Int32N(Vocab)))
	defer s.Close()
	prompt := make([]int32, 2+rng.IntN(20))
	for i := range prompt {
		prompt[i] = rng.Int32N(Vocab)
	}
	Commit(t, d, s.Prompt(prompt, hidden, true))
	for range 4 {
		q := s.Request(16, 12, nil)
		Propose(t, d, q)
		trees = append(trees, q.Tree)
		Commit(t, d, s.Accept(q.Tree, rng.IntN(q.Tree.Len()), rng.Int32N(Vocab), hidden))
	}
	return trees
}
