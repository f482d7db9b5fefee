package grow

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/grovellm/grove/draft"
	"github.com/grovellm/grove/internal/drafters/shortlist"
	"github.com/grovellm/grove/internal/model"
	"github.com/grovellm/grove/internal/testing/cases"
	"github.com/grovellm/grove/sample"
	"github.com/grovellm/grove/tensor"
	"github.com/grovellm/grove/tree"
	"pgregory.net/rapid"
)

// If a target drafts for itself, every token of a chain is accepted, at every temperature and with
// every sampler: the candidates are its own choices, and the rows are the same to the bit.
func TestOwnDraftIsAccepted(t *testing.T) {
	m := openModels(t)
	cases.Check(t, 40, func(r *rapid.T) {
		p := genParams(r)
		k := rapid.IntRange(1, 9).Draw(r, "k")
		prompt := genText(r, "prompt", 1, 60)
		text := plain(r, m.target, prompt, p, 50)
		d := must(ofModel(&Linear{K: k}, m.target, m.as()))(r)
		s := prompted(r, d, draft.Options{Sampling: p}, prompt)
		defer s.Close()
		for at := len(prompt); at+k+1 < len(text); {
			tr := propose(r, d, s, text[at], 100, 100, nil)
			rows := follow(s, tr, text, at)
			if len(rows.Tokens) != k+1 {
				r.Fatalf("at %d: %d tokens of %d: tree\n%s for %v", at, len(rows.Tokens), k+1, tr, text[at:])
			}
			if err := d.Commit([]draft.Rows{rows}); err != nil {
				r.Fatal(err)
			}
			at += len(rows.Tokens)
		}
	})
}

