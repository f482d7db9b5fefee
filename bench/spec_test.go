package bench

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/grovellm/grove/draft"
	_ "github.com/grovellm/grove/draft/hostile"
	_ "github.com/grovellm/grove/draft/lm"
	_ "github.com/grovellm/grove/draft/lookup"
	"github.com/grovellm/grove/model"
	"github.com/grovellm/grove/model/synth"
	"github.com/grovellm/grove/sample"
	"github.com/grovellm/grove/spec"
)

// tinyPair is a target with a draft model of the same vocabulary, both of random weights.
func tinyPair(t *testing.T) draft.Target {
	t.Helper()
	shape, err := synth.Lookup("tiny-qwen3")
	if err != nil {
		t.Fatal(err)
	}
	open := func(seed uint64, o model.Options) *model.Model {
		path := filepath.Join(t.TempDir(), "random.gguf")
		if err := synth.Write(context.Background(), path, shape, synth.Options{Seed: seed}); err != nil {
			t.Fatal(err)
		}
		m, err := model.Open(path, o)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { m.Close() })
		return m
	}
	target := open(1, model.Options{Threads: 2, Context: 256})
	return draft.Target{Vocab: target.Config.Vocab, Context: target.Context(), Model: target, Draft: open(2, model.Options{Workers: target})}
}

// tinySuite has prompts that repeat themselves, as text does, one of them longer than the context.
func tinySuite(name string, n int) Suite {
	s := Suite{Name: name, Spare: []Prompt{{Name: "spare", Text: "one two one two one"}}}
	for i := range n {
		s.Prompts = append(s.Prompts, Prompt{Name: name, Text: strings.Repeat("one two three ", 2+i), Question: true})
	}
	s.Prompts[n-1].Text = strings.Repeat("a b c d e f g ", 100)
	return s
}

