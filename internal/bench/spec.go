// Methods × prompts: every method decodes every prompt, all in one run.

package bench

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"

	"github.com/grovellm/grove/chat"
	"github.com/grovellm/grove/internal/drafters/registry"
	"github.com/grovellm/grove/internal/drafters/textstore"
	"github.com/grovellm/grove/internal/speculate"
	"github.com/grovellm/grove/sample"
	"github.com/grovellm/grove/tokenizer"
)

// SpecOptions specify what to measure.
type SpecOptions struct {
	Target registry.Target // its Model is not nil
	Runs   []SpecRun

	Title, ModelName, DraftName string // for the report; if empty, the models' own names

	Sampling     sample.Params
	Temperatures []float32 // each suite is measured at each; empty: Sampling's
	Seeds        []uint64  // above temperature 0, each prompt is decoded with each; empty: Sampling's
	MaxTokens    int       // of an output; 0: DefaultMaxTokens
	Repeats      int       // how often everything is measured; 0: once
	IgnoreEnd    bool      // continue after the end of a text
	Chat         bool      // lay questions out by the model's chat template
	Lengths      []int     // outputs' lengths to report in addition to the whole; empty: powers of 2

	// called before each generation; may be nil
	Progress func(SpecProgress)
	// peak memory of a method; may be nil
	Memory  func(ctx context.Context, p sample.Params, m Method, prompt Prompt) (bytes int64, err error)
	Between func(*SpecReport) // called before and after each suite, to inspect the machine; may be nil
}

// SpecRun is a suite with the methods to measure on it.
type SpecRun struct {
	Suite   Suite
	Methods []Method // one of them plain decoding
}

// DefaultMaxTokens is the default maximum length of an output.
const DefaultMaxTokens = 256

// SpecProgress says what is about to run.
type SpecProgress struct {
	Suite, Method, Prompt string
	WarmUp                bool
	Done, Total           int // generations
}

// Spec measures. Within a suite each method has one drafter and one controller, which are kept from
// prompt to prompt, as in a server. Every method decodes every prompt, in an order that changes
// from prompt to prompt. The results of warm-up prompts are left out.
//
// When ctx ends, the report covers the prompts that all methods had finished, and is returned with the error.
func Spec(ctx context.Context, o SpecOptions) (*SpecReport, error) {
	o.MaxTokens = cmp.Or(o.MaxTokens, DefaultMaxTokens)
	o.Repeats = max(o.Repeats, 1)
	if len(o.Temperatures) == 0 {
		o.Temperatures = []float32{o.Sampling.Temperature}
	}
	if len(o.Seeds) == 0 {
		o.Seeds = []uint64{o.Sampling.Seed}
	}
	if o.Target.Model == nil {
		return nil, fmt.Errorf("bench: there is no target")
	}
	b := &bench{o: o}
	r := newSpecReport(&o)
	for i := range o.Runs {
		for _, t := range o.Temperatures {
			s, err := b.prepare(&o.Runs[i], t)
			if err != nil {
				return r, fmt.Errorf("suite %s: %w", o.Runs[i].Suite.Name, err)
			}
			b.suites = append(b.suites, s)
			b.total += s.generations(&o)
		}
	}
	b.look(r)
	for _, s := range b.suites {
		err := b.run(ctx, s)
		if len(s.cases) > 0 {
			r.Suites = append(r.Suites, s.report(&o))
			b.look(r)
		}
		if err == nil && o.Memory != nil {
			err = b.memory(ctx, s, r)
		}
		if err != nil {
			r.Interrupted = ctx.Err() != nil
			return r, err
		}
	}
	return r, nil
}

// bench is a run in progress.
type bench struct {
	o           SpecOptions
	suites      []*suiteRun
	done, total int
}

func (b *bench) look(r *SpecReport) {
	if b.o.Between != nil {
		b.o.Between(r)
	}
}

// suiteRun is a suite at a temperature, in progress.
type suiteRun struct {
	run      *SpecRun
	name     string // in the report
	sampling sample.Params
	seeds    []uint64
	plain    int // the index of plain decoding
	warm     []encoded
	prompts  []encoded
	cut      int // prompts that were cut to fit the context
	rounds   int // how often a prompt was decoded with every method, so far
	cases    []measured
}

// measured is the results of a prompt with a seed: for each method, one per repeat.
type measured [][]*generation

func (s *suiteRun) generations(o *SpecOptions) int {
	return len(s.run.Methods) * (len(s.warm) + len(s.prompts)*len(s.seeds)*o.Repeats)
}

// prepare checks a run and turns its prompts into tokens.
func (b *bench) prepare(run *SpecRun, temperature float32) (*suiteRun, error) {
	s := &suiteRun{run: run, name: run.Suite.Name, sampling: b.o.Sampling, seeds: b.o.Seeds}
	s.sampling.Temperature = temperature
	if temperature == 0 {
		s.seeds = s.seeds[:1] // there is only one answer
	}
	if len(b.o.Temperatures) > 1 {
		s.name += fmt.Sprintf(" T=%g", temperature)
	}
	s.plain = slices.IndexFunc(run.Methods, func(m Method) bool { return m.Drafter == "" })
	if s.plain < 0 {
		return nil, fmt.Errorf("plain decoding is not among the methods, and all are compared with it")
	}
	for _, m := range run.Methods { // check now, before hours of measuring, that they exist
		if m.Memory && (b.o.Repeats > 1 || len(s.seeds) > 1) {
			return nil, fmt.Errorf("method %s remembers its outputs, and would find each again: want one seed and one repeat", m.Name)
		}
		if _, err := b.lane(m, s.sampling, nil); err != nil {
			return nil, err
		}
	}
	encode, err := b.encoder()
	if err != nil {
		return nil, err
	}
	for _, part := range []struct {
		prompts []Prompt
		tokens  *[]encoded
	}{{run.Suite.Spare, &s.warm}, {run.Suite.Prompts, &s.prompts}} {
		for _, p := range part.prompts {
			tokens, shortened, err := encode(p)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", p.Name, err)
			}
			if shortened {
				s.cut++
			}
			*part.tokens = append(*part.tokens, tokens)
		}
	}
	if len(s.prompts) == 0 {
		return nil, fmt.Errorf("there is no prompt")
	}
	return s, nil
}