// After any history of rounds, plain rounds (read or not), and repeated, cancelled and batched
// proposals, a state proposes what a fresh one does that receives the text at once; and it has read
// what came after the rows that were not to be read. Budget and depth are kept, and no row is run
// that leads to nothing.
func TestProposalsAreOfTheTextAlone(t *testing.T) {
	m := openModels(t)
	cases.Check(t, 40, func(r *rapid.T) {
		shape := genShape(r)
		if x, ok := shape.(withText); ok { // it learns from round to round
			shape = x.Shape
		}
		dm := m.draws(r)
		d := must(ofModel(shape, dm, m.as()))(r)
		fresh := must(ofModel(shape, dm, m.as()))(r)
		type sequence struct {
			o    draft.Options
			text []int32
			at   int // the root
			skip int // number of rows at the beginning that are not to be read
			s    draft.State
		}
		var seqs []*sequence
		for range rapid.IntRange(1, 3).Draw(r, "sequences") {
			q := &sequence{o: draft.Options{Sampling: genParams(r), Sampled: rapid.Bool().Draw(r, "sampled"), Seed: 5}}
			prompt := genText(r, "prompt", 1, 50)
			q.text, q.at = plain(r, m.target, prompt, q.o.Sampling, 30), len(prompt)
			q.s = prompted(r, d, q.o, prompt)
			defer q.s.Close()
			seqs = append(seqs, q)
		}
		for range rapid.IntRange(1, 8).Draw(r, "rounds") {
			budget, depth := rapid.IntRange(1, 40).Draw(r, "budget"), rapid.IntRange(0, 12).Draw(r, "depth")
			var requests []draft.Request
			for _, q := range seqs {
				if q.at+2 < len(q.text) {
					requests = append(requests, draft.Request{State: q.s, Tree: tree.New(q.text[q.at]),
						Budget: budget, Depth: depth})
				}
			}
			action := rapid.SampledFrom([]string{"round", "round", "round", "plain", "skipped", "cancelled",
				"twice"}).Draw(r, "action")
			if action == "cancelled" {
				ctx, cancel := context.WithCancel(context.Background())
				cancel()
				if _, err := d.Propose(ctx, requests); err == nil &&
					slices.ContainsFunc(requests, func(q draft.Request) bool { return q.Tree.Len() > 1 }) {
					r.Fatal("a proposal that was cancelled came")
				}
			}
			for range map[string]int{"twice": 2, "round": 1}[action] {
				for i := range requests {
					requests[i].Tree.Reset(requests[i].Tree.Token[0])
				}
				if _, err := d.Propose(context.Background(), requests); err != nil {
					r.Fatal(err)
				}
			}
			var commits []draft.Rows
			for _, q := range seqs {
				i := slices.IndexFunc(requests, func(x draft.Request) bool { return x.State == q.s })
				if i < 0 {
					continue
				}
				tr := requests[i].Tree
				if err := tr.Check(vocab); err != nil || tr.Len() > max(budget, 1) || tr.MaxDepth() > depth {
					r.Fatalf("%d nodes of depth %d for a budget of %d and %d: %v", tr.Len(), tr.MaxDepth(), budget,
						depth, err)
				}
				if action == "round" || action == "twice" {
					s := must(fresh.Begin(q.o))(r)
					for _, rows := range []draft.Rows{{State: s, Tokens: q.text[:q.skip], Next: -1, Skip: true},
						{State: s, Tokens: q.text[q.skip:q.at], Next: -1}} {
						if err := fresh.Commit([]draft.Rows{rows}); err != nil {
							r.Fatal(err)
						}
					}
					want := propose(r, fresh, s, q.text[q.at], budget, depth, nil)
					if !sameTree(want, tr) {
						r.Fatalf("%v %+v, root at %d: proposed\n%sa fresh state proposes\n%s", shape, q.o, q.at, tr,
							want)
					}
					s.Close()
				}
				rows := follow(q.s, tr, q.text, q.at)
				rows.Skip = action == "skipped"
				commits = append(commits, rows)
				q.at += len(rows.Tokens)
				if rows.Skip {
					q.skip = q.at
				}
			}
			if len(commits) > 0 {
				if err := d.Commit(commits); err != nil {
					r.Fatal(err)
				}
			}
			for _, q := range seqs {
				if s := q.s.(*state); !s.lost && s.read.Place()+s.read.Waiting() != q.at-q.skip {
					r.Fatalf("%d rows of text, want those from %d to %d", s.read.Place()+s.read.Waiting(), q.skip, q.at)
				}
			}
		}
	})
}

// The cache keeps the text: a prompt is read when it is committed, and no row of an accepted path
// is computed twice.
func TestAcceptedRowsAreKept(t *testing.T) {
	m := openModels(t)
	prompt := []int32{5, 6, 7, 8}
	text := plain(t, m.target, prompt, sample.Params{}, 60)
	d := must(ofModel(&Linear{K: 6}, m.target, m.as()))(t)
	st := prompted(t, d, draft.Options{}, prompt)
	defer st.Close()
	s := st.(*state)
	if s.read.Cache.Len() != len(prompt) || s.read.Waiting() > 0 {
		t.Fatalf("%d rows of the prompt's %d", s.read.Cache.Len(), len(prompt))
	}
	for at := len(prompt); at+8 < len(text); {
		tr := propose(t, d, st, text[at], 100, 100, nil)
		want := 7 // the leaf accepted before, the root, and 5 nodes below it
		if at == len(prompt) {
			want = 6
		}
		if computed := s.run.Len(); computed != want {
			t.Fatalf("at %d: %d rows computed, want %d", at, computed, want)
		}
		rows := follow(st, tr, text, at)
		if err := d.Commit([]draft.Rows{rows}); err != nil {
			t.Fatal(err)
		}
		at += len(rows.Tokens)
		if s.read.Cache.Len() != at-1 || s.read.Waiting() != 1 {
			t.Fatalf("%d rows and %d to do of %d tokens", s.read.Cache.Len(), s.read.Waiting(), at)
		}
	}
}