func methods(t *testing.T, list string) []Method {
	t.Helper()
	m, err := ParseMethods(SplitList(list), Method{})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// Every method emits plain decoding's tokens, and its figures are those of a run that happened.
func TestSpec(t *testing.T) {
	target := tinyPair(t)
	list := "plain,lookup,lookup:min=2@no-controller@budget=4,linear:k=3,fixed:d=3,b=2@no-controller,dynatree,best-first,hostile@budget=9"
	for _, params := range []sample.Params{{}, {Temperature: 0.8, TopP: 0.9}} {
		done, seeds, repeats := 0, 1, 2 // greedy decoding has no noise, and so one seed
		if params.Temperature > 0 {
			seeds, repeats = 2, 1
		}
		o := SpecOptions{
			Target: target, Runs: []SpecRun{{tinySuite("first", 3), methods(t, list)}, {tinySuite("second", 2), methods(t, "lookup")}},
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
		if len(r.Suites) != 2 || len(r.Suites[0].Methods) != 8 || len(r.Suites[1].Methods) != 2 || done != 8*(1+3*seeds*repeats)+2*(1+2*seeds*repeats) || r.Interrupted {
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
				if m.Tokens != 24*s.Runs || m.Tau < 1 || m.Tau > 24 || m.Rounds < s.Runs || m.Rounds > 23*s.Runs || m.AcceptRate < 0 || m.AcceptRate > 1 {
					t.Errorf("%s: %d tokens, %d rounds, τ %g, accept rate %g", m.Name, m.Tokens, m.Rounds, m.Tau, m.AcceptRate)
				}
				if !(m.TokensPerS > 0 && m.Speedup > 0 && m.FirstMS > 0 && m.WholeSpeedup > 0 && m.DraftShare >= 0 && m.DraftShare < 1) {
					t.Errorf("%s: speeds %+v", m.Name, m)
				}
				if len(m.Lengths) != 2 || m.Lengths[0].To != 10 || len(m.Positions) != 1 || m.Begin.Tokens != 23*s.Runs || m.Rest.Tokens != 0 {
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
	}
}

// Under the rejection rule tokens are another sample, so they are not compared; at temperature 0 there is one answer only.
func TestSpecRejection(t *testing.T) {
	target := tinyPair(t)
	for _, params := range []sample.Params{{}, {Temperature: 1}} {
		r, err := Spec(context.Background(), SpecOptions{
			Target: target, Runs: []SpecRun{{tinySuite("s", 2), methods(t, "plain,fixed:d=2,b=2@rejection@no-controller")}}, Sampling: params, MaxTokens: 16,
		})
		if err != nil {
			t.Fatal(err)
		}
		switch wrong := r.Suites[0].Methods[1].Mismatches; {
		case params.Temperature == 0 && (wrong == nil || *wrong != 0), params.Temperature > 0 && wrong != nil:
			t.Errorf("temperature %g: mismatches %v", params.Temperature, wrong)
		}
	}
}

// Interrupted, the report is of the prompts that every method had finished.
func TestSpecInterrupted(t *testing.T) {
	target := tinyPair(t)
	for _, stop := range []int{1, 5, 8} { // while warming up, within the third prompt, within the second suite
		ctx, cancel := context.WithCancel(context.Background())
		r, err := Spec(ctx, SpecOptions{
			Target: target, Runs: []SpecRun{{tinySuite("first", 2), methods(t, "lookup")}, {tinySuite("second", 2), methods(t, "lookup")}},
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
		"no target":   {SpecOptions{Runs: []SpecRun{good}}, "no target"},
		"no plain":    {SpecOptions{Target: target, Runs: []SpecRun{{good.Suite, good.Methods[1:]}}}, "plain decoding is not among"},
		"no drafter":  {SpecOptions{Target: target, Runs: []SpecRun{{good.Suite, methods(t, "nothing")}}}, `there is no "nothing"`},
		"bad options": {SpecOptions{Target: target, Runs: []SpecRun{{good.Suite, methods(t, "fixed:d=0")}}}, "d is 0"},
		"no prompts":  {SpecOptions{Target: target, Runs: []SpecRun{{Suite{Name: "empty"}, good.Methods}}}, "no prompt"},
		"bad rule":    {SpecOptions{Target: target, Runs: []SpecRun{{good.Suite, []Method{{Name: "plain"}, {Name: "x", Drafter: "lookup", Accept: "all"}}}}}, "Accept"},
	} {
		if _, err := Spec(context.Background(), c.o); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want something with %q", name, err, c.want)
		}
	}
}

// Presets are data: every one of them names methods, columns and suites that exist.
func TestPresets(t *testing.T) {
	target := tinyPair(t)
	b := &bench{o: SpecOptions{Target: target}, target: spec.Model(target.Model)}
	for _, p := range Presets() {
		if p.Help == "" || p.Prompts < 2 || p.MaxTokens < 32 || p.MaxTokens > 1500 || len(p.Runs) == 0 || p.WarmUp == nil {
			t.Errorf("%+v", p)
		}
		for _, r := range p.Runs {
			all, err := ParseMethods(r.Methods, Method{Budget: p.Budget, Uncontrolled: p.NoController})
			if err != nil {
				t.Errorf("%s: %v", p.Name, err)
			}
			for _, m := range all {
				if _, err := b.lane(m, nil); err != nil {
					t.Errorf("%s: %v", p.Name, err)
				}
			}
			suites, err := Expand(r.Suites)
			if err != nil {
				t.Errorf("%s: %v", p.Name, err)
			}
			for _, s := range suites {
				if q, err := parseQuery(s); err != nil || q.name != "wikitext" && q.name != "wikitext-articles" && q.name != "prose" {
					t.Errorf("%s: suite %q: %v", p.Name, s, err)
				}
			}
			for _, f := range p.Figures {
				x, y := 0, 0
				for _, m := range all {
					if _, ok := m.option(f.X); ok {
						x++
					}
					if _, ok := m.option(f.Y); ok {
						y++
					}
				}
				if x < 2 || y < 2 {
					t.Errorf("%s: figure %s has %d methods with %s and %d with %s", p.Name, f.Name, x, f.X, y, f.Y)
				}
			}
		}
		for _, table := range p.Tables {
			for _, c := range table.Columns {
				if _, err := lookColumn(c); err != nil {
					t.Errorf("%s: %v", p.Name, err)
				}
			}
		}
	}
	if _, err := LookupPreset("nothing"); err == nil || !strings.Contains(err.Error(), "dynatree-table1") {
		t.Errorf("a preset that is not there: %v", err)
	}
	if five, err := LookupPreset("dynatree-table5"); err != nil || !five.Memory || len(five.Runs) != 2 || *five.WarmUp != 0 {
		t.Errorf("%+v, %v", five, err)
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
