package speculate

import (
	"context"
	"fmt"
	"math"
	"testing"

	"github.com/grovellm/grove/draft"
	"github.com/grovellm/grove/sample"
)

// keptP is a wrong rule: rejections do not change p.
type keptP struct{ *rejection }

func (r keptP) next(s *Sequence, logits []float32, nodes []int32) (int32, error) {
	s.sampler.Probs(r.probs, logits, s.history)
	for i, node := range nodes {
		for k, kid := range s.tree.Children(int(node), nil) {
			q := s.group.proposals[s.request].Drawn(int(node))
			x := s.tree.Token[kid]
			if uniform(s.r.Sampling.Seed, len(s.text), 1+10*i+k)*float64(q[x]) < float64(r.probs[x]) {
				return x, nil
			}
		}
	}
	r.Begin(r.probs, func() float64 { return uniform(s.r.Sampling.Seed, len(s.text), 99) })
	return r.Rest(), nil
}

// chiSquare runs a loop on many seeds and returns how far the outputs are from the law, in standard
// deviations (by the cube-root approximation of Wilson and Hilferty).
func chiSquare(t *testing.T, target *lawTarget, params sample.Params, d draft.Drafter, o Options, n, runs int,
	change func(*Loop)) float64 {
	law := target.law(params, n)
	o.Accept = Rejection
	l, err := New(target, d, o)
	if err != nil {
		t.Fatal(err)
	}
	l.now = target.now
	if change != nil {
		change(l)
	}
	counts := make([]int, len(law))
	for run := range runs {
		params.Seed = uint64(run)
		s, err := l.Start([]int32{0}, Request{Sampling: params, Grammar: target.grammar})
		if err != nil {
			t.Fatal(err)
		}
		for len(s.Output()) < n {
			if err := l.Step(context.Background(), []*Sequence{s}); err != nil {
				t.Fatal(err)
			}
		}
		cell := 0
		for _, token := range s.Output()[:n] {
			cell = cell*lawVocab + int(token)
		}
		counts[cell]++
		s.Close()
	}
	sum := 0.0
	df := -1.0
	rare := 0.0
	rareCount := 0.0
	for cell, p := range law {
		want, got := p*float64(runs), float64(counts[cell])
		if want < 5 { // too rare for the approximation: counted together as one
			rare += want
			rareCount += got
			continue
		}
		sum += (got - want) * (got - want) / want
		df++
	}
	if rareCount > 0 && rare == 0 {
		return math.Inf(1)
	}
	if rare > 0 {
		sum += (rareCount - rare) * (rareCount - rare) / rare
		df++
	}
	return (math.Cbrt(sum/df) - (1 - 2/(9*df))) / math.Sqrt(2/(9*df))
}

// lawGrammar allows two or three of the four letters at every place, and never ends.
const lawGrammar = `root ::= ([ab] ([acd] | "b" [cd])? | "d" [bcd])*`

