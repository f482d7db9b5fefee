// What drafters that rank candidates on many workers share.

package textrank

import (
	"slices"

	"github.com/grovellm/grove/internal/kernels/par"
	"github.com/grovellm/grove/sample"
)

// Samplers is a sampler for each worker of a pool, which Like makes one of a sequence's.
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

// Places is where the logit of each token of a vocabulary is in an output of some tokens, -1 for
// the others; nil where tokens is nil, which stands for all in order.
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
