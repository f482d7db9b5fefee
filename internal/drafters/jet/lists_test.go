package jet_test

import (
	"context"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/grovellm/grove/draft"
	. "github.com/grovellm/grove/internal/drafters/drafttest"
	"github.com/grovellm/grove/internal/drafters/jet"
	"github.com/grovellm/grove/internal/drafters/onepass"
	"github.com/grovellm/grove/internal/drafters/registry"
	"github.com/grovellm/grove/internal/drafters/shortlist"
	"github.com/grovellm/grove/internal/kernels/gemm"
	"github.com/grovellm/grove/internal/speculate"
	"github.com/grovellm/grove/internal/testing/cases"
	"github.com/grovellm/grove/sample"
	"github.com/grovellm/grove/tree"
	"pgregory.net/rapid"
)

var listMethods = []string{"freq", "freq-pa", "context"}

// A list of all tokens drafts what the whole head does, with every tree and sampler, round after
// round.
func TestListOfAllTokens(t *testing.T) {
	m := OpenTarget(t, 400)
	cases.Check(t, 40, func(r *rapid.T) {
		n := genHead(r, m)
		o := genOptions(r, n)
		if rapid.Bool().Draw(r, "with text") {
			o.Tree = withText
		}
		p := GenParams(r)
		if o.Tree == withText && len(p.LogitBias) > 0 {
			p.LogitBias = nil // tokens with a bias are nearly equal: rounding decides which is first
		}
		short := o
		short.List.Method, short.List.Size = rapid.SampledFrom([]string{"freq", "context"}).Draw(r, "method"), Vocab
		d := newDrafter(r, short, n, m)
		whole := newDrafter(r, o, n, m)
		all := Begin(r, whole, draft.Options{Sampling: p}, 1)
		listed := Begin(r, d, draft.Options{Sampling: p}, 1)
		text := GenText(r, 1, 60)
		Commit(r, whole, all.Prompt(text, n.Hidden, true))
		Commit(r, d, listed.Prompt(text, n.Hidden, true))
		for range 3 {
			want, got := all.Request(20, 12, nil), listed.Request(20, 12, nil)
			Propose(r, whole, want)
			Propose(r, d, got)
			if err := sameShape(got.Tree, want.Tree); err != nil {
				r.Fatalf("%+v, %+v: with a list of all tokens and without one %v", short, p, err)
			}
			for i, l := range want.Tree.LogProb {
				if math.Abs(float64(l-got.Tree.LogProb[i])) > 2e-3 {
					r.Fatalf("%+v: node %d has log-probability %g with a list of all tokens, %g without one", short,
						i, got.Tree.LogProb[i], l)
				}
			}
			node, next := rapid.IntRange(0, want.Tree.Len()-1).Draw(r, "accepted"),
				rapid.Int32Range(0, Vocab-1).Draw(r, "next")
			Commit(r, whole, all.Accept(want.Tree, node, next, n.Hidden))
			Commit(r, d, listed.Accept(got.Tree, node, next, n.Hidden))
		}
		if s := shortlist.StatsOf(d); s.Rows == 0 || s.Coverage() != 1 || s.Size() != Vocab {
			r.Fatalf("lists of all tokens: %+v", s)
		}
		if s := shortlist.StatsOf(whole); s != (shortlist.Stats{Head: true}) {
			r.Fatalf("without lists: %+v", s)
		}
	})
}

// What the head drafts over a shorter list is on the list.
func TestListedTokens(t *testing.T) {
	m := OpenTarget(t, 400)
	order := shortlist.Rank(make([]int64, Vocab), m.Tokenizer, "")
	cases.Check(t, 40, func(r *rapid.T) {
		n := genHead(r, m)
		o := genOptions(r, n)
		o.List.Method, o.List.Size = rapid.SampledFrom([]string{"freq", "freq-pa"}).Draw(r, "method"),
			rapid.IntRange(1, Vocab).Draw(r, "size")
		d := newDrafter(r, o, n, m)
		s := Begin(r, d, draft.Options{Sampling: GenParams(r)}, 1)
		Commit(r, d, s.Prompt(GenText(r, 1, 40), n.Hidden, true))
		q := s.Request(30, 20, nil)
		Propose(r, d, q)
		for i, token := range q.Tree.Token[1:] {
			size := o.List.Size
			if step := int(q.Tree.Depth[i+1]) - 1; o.List.Method == "freq-pa" && step > 1 {
				size /= step + 1
			}
			size = (max(size, 1) + gemm.Panel - 1) / gemm.Panel * gemm.Panel
			if !slices.Contains(order.First(size), token) {
				r.Fatalf("%+v: node %d: token %d is not among the first %d", o, i+1, token, size)
			}
		}
	})
}

