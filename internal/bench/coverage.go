// How much of the vocabulary a drafter needs (paper 001 §3): what shortlists hold of the target's distribution, and how often drafts from
// them are accepted, beside the best list of as many tokens, which only the target knows.

package bench

import (
	"context"
	"fmt"

	"github.com/grovellm/grove/draft"
	"github.com/grovellm/grove/draft/eagle"
	"github.com/grovellm/grove/nn"
)

// CoverageOptions say what to look at.
type CoverageOptions struct {
	Target draft.Target // opened with an EAGLE head
	Runs   []SpecRun    // of the methods, eagle3 with shortlists, their options are read; plain decoding is passed over

	Title, ModelName string
	MaxTokens        int // of an output; 0: DefaultMaxTokens
	Every            int // tokens from one place to the next; 0: DefaultEvery
	Steps            int // of a draft; 0: 6, as in the paper

	Progress func(SpecProgress) // called before each prompt; may be nil
}

// Coverage decodes prompts plainly, at temperature 0. Then the head drafts along the outputs: from a place it is given the output's own
// tokens for as many steps, with states of its own, as in the training-time test, so that all shortlists are held against the same
// distributions. Those are taken at temperature 1.
func Coverage(ctx context.Context, o CoverageOptions) (*CoverageReport, error) {
	if o.MaxTokens == 0 {
		o.MaxTokens = DefaultMaxTokens
	}
	if o.Every == 0 {
		o.Every = DefaultEvery
	}
	if o.Steps == 0 {
		o.Steps = 6
	}
	m := o.Target.Model
	if m == nil {
		return nil, fmt.Errorf("bench: there is no target")
	}
	head, err := eagle.Find(o.Target, 3)
	if err != nil {
		return nil, err
	}
	r := &CoverageReport{Setting: newSetting(m, o.Title, o.ModelName), Head: head.Name, Vocab: head.DraftVocab, Steps: o.Steps, Every: o.Every, MaxTokens: o.MaxTokens}
	b := &bench{o: SpecOptions{Target: o.Target, MaxTokens: o.MaxTokens, Temperatures: []float32{0}}}
	encode, err := b.encoder()
	if err != nil {
		return nil, err
	}
	done, total := 0, 0
	for _, run := range o.Runs {
		total += len(run.Suite.Prompts)
	}
	for _, run := range o.Runs {
		w := &coverage{o: &o, n: head.Network, pass: m.NewPass(), exec: nn.NewExec(m.Pool()), pages: head.Pages()}
		if err := w.open(head, run.Methods); err != nil {
			return nil, fmt.Errorf("suite %s: %w", run.Suite.Name, err)
		}
		plain, err := b.lane(Method{Name: Plain}, b.o.Sampling, nil)
		if err != nil {
			return nil, err
		}
		for _, prompt := range run.Suite.Prompts {
			if o.Progress != nil {
				o.Progress(SpecProgress{Suite: run.Suite.Name, Method: "coverage", Prompt: prompt.Name, Done: done, Total: total})
			}
			e, _, err := encode(prompt)
			if err != nil {
				return nil, fmt.Errorf("suite %s, %s: %w", run.Suite.Name, prompt.Name, err)
			}
			g, err := plain.generate(ctx, e, 0)
			if err == nil {
				err = w.text(ctx, append(e.prompt, g.tokens...), len(e.prompt))
			}
			if err != nil {
				return nil, fmt.Errorf("suite %s, %s: %w", run.Suite.Name, prompt.Name, err)
			}
			done++
		}
		r.Suites = append(r.Suites, w.report(run.Suite.Name, len(run.Suite.Prompts)))
	}
	return r, nil
}
