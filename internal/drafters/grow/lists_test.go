package grow

import (
	"context"
	"math"
	"slices"
	"testing"

	"github.com/grovellm/grove/draft"
	"github.com/grovellm/grove/internal/drafters/shortlist"
	"github.com/grovellm/grove/internal/testing/cases"
	"github.com/grovellm/grove/sample"
	"github.com/grovellm/grove/tree"
	"pgregory.net/rapid"
)

func short(t fataler, m models, shape Shape, o shortlist.Options) draft.Drafter {
	return must(listed(shape, o, m.rounded, m.as()))(t)
}

// A list of all tokens drafts what the whole head does, with every sampler; from a shorter list
// come only tokens that it has, including special ones.
func TestShortlists(t *testing.T) {
	m := openModels(t)
	cases.Check(t, 40, func(r *rapid.T) {
		p := genParams(r)
		prompt := genText(r, "prompt", 1, 60)
		text := plain(r, m.target, prompt, p, 20)
		o := shortlist.Options{Method: rapid.SampledFrom([]string{"freq", "freq-pa", "context"}).Draw(r, "method"),
			Size: rapid.IntRange(1, vocab).Draw(r, "size"), Extra: 8}
		whole := rapid.Bool().Draw(r, "whole")
		if whole {
			o.Size = vocab
			if o.Method == "freq-pa" {
				o.Method = "freq"
			}
		}
		shape := &Linear{K: rapid.IntRange(1, 5).Draw(r, "k")}
		d, all := short(r, m, shape, o), must(ofModel(shape, m.rounded, m.as()))(r)
		s, a := prompted(r, d, draft.Options{Sampling: p}, prompt), prompted(r, all, draft.Options{Sampling: p}, prompt)
		defer s.Close()
		defer a.Close()
		for at := len(prompt); at+2 < len(text); {
			tr, want := propose(r, d, s, text[at], 100, 100, nil), propose(r, all, a, text[at], 100, 100, nil)
			if whole {
				if !slices.Equal(tr.Token, want.Token) {
					r.Fatalf("with a list of all tokens: %s, without one: %s", tr, want)
				}
				for node, l := range want.LogProb {
					if math.Abs(float64(l-tr.LogProb[node])) > 1e-3 {
						r.Fatalf("node %d has log-probability %g with a list of all tokens, %g without one", node,
							tr.LogProb[node], l)
					}
				}
			} else if o.Method == "freq" {
				for _, token := range tr.Token[1:] {
					if !slices.Contains(shortlist.Rank(make([]int64, vocab), m.rounded.Tokenizer,
						"").First((o.Size+31)/32*32), token) {
						r.Fatalf("token %d is not listed", token)
					}
				}
			}
			rows, same := follow(s, tr, text, at), follow(a, want, text, at)
			if err := d.Commit([]draft.Rows{rows}); err != nil {
				r.Fatal(err)
			}
			if err := all.Commit([]draft.Rows{same}); err != nil {
				r.Fatal(err)
			}
			if !whole {
				return
			}
			at += len(rows.Tokens)
		}
	})
}

// Sequences that come and go, and drawn ones, do not affect each other.
func TestShortlistsOfABatch(t *testing.T) {
	m := openModels(t)
	d := short(t, m, ptr(DefaultBestFirst()), shortlist.Options{Method: "context", Size: 40, Extra: 64})
	options := []draft.Options{{}, {Sampling: sample.Params{Temperature: 1}},
		{Sampling: sample.Params{Temperature: 1}, Sampled: true}}
	alone := func(o draft.Options, prompt []int32) *tree.Tree {
		one := short(t, m, ptr(DefaultBestFirst()), shortlist.Options{Method: "context", Size: 40, Extra: 64})
		s := prompted(t, one, o, prompt)
		defer s.Close()
		return propose(t, one, s, 7, 20, 6, nil)
	}
	for round := range int32(3) {
		var requests []draft.Request
		var want []*tree.Tree
		for i, o := range options {
			prompt := []int32{round, 50 + round, int32(100 + i), 300}
			s := prompted(t, d, o, prompt)
			defer func() { s.Close() }()
			requests = append(requests, draft.Request{State: s, Tree: tree.New(7), Budget: 20, Depth: 6})
			want = append(want, alone(o, prompt))
		}
		if _, err := d.Propose(context.Background(), requests); err != nil {
			t.Fatal(err)
		}
		for i := range requests {
			if !sameTree(requests[i].Tree, want[i]) {
				t.Errorf("round %d, sequence %d: in a batch\n%s, alone\n%s", round, i, requests[i].Tree, want[i])
			}
		}
	}
}