// The rule preserves the target's distribution, whatever was drafted and how, and the test detects
// wrong rules.
func TestRejectionKeepsTheLaw(t *testing.T) {
	truncated := sample.Params{Temperature: .8, TopP: .95, RepetitionPenalty: 1.3, FrequencyPenalty: .3}
	for i, c := range []struct {
		name   string
		params sample.Params
		d      draft.Drafter
		o      Options
		tokens int // number of tokens whose joint law is tested; 0: 3
		wrong  bool
		change func(*Loop)

		grammar string
	}{
		{name: "one candidate", d: &drawer{widths: []int{1, 1}}},
		{name: "two", d: &drawer{widths: []int{2, 2}}},
		{name: "three, then one", d: &drawer{widths: []int{3, 1}}},
		{name: "all four, two, all", d: &drawer{widths: []int{4, 2, 4}}, tokens: 4},
		{name: "processors", params: truncated, d: &drawer{widths: []int{2, 3}}},
		{name: "not drawn", d: unsure{&drawer{widths: []int{2, 2}}}},
		{name: "not said", params: truncated, d: &drawer{widths: []int{3, 2}, silent: true}},
		{name: "two heads", d: &drawer{widths: []int{4, 1}, heads: 2}},
		{name: "two wide heads", d: &drawer{widths: []int{2, 2}, heads: 2}},
		{name: "two heads, not drawn", d: unsure{&drawer{widths: []int{3, 2}, heads: 2}}},
		{name: "cut to a budget", d: &drawer{widths: []int{2, 2}, heads: 2}, o: Options{Budget: 6}},
		{name: "controlled", d: &drawer{widths: []int{2, 2}}, o: Options{Controller: NewController()}},
		{name: "controlled, not drawn", d: unsure{&drawer{widths: []int{3, 2}}},
			o: Options{Controller: NewController()}},
		{name: "no drafter"},
		{name: "grammar", d: &drawer{widths: []int{3, 2}}, grammar: lawGrammar},
		{name: "grammar, two heads, cut to a budget", d: &drawer{widths: []int{2, 2}, heads: 2},
			o: Options{Budget: 6}, grammar: lawGrammar},
		{name: "grammar, processors, controlled", params: truncated, d: &drawer{widths: []int{2, 3}},
			o: Options{Controller: NewController()}, grammar: lawGrammar},
		{name: "grammar, not drawn", d: unsure{&drawer{widths: []int{3, 2}}}, grammar: lawGrammar},

		{name: "sorted by probability", d: &drawer{widths: []int{2, 2}, fault: "sorts siblings"}, wrong: true},
		{name: "the less likely pruned", d: &drawer{widths: []int{2, 2}, fault: "keeps the likelier"}, wrong: true},
		{name: "duplicates dropped", d: &drawer{widths: []int{4, 1}, heads: 2, fault: "drops duplicates"}, wrong: true},
		{name: "another distribution", d: &drawer{widths: []int{2, 2}, fault: "wrong distribution"}, wrong: true},
		{name: "no residual", d: &drawer{widths: []int{2, 2}}, wrong: true,
			change: func(l *Loop) { l.rejection = keptP{newRejection(lawVocab)} }},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if c.params.Temperature == 0 {
				c.params.Temperature = 1
			}
			d := c.d
			if u, ok := d.(unsure); ok {
				d = u.Drafter
			}
			if d, ok := d.(*drawer); ok {
				d.salt = uint64(1000 + i)
			}
			c.o.Uncontrolled = c.o.Controller == nil
			if c.tokens == 0 {
				c.tokens = 3
			}
			const runs = 5000 // every planted fault shows
			target := newLaw(uint64(i))
			if c.grammar != "" {
				target.constrain(c.grammar)
			}
			z := chiSquare(t, target, c.params, c.d, c.o, c.tokens, runs, c.change)
			t.Logf("%.1f standard deviations", z)
			if !c.wrong && z > 4 {
				t.Errorf("%.1f standard deviations from the law", z)
			}
			if c.wrong && z < 5 {
				t.Errorf("a fault was planted, and the outputs are %.1f standard deviations from the law", z)
			}
		})
	}
}

// At temperature 0 every rule is greedy decoding, and above it runs are reproducible.
func TestRejectionRepeats(t *testing.T) {
	target := newLaw(5)
	for _, temperature := range []float32{0, 1} {
		outputs := map[string]bool{}
		for _, accept := range []string{Coupled, Rejection, Rejection} {
			d := &drawer{salt: 8, widths: []int{2, 2}}
			l, err := New(target, d, Options{Accept: accept, Uncontrolled: true})
			if err != nil {
				t.Fatal(err)
			}
			s, err := l.Start([]int32{0}, Request{Sampling: sample.Params{Temperature: temperature, Seed: 3},
				MaxTokens: 6})
			if err != nil {
				t.Fatal(err)
			}
			finish(t, l, s)
			if temperature == 0 {
				accept = "any"
			}
			outputs[accept+fmt.Sprint(s.Output())] = true
			s.Close()
		}
		if want := 1 + int(temperature); len(outputs) != want {
			t.Errorf("temperature %g: %d different outputs %v, want %d", temperature, len(outputs), outputs, want)
		}
	}
}

// A drafter that draws from anything other than the target's vocabulary is refused.
func TestDrawnIsChecked(t *testing.T) {
	l, err := New(newLaw(1), &drawer{widths: []int{2}, fault: "short"}, Options{Accept: Rejection, Uncontrolled: true})
	if err != nil {
		t.Fatal(err)
	}
	s, err := l.Start([]int32{0}, Request{Sampling: sample.Params{Temperature: 1}})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for range 2 {
		if err := l.Step(context.Background(), []*Sequence{s}); err != nil {
			t.Fatal(err)
		}
	}
	if s.Err() == nil {
		t.Error("a distribution over 3 of 4 tokens was accepted")
	}
}