// EncodeQuestion encodes a question as a conversation, up to the beginning of the answer.
func EncodeQuestion(layout *chat.Layout, text string) ([]int32, error) {
	return layout.Encode([]chat.Message{{Role: "user", Content: text}}, chat.Options{Prompt: true})
}

// encoder returns a function that turns prompts into tokens. Of a prompt that leaves no room for
// the output it keeps the end, and at least a quarter of the context.
func (b *bench) encoder() (func(Prompt) (encoded, bool, error), error) {
	m := b.o.Target.Model
	if m.Tokenizer == nil {
		return nil, fmt.Errorf("the model's file has no tokenizer")
	}
	var layout *chat.Layout
	if b.o.Chat {
		var err error
		if layout, err = chat.New(m.Tokenizer); err != nil {
			return nil, err
		}
	}
	limit := max(m.Context()-b.o.MaxTokens, m.Context()/4, 1)
	return func(p Prompt) (e encoded, shortened bool, err error) {
		var tokens []int32
		if layout != nil && p.Question {
			tokens, err = EncodeQuestion(layout, p.Text)
		} else {
			tokens = m.Tokenizer.Encode(p.Text, tokenizer.EncodeOptions{AddSpecial: true})
		}
		switch {
		case err != nil:
		case len(tokens) == 0:
			err = fmt.Errorf("the prompt has no tokens")
		case len(tokens) > limit:
			tokens, shortened = tokens[len(tokens)-limit:], true
		}
		e.prompt, e.forced = tokens, m.Tokenizer.Encode(p.Forced, tokenizer.EncodeOptions{})
		return e, shortened, err
	}, nil
}

// run measures a suite.
func (b *bench) run(ctx context.Context, s *suiteRun) (failed error) {
	lanes := make([]*lane, len(s.run.Methods))
	for i, m := range s.run.Methods {
		var err error
		if lanes[i], err = b.lane(m, s.sampling, speculate.NewController()); err != nil {
			return err
		}
		if m.Memory {
			if lanes[i].memory, err = textstore.Open("", 0); err != nil {
				return err
			}
			defer func() { failed = errors.Join(failed, lanes[i].memory.Close()) }()
		}
	}
	all := func(prompt encoded, name string, seed uint64, warmUp bool) ([]*generation, error) {
		out := make([]*generation, len(lanes))
		for _, i := range order(len(lanes), s.rounds) {
			if b.o.Progress != nil {
				b.o.Progress(SpecProgress{Suite: s.name, Method: s.run.Methods[i].Name, Prompt: name, WarmUp: warmUp,
					Done: b.done, Total: b.total})
			}
			runtime.GC() // collect now, not while something is timed
			g, err := lanes[i].generate(ctx, prompt, seed)
			if err != nil {
				return nil, fmt.Errorf("suite %s, %s, method %s: %w", s.name, name, s.run.Methods[i].Name, err)
			}
			out[i] = g
			b.done++
		}
		s.rounds++
		return out, nil
	}
	for i, prompt := range s.warm {
		if _, err := all(prompt, s.run.Suite.Spare[i].Name, s.seeds[0], true); err != nil {
			return err
		}
	}
	var cases []measured // each with the repeats so far
	for repeat := range b.o.Repeats {
		at := 0
		for i, prompt := range s.prompts {
			for _, seed := range s.seeds {
				out, err := all(prompt, s.run.Suite.Prompts[i].Name, seed, false)
				if err != nil {
					return err
				}
				if repeat == 0 {
					cases = append(cases, make(measured, len(lanes)))
				}
				for m, g := range out {
					cases[at][m] = append(cases[at][m], g)
				}
				at++
				s.cases = cases
			}
		}
	}
	return nil
}

// memory adds the peak memory of each method, on the suite's longest prompt.
func (b *bench) memory(ctx context.Context, s *suiteRun, r *SpecReport) error {
	longest := 0
	for i, p := range s.prompts {
		if len(p.prompt) > len(s.prompts[longest].prompt) {
			longest = i
		}
	}
	report := &r.Suites[len(r.Suites)-1]
	for i, m := range s.run.Methods {
		n, err := b.o.Memory(ctx, s.sampling, m, s.run.Suite.Prompts[longest])
		if err != nil {
			return fmt.Errorf("memory of %s: %w", m.Name, err)
		}
		report.Methods[i].Peak = n
	}
	return nil
}

// order returns the order in which n methods run in a round. The method that ran before may slow a method
// down or speed it up (caches, clock rates), so the rounds form Williams designs: over n of them (2n if n
// is odd) each method is in each place equally often, and follows each other method equally often.
func order(n, round int) []int {
	seq := make([]int, n)
	for i := range seq { // 0, n−1, 1, n−2, …
		seq[i] = i / 2
		if i%2 == 1 {
			seq[i] = n - 1 - i/2
		}
	}
	mirror := n%2 == 1 && round/n%2 == 1
	for i := range seq {
		seq[i] = (seq[i] + round) % n
		if mirror {
			seq[i] = (2*n - 1 - seq[i]) % n
		}
	}
	return seq
}
