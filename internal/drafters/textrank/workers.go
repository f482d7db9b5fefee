// Common code of drafters that rank candidates on many workers.

package textrank

import (
	"slices"

	"github.com/grovellm/grove/internal/kernels/par"
	"github.com/grovellm/grove/sample"
)

// Samplers returns a sampler for each worker of a pool. lower.SetLike makes it choose as a sequence's sampler does.
func Samplers(pool *par.Pool, vocab int) ([]*sample.Sampler, error) {
	list := make([]*sample.Sampler, pool.Threads())
	for i := range list {
		var err error
		if list[i], err = sample.New(sample.Params{}, vocab); err != nil {
			return nil, err
		}
	}
	return list, nil
}

// Places returns the index of each token's logit in an output of some tokens, -1 for the other
// tokens of the vocabulary; nil if tokens is nil, which means all in order.
func Places(tokens []int32, vocab int) []int32 {
	if tokens == nil {
		return nil
	}
	at := slices.Repeat([]int32{-1}, vocab)
	for i, token := range tokens {
		at[token] = int32(i)
	}
	return at
}
