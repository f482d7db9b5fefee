package drafttest

import (
	"slices"
	"testing"

	"github.com/grovellm/grove/draft"
	"github.com/grovellm/grove/internal/model"
	"github.com/grovellm/grove/internal/speculate"
	"github.com/grovellm/grove/sample"
)

// Case is a drafter under test. Finds says that it considers all tokens: if the noise decides
// between three, it finds some of them.
type Case struct {
	Name  string
	New   func() draft.Drafter
	Finds bool
}

// SameTokens checks law 2 in a loop: a batch decodes to the tokens of each text alone and plainly,
// under a controller and without one, whether heads are right or wrong. They are right where a bias
// leaves the choice to the noise. Otherwise, and under a controller, a case has one of two settings, in turn.
func SameTokens(t *testing.T, m *model.Model, cases []Case) {
	t.Helper()
	prompts := [][]int32{{1, 2, 3}, make([]int32, 70), {9}, {400, 401, 402, 403}}
	choice := map[int32]float32{7: 60, 8: 60, 9: 60}
	for setting, p := range []sample.Params{
		{}, {Temperature: 1, Seed: 4}, {Temperature: 1, Seed: 4, LogitBias: choice},
		{Temperature: .8, TopP: .9, TopK: 60, RepetitionPenalty: 1.2, PenaltyLast: 20, Seed: 5, LogitBias: choice},
	} {
		var want [][]int32
		for _, prompt := range prompts {
			out, _ := Generate(t, m, nil, speculate.Options{}, p, [][]int32{prompt})
			want = append(want, out[0])
		}
		for k, c := range cases {
			for _, free := range []bool{false, true} {
				if wrong := p.LogitBias == nil; wrong && !free || (wrong || !free) && (setting+k)%2 > 0 {
					continue // under a controller nobody is soon asked where heads are wrong
				}
				out, stats := Generate(t, m, c.New(), speculate.Options{Budget: 24, Chunk: 33, Uncontrolled: free}, p, prompts)
				for i := range want {
					if !slices.Equal(out[i], want[i]) {
						t.Errorf("%s, %+v, uncontrolled %v, text %d: %v, want %v", c.Name, p, free, i, out[i], want[i])
					}
				}
				if free && c.Finds && p.Temperature == 1 && p.LogitBias != nil && stats.Tau() < 1.15 {
					t.Errorf("%s: τ is %.2f where the noise decides between three tokens", c.Name, stats.Tau())
				}
			}
		}
	}
}

// SteadyState checks that rounds allocate nothing once buffers have grown. Rounds accept a node if there is one.
func SteadyState(t *testing.T, name string, d draft.Drafter, hidden int, temperature float32, g draft.Guide) {
	t.Helper()
	s := Begin(t, d, draft.Options{Sampling: sample.Params{Temperature: temperature}}, 1)
	defer s.Close()
	Commit(t, d, s.Prompt(make([]int32, 50), hidden, true))
	requests := []draft.Request{s.Request(30, 20, g)}
	tr := requests[0].Tree
	rows := []draft.Rows{{State: s.State, Next: 1, Tree: tr, Pass: stillPass{make([]float32, hidden), make([]float32, Vocab)}}}
	nodes, tokens := []int32{0, 1}, make([]int32, 2)
	round := func() {
		tr.Reset(1)
		if _, err := d.Propose(t.Context(), requests); err != nil {
			t.Fatal(err)
		}
		n := copy(tokens, tr.Token)
		rows[0].Nodes, rows[0].Tokens = nodes[:n], tokens[:n]
		if err := d.Commit(rows); err != nil {
			t.Fatal(err)
		}
	}
	got := 0.0
	for range 11 { // until buffers have grown, as far as learning needs; pages of the cache grow with the text
		got = testing.AllocsPerRun(40, round)
		if got <= 0.5 {
			return
		}
	}
	t.Errorf("%s: %g allocations a round", name, got)
}

// stillPass is a pass that gives the same results for all rows.
type stillPass struct{ tap, logits []float32 }

func (p stillPass) Tap(int, int, int) []float32 { return p.tap }
func (p stillPass) Logits(int, int) []float32   { return p.logits }
