package bench

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/grovellm/grove/sample"
)

// Every method emits plain decoding's tokens, and its figures are those of an actual run.
func TestSpec(t *testing.T) {
	target := tinyPair(t)
	list := "plain,lookup,lookup:min=2@no-controller@budget=4,linear:k=3,fixed:d=3,b=2@no-controller,dynatree,best-first,hostile@budget=9,jetspec@no-controller"
	const few = "plain,lookup:min=2@no-controller@budget=4,hostile@budget=9"
	listed := "lookup,best-first,eagle3+freq:size=100@no-controller@budget=9,eagle3+dynaspec-fixed@no-controller@budget=9," +
		"jetspec@no-controller,jetspec@no-controller@cached,jetspec@no-controller@resumed"
	for _, params := range []sample.Params{{}, {Temperature: 0.8, TopP: 0.9}} {
		done := 0
		seeds := 1
		repeats := 2 // greedy decoding has no noise, and so one seed
		first := 9   // methods of the first suite
		if params.Temperature > 0 {
			seeds, repeats = 2, 1
			list, first = few, 3
		}
		o := SpecOptions{
			Target: target, Runs: []SpecRun{{tinySuite("first", 2), methods(t, list)}, {tinySuite("second", 2), methods(t, listed)}},
			Sampling: params, Seeds: []uint64{3, 4}, MaxTokens: 24, Repeats: repeats, IgnoreEnd: true, Lengths: []int{10},
			Progress: func(p SpecProgress) {
				if p.Done != done || p.Total <= done {
					t.Errorf("progress %+v after %d generations", p, done)
				}
				done++
			},
		}
		r, err := Spec(context.Background(), o)
		if err != nil {
			t.Fatal(err)
		}
		if len(r.Suites) != 2 || len(r.Suites[0].Methods) != first || len(r.Suites[1].Methods) != 8 ||
			done != (first+8)*(1+2*seeds*repeats) || r.Interrupted {
			t.Fatalf("%d generations, suites %+v", done, r.Suites)
		}
		for _, s := range r.Suites {
			if s.Cut != 1 || s.WarmUp != 1 || s.Runs != s.Prompts*seeds*repeats {
				t.Errorf("suite %+v", s)
			}
			for _, m := range s.Methods {
				if m.Mismatches == nil || *m.Mismatches != 0 {
					t.Errorf("%s: mismatches %v", m.Name, m.Mismatches)
				}
				if m.Tokens != 24*s.Runs || m.Tau < 1 || m.Tau > 24 || m.Rounds < s.Runs || m.Rounds > 23*s.Runs ||
					m.AcceptRate < 0 || m.AcceptRate > 1 {
					t.Errorf("%s: %d tokens, %d rounds, τ %g, accept rate %g", m.Name, m.Tokens, m.Rounds, m.Tau, m.AcceptRate)
				}
				if !(m.TokensPerS > 0 && m.Speedup > 0 && m.FirstMS > 0 && m.WholeSpeedup > 0 &&
					m.DraftShare >= 0 && m.DraftShare < 1) {
					t.Errorf("%s: speeds %+v", m.Name, m)
				}
				if len(m.Lengths) != 2 || m.Lengths[0].To != 10 || len(m.Positions) != 1 ||
					m.Begin.Tokens != 23*s.Runs || m.Rest.Tokens != 0 {
					t.Errorf("%s: parts %+v", m.Name, m)
				}
				if m.Drafter == "" && (m.Speedup != 1 || m.Tau != 1 || m.Controller || len(m.Depths) > 0) {
					t.Errorf("plain decoding: %+v", m)
				}
			}
		}
		if m := r.Suite("first").Method("lookup:min=2@no-controller@budget=4"); m.Controller || m.Budget != 4 || m.Nodes > 3 {
			t.Errorf("settings of its own: %+v", m)
		}
		whole := "jetspec@no-controller"
		cached := "jetspec@no-controller@cached"
		resumed := "jetspec@no-controller@resumed"
		rounds := func(name string) int { return r.Suite("second").Method(name).Rounds }
		if rounds(resumed) != rounds(whole) {
			t.Errorf("%d rounds, %d where the drafter had read the prompt before, %d where the target had",
				rounds(whole), rounds(resumed), rounds(cached))
		}
		// 1000 tokens, and lists of those asked for; a draft model whose head computes all tokens covers them all.
		for name, size := range map[string]float64{"eagle3+freq:size=100@no-controller@budget=9": 100,
			"best-first": 1000, "lookup": 0} {
			m := r.Suite("second").Method(name)
			if m.ListSize != size || size == 1000 && m.Coverage != 1 || size == 100 && !(m.Coverage >= 0 && m.Coverage < 1) {
				t.Errorf("%s: shortlists of %g tokens, coverage %g", name, m.ListSize, m.Coverage)
			}
		}
		if m := r.Suite("second").Method("eagle3+dynaspec-fixed@no-controller@budget=9"); m.ListSize < 50 || m.ListSize > 950 {
			t.Errorf("some clusters are %g tokens of 1000", m.ListSize)
		}
	}
}

