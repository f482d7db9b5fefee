// Law 2 for the papers' acceptance rule, whose tokens above temperature 0 are not those of plain decoding.

package check

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/grovellm/grove/internal/drafters/registry"
	"github.com/grovellm/grove/internal/kernels/cpu"
	"github.com/grovellm/grove/internal/speculate"
)

// compareRejection decodes all scripts in one loop by rejection, at one kernel level and number of threads, and each
// alone at another. What is drawn follows from the seed and the trees, and these follow from the text. So the tokens
// are the same, and at temperature 0 those of plain decoding.
func compareRejection(ctx context.Context, v *variant, rng *rand.Rand, scripts []script, name string,
	plainLevel cpu.Level, tokens *int) error {
	name = strings.NewReplacer("+"+registry.AdaptModifier, "", "+text", "").Replace(name) // which learn from all sequences
	level := randomLevel(rng, 40)
	threads := 1 + rng.IntN(maxThreads)
	together, err := decodeByRejection(ctx, v, scripts, name, level, threads)
	if err != nil {
		return err
	}
	for i := range scripts {
		s := &scripts[i]
		want := s.want
		if s.request.Sampling.Temperature > 0 {
			alone, err := decodeByRejection(ctx, v, scripts[i:i+1], name, plainLevel, 1)
			if err != nil {
				return err
			}
			want = alone[0]
		}
		*tokens += len(together[i])
		if !slices.Equal(together[i], want) {
			return mismatchf("%v, drafter %s by rejection, budget %d, %d threads at %v, %+v, sequence %d of %d: %v; alone or plainly at %v: %v",
				v, name, s.request.Budget, threads, level, s.request.Sampling, i, len(scripts), together[i], plainLevel, want)
		}
	}
	return nil
}

// failed stands after the tokens of a sequence that failed.
const failed = -1

// decodeByRejection decodes scripts in one loop, which begin at once.
func decodeByRejection(ctx context.Context, v *variant, scripts []script, name string, level cpu.Level,
	threads int) (outputs [][]int32, err error) {
	defer cpu.Use(level)()
	o, d, err := v.drafter(name, threads)
	if err != nil {
		return nil, err
	}
	loop, err := speculate.New(speculate.Model(o.m), d, speculate.Options{Accept: speculate.Rejection, Uncontrolled: true})
	if err != nil {
		return nil, err
	}
	var seqs []*speculate.Sequence
	for i := range scripts {
		seq, err := loop.Start(scripts[i].prompt, scripts[i].request)
		if err != nil {
			return nil, err
		}
		defer seq.Close()
		seqs = append(seqs, seq)
	}
	for slices.ContainsFunc(seqs, func(s *speculate.Sequence) bool { return s.Finish() == speculate.Running }) {
		if err := loop.Step(ctx, seqs); err != nil {
			return nil, err
		}
	}
	for i, seq := range seqs {
		output := slices.Clone(seq.Output())
		if err := seq.Err(); err != nil {
			if scripts[i].request.Grammar == nil {
				return nil, fmt.Errorf("%s by rejection: %w", name, err)
			}
			output = append(output, failed) // the grammar is too ambiguous for another text than plain decoding's
		}
		outputs = append(outputs, output)
	}
	return outputs, nil
}