// A draft model drafts for texts longer than its context. Its rows stay within the context.
func TestTextLongerThanTheContext(t *testing.T) {
	m := openModels(t)
	for _, context := range []int{1, 7, 40, 150} {
		short := small
		short.Context = context
		for _, shape := range []Shape{&Linear{K: 8}, &Fixed{D: 8, B: 2, N: 30}, ptr(DefaultDynaTree()),
			ptr(DefaultDynamic()), ptr(DefaultBestFirst()), &BestFirst{Width: 8, Branch: 8, Depth: 20}} {
			dm := openSynth(t, short, tensor.F32, 1, model.Options{Workers: m.target})
			d := must(ofModel(shape, dm, m.as()))(t)
			prompt := []int32{1, 2, 3}
			text := plain(t, m.target, prompt, sample.Params{}, 200)
			s := prompted(t, d, draft.Options{}, prompt)
			for at := len(prompt); at+9 < len(text); {
				tr := propose(t, d, s, text[at], 30, 100, nil)
				if tr.Len() == 1 && shape.floor() == negInf {
					t.Fatalf("context %d, %T: nothing is drafted after %d tokens", context, shape, at)
				}
				rows := follow(s, tr, text, at)
				if err := d.Commit([]draft.Rows{rows}); err != nil {
					t.Fatal(err)
				}
				at += len(rows.Tokens)
			}
			s.Close()
		}
	}
}

func ptr[T any](v T) *T { return &v }

// Once buffers have grown, a round allocates nothing.
func TestSteadyStateAllocatesNothing(t *testing.T) {
	m := openModels(t)
	prompts := [][]int32{{0, 3, 4}, {1, 3, 4}}
	texts := [][]int32{plain(t, m.target, prompts[0], sample.Params{}, 300),
		plain(t, m.target, prompts[1], sample.Params{}, 300)}
	for _, o := range []draft.Options{
		{},
		{Sampling: sample.Params{Temperature: 1}},
		{Sampling: sample.Params{Temperature: 1, TopP: .9, PresencePenalty: .1}},
		{Sampling: sample.Params{Temperature: 1}, Sampled: true},
	} {
		method := "context"
		if o.Sampling.Temperature == 0 {
			method = ""
		}
		for _, shape := range []Shape{ptr(DefaultLinear()), ptr(DefaultFixed()), ptr(DefaultDynaTree()),
			ptr(DefaultDynamic()), ptr(DefaultBestFirst()), &BestFirst{Width: 8, Branch: 8, Depth: 20}} {
			t.Run(fmt.Sprintf("%T %g %v %s", shape, o.Sampling.Temperature, o.Sampled, method), func(t *testing.T) {
				d := must(listed(shape, shortlist.Options{Method: method, Size: 64, Extra: 64}, m.rounded, m.as()))(t)
				ctx := context.Background()
				var requests []draft.Request
				rows := make([]draft.Rows, 2)
				for i := range rows {
					s := prompted(t, d, o, prompts[i])
					defer s.Close()
					requests = append(requests, draft.Request{State: s, Tree: tree.New(0), Budget: 30, Depth: 20})
					rows[i] = draft.Rows{State: s, Next: 1, Nodes: make([]int32, 2)}
				}
				at := 3
				round := func() {
					for i := range requests {
						requests[i].Tree.Reset(texts[i][at])
						rows[i].Tokens, rows[i].Tree = texts[i][at:at+2], requests[i].Tree
					}
					if _, err := d.Propose(ctx, requests); err != nil {
						t.Fatal(err)
					}
					if err := d.Commit(rows); err != nil {
						t.Fatal(err)
					}
					at += 2
				}
				for range 100 {
					round()
				}
				// pages of the caches, and the histories, grow with the text
				if n := testing.AllocsPerRun(40, round); n > 0.5 {
					t.Errorf("%g allocations a round", n)
				}
			})
		}
	}
}
