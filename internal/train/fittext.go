package train

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/grovellm/grove/internal/drafters/registry"
	"github.com/grovellm/grove/internal/drafters/textrank"
	"github.com/grovellm/grove/internal/speculate"
	"github.com/grovellm/grove/sample"
)

// TextJob defines the texts on which the weights of the modifier +text are fitted.
type TextJob struct {
	Drafter  string // with its modifier, as in "auto+text"
	Target   registry.Target
	Prompts  [][]int32
	Tokens   int                   // to generate after each prompt
	Progress func(done, total int) // called after each text; may be nil
}

// fitBudget is the number of nodes in the verified trees: as many as processors can afford.
const fitBudget = 16

// FitText generates text after every prompt, at temperature 0 and then at 1, with a drafter whose
// +text learns meanwhile, and returns the learned weights.
func FitText(ctx context.Context, j TextJob) ([]float32, error) {
	d, err := registry.New(j.Drafter, j.Target)
	if err != nil {
		return nil, err
	}
	if len(slices.Concat(d.Learned()...)) != len(slices.Concat(textrank.NewModel().Learned()...)) {
		return nil, fmt.Errorf("drafter %q has no weights of +text: write +text after a drafter with a head", j.Drafter)
	}
	loop, err := speculate.New(speculate.Model(j.Target.Model), d, speculate.Options{Uncontrolled: true})
	if err != nil {
		return nil, err
	}
	done := 0
	for _, temperature := range []float32{0, 1} {
		for i, prompt := range j.Prompts {
			r := speculate.Request{Sampling: sample.Params{Temperature: temperature, Seed: uint64(i)},
				MaxTokens: j.Tokens, Budget: fitBudget}
			s, err := loop.Start(prompt, r)
			if err != nil {
				return nil, fmt.Errorf("prompt %d: %w", i+1, err)
			}
			for one := []*speculate.Sequence{s}; err == nil && s.Finish() == speculate.Running; {
				err = loop.Step(ctx, one)
			}
			err = errors.Join(err, s.Err())
			s.Close()
			if err != nil {
				return nil, fmt.Errorf("prompt %d: %w", i+1, err)
			}
			done++
			if j.Progress != nil {
				j.Progress(done, 2*len(j.Prompts))
			}
		}
	}
	return slices.Concat(d.Learned()...), nil
}