// Several temperatures are measured in one run, each as a suite with its own name; at 0 one seed is enough.
func TestTemperatures(t *testing.T) {
	r, err := Spec(context.Background(), SpecOptions{
		Target: tinyPair(t), Runs: []SpecRun{{tinySuite("s", 2), methods(t, "lookup,jetspec@budget=4,jetspec@budget=9")}},
		Temperatures: []float32{0, 1}, Seeds: []uint64{5, 6}, MaxTokens: 16, IgnoreEnd: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []struct {
		name string
		t    float32
		runs int
	}{{"s T=0", 0, 2}, {"s T=1", 1, 4}} {
		s := r.Suites[i]
		if s.Name != want.name || s.Temperature != want.t || s.Runs != want.runs || s.Prompts != 2 {
			t.Errorf("suite %d is %+v, want %v", i, s, want)
		}
		for _, m := range s.Methods {
			if *m.Mismatches != 0 {
				t.Errorf("%s, %s: %d mismatches", s.Name, m.Name, *m.Mismatches)
			}
		}
	}
	if len(r.Suites) != 2 {
		t.Errorf("%d suites", len(r.Suites))
	}
	files, err := r.Figures(t.TempDir(), nil)
	if err != nil || !slices.ContainsFunc(files, func(f string) bool {
		return strings.HasSuffix(f, "s-T-1-tau-by-budget.svg")
	}) {
		t.Errorf("%v, %v: there are two budgets", files, err)
	}
}

// Under the rejection rule the tokens are another sample, and under the typical rule not the
// target's, so they are not compared; at temperature 0 there is only one answer.
func TestSpecRules(t *testing.T) {
	target := tinyPair(t)
	for _, params := range []sample.Params{{}, {Temperature: 1}} {
		r, err := Spec(context.Background(), SpecOptions{
			Target: target, Sampling: params, MaxTokens: 16,
			Runs: []SpecRun{{tinySuite("s", 2), methods(t, "plain,fixed:d=2,b=2@{rejection,typical}@no-controller")}},
		})
		if err != nil {
			t.Fatal(err)
		}
		for i, said := range map[int]string{1: "another sample", 2: "lossy"} {
			m := &r.Suites[0].Methods[i]
			if params.Temperature == 0 {
				said = "0"
			}
			if got := mismatches(m); got != said {
				t.Errorf("temperature %g, %s: mismatches %s, want %s", params.Temperature, m.Name, got, said)
			}
		}
	}
}

// The report of an interrupted run has the prompts that every method had finished.
func TestSpecInterrupted(t *testing.T) {
	target := tinyPair(t)
	for _, stop := range []int{1, 5, 8} { // while warming up, within the third prompt, within the second suite
		ctx, cancel := context.WithCancel(context.Background())
		r, err := Spec(ctx, SpecOptions{
			Target: target, Runs: []SpecRun{{tinySuite("first", 2), methods(t, "lookup")},
				{tinySuite("second", 2), methods(t, "lookup")}},
			MaxTokens: 8, Progress: func(p SpecProgress) {
				if p.Done == stop {
					cancel()
				}
			},
		})
		if !errors.Is(err, context.Canceled) || r == nil || !r.Interrupted {
			t.Fatalf("stopped at %d: %v, %+v", stop, err, r)
		}
		prompts := 0
		for _, s := range r.Suites {
			prompts += s.Prompts
			if s.Methods[0].Tokens != s.Methods[1].Tokens || s.Methods[0].Tokens == 0 {
				t.Errorf("stopped at %d: %+v", stop, s)
			}
		}
		if want := map[int]int{1: 0, 5: 1, 8: 2}[stop]; prompts != want {
			t.Errorf("stopped at %d: %d prompts in the report, want %d", stop, prompts, want)
		}
		cancel()
	}
}

func TestSpecRefuses(t *testing.T) {
	target := tinyPair(t)
	good := SpecRun{tinySuite("s", 2), methods(t, "lookup")}
	for name, c := range map[string]struct {
		o    SpecOptions
		want string
	}{
		"no target": {SpecOptions{Runs: []SpecRun{good}}, "no target"},
		"no plain": {SpecOptions{Target: target, Runs: []SpecRun{{good.Suite, good.Methods[1:]}}},
			"plain decoding is not among"},
		"no drafter": {SpecOptions{Target: target, Runs: []SpecRun{{good.Suite, methods(t, "nothing")}}},
			`there is no "nothing"`},
		"bad options": {SpecOptions{Target: target, Runs: []SpecRun{{good.Suite, methods(t, "fixed:d=-1")}}}, "d is -1"},
		"no prompts":  {SpecOptions{Target: target, Runs: []SpecRun{{Suite{Name: "empty"}, good.Methods}}}, "no prompt"},
		"bad rule": {SpecOptions{Target: target, Runs: []SpecRun{{good.Suite,
			[]Method{{Name: "plain"}, {Name: "x", Drafter: "lookup", Accept: "all"}}}}}, "Accept"},
	} {
		if _, err := Spec(context.Background(), c.o); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want something with %q", name, err, c.want)
		}
	}
}

// Caches take memory: more is resident while decoding than before.
func TestMemory(t *testing.T) {
	suite := tinySuite("s", 1)
	r, err := Memory(context.Background(), SpecOptions{
		Target: tinyPair(t), Runs: []SpecRun{{suite, methods(t, "dynatree")[1:]}}, MaxTokens: 32, IgnoreEnd: true,
	})
	if errors.Is(err, errNoMemory) {
		t.Skip(err)
	}
	if err != nil || r.Peak <= 0 || r.Loaded <= 0 || r.Tokens != 32 || r.Method != "dynatree" {
		t.Errorf("%+v, %v", r, err)
	}
}

// When a question occurs a second time, a method with a memory drafts its first output. With more
// than one repeat or seed it would find each output at once, so that is refused.
func TestMemoryOfOutputs(t *testing.T) {
	target := tinyPair(t)
	suite := tinySuite("questions", 3)
	suite.Prompts = slices.Repeat(suite.Prompts, 2)
	o := SpecOptions{
		Target: target, Runs: []SpecRun{{suite, methods(t, "lookup@no-controller,lookup@no-controller@memory")}},
		MaxTokens: 24, IgnoreEnd: true,
	}
	r, err := Spec(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	s := &r.Suites[0]
	without, with := s.Method("lookup@no-controller"), s.Method("lookup@no-controller@memory")
	if with.Rounds > without.Rounds*3/4 || *with.Mismatches != 0 {
		t.Errorf("%d rounds with a memory, %d without, %d mismatches: want at most three quarters and none", with.Rounds, without.Rounds, *with.Mismatches)
	}
	o.Repeats = 2
	if _, err := Spec(t.Context(), o); err == nil || !strings.Contains(err.Error(), "one repeat") {
		t.Errorf("two repeats: %v", err)
	}
}