// Law 2 over shortlists, in a batch whose sequences come and go.
func TestSameTokensOverLists(t *testing.T) {
	m := OpenTarget(t, 512)
	prompts := [][]int32{{1, 2, 3}, make([]int32, 70), {9}}
	n := head(t, m, 3)
	for _, p := range []sample.Params{{}, {Temperature: 1, Seed: 4},
		{Temperature: .8, TopP: .9, RepetitionPenalty: 1.2, PenaltyLast: 20, Seed: 5}} {
		var want [][]int32
		for _, prompt := range prompts {
			out, _ := Generate(t, m, nil, speculate.Options{}, p, [][]int32{prompt})
			want = append(want, out[0])
		}
		for _, method := range listMethods {
			for _, name := range []string{withText, onepass.AccumLogP, onepass.Chain} {
				d := newDrafter(t, jet.Options{Tree: name, Modifiers: registry.Modifiers{
					List: shortlist.Options{Method: method, Size: 64, Extra: 32}}}, n, m)
				for range 2 {
					out, _ := Generate(t, m, d, speculate.Options{Budget: 24, Uncontrolled: true}, p, prompts)
					for i := range want {
						if !slices.Equal(out[i], want[i]) {
							t.Errorf("%s over %s, %+v, text %d: %v, want %v", name, method, p, i, out[i], want[i])
						}
					}
				}
			}
		}
	}
}

func TestSteadyStateOverListsAllocatesNothing(t *testing.T) {
	m := OpenTarget(t, 400)
	n := head(t, m, 1)
	for _, method := range listMethods {
		d := newDrafter(t, jet.Options{Tree: withText,
			Modifiers: registry.Modifiers{List: shortlist.Options{Method: method, Size: 64, Extra: 32}}}, n, m)
		s := Begin(t, d, draft.Options{}, 1)
		text := make([]int32, 40)
		rows := s.Prompt(text, n.Hidden, true)
		taps := still{x: make([]float32, n.Hidden), logits: make([]float32, Vocab)}
		rows.Pass = &taps
		Commit(t, d, rows)
		tr := tree.New(7)
		requests := []draft.Request{{State: s.State, Tree: tr, Budget: 24, Depth: 20}}
		accepted := []draft.Rows{{State: s.State, Tokens: text[:1], Tree: tr, Nodes: []int32{0}, Next: 7, Pass: &taps}}
		round := func() {
			tr.Reset(7)
			if _, err := d.Propose(context.Background(), requests); err != nil {
				t.Fatal(err)
			}
			if err := d.Commit(accepted); err != nil {
				t.Fatal(err)
			}
		}
		for range 20 {
			round()
		}
		if a := testing.AllocsPerRun(10, round); a > 0 {
			t.Errorf("%s: %v allocations a round", method, a)
		}
	}
}

func TestNewRefusesLists(t *testing.T) {
	m := OpenTarget(t, 400)
	n := head(t, m, 1)
	for say, o := range map[string]shortlist.Options{
		"want freq, freq-pa":                   {Method: "best"},
		"want 1 to 420 tokens":                 {Method: "freq", Size: Vocab + 1},
		"lacks the states that a router reads": {Method: "dynaspec"},
		"absent.gguf":                          {Method: "freq", Ranks: "absent.gguf"},
	} {
		if _, err := jet.New(jet.Options{Tree: onepass.DDTree, Modifiers: registry.Modifiers{List: o}}, n,
			As(m)); err == nil || !strings.Contains(err.Error(), say) {
			t.Errorf("%+v: %v, want an error that says %q", o, err, say)
		}
	}
}
