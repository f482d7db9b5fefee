package grove

import (
	"cmp"
	"context"
	"errors"
	"math"

	"github.com/grovellm/grove/internal/kernels/par"
	"github.com/grovellm/grove/internal/model"
	"github.com/grovellm/grove/internal/speculate"
)

// EmbedOptions say how an embedding is computed.
type EmbedOptions struct {
	Last  bool // pool by the last token's state, as some models' files ask, instead of the mean of all tokens' states
	Width int  // dimensions to keep, from the first; 0: all
}

// Embed returns the embedding of a text of tokens: the last hidden states of its tokens, after the final norm,
// pooled, cut to the width asked for, and scaled to length 1. A model embeds one text at a time, alongside its
// generations. Options.CacheMemory does not count the text's keys and values.
func (m *Model) Embed(ctx context.Context, tokens []int32, o EmbedOptions) ([]float32, error) {
	if err := m.checkTokens("Prompt", tokens); err != nil {
		return nil, err
	}
	switch {
	case o.Width < 0 || o.Width > m.m.Config.Hidden:
		return nil, optionf("Width", "%d: want 1 to %d, or 0 for all dimensions", o.Width, m.m.Config.Hidden)
	case len(tokens) == 0:
		return nil, optionf("Prompt", "the prompt has no tokens: give some text")
	case len(tokens) > m.m.Context():
		return nil, &ContextError{Need: len(tokens), Limit: m.m.Context()}
	}
	select {
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	case pass := <-m.embedding:
		if pass == nil { // the model is closed; one that drains still embeds a request's remaining texts
			return nil, ErrClosed
		}
		defer func() { m.embedding <- pass }()
		sum := make([]float64, m.m.Config.Hidden)
		err := tryHidden(ctx, pass, tokens, func(state []float32) {
			for i, x := range state {
				if o.Last || m.m.Config.PoolLast {
					sum[i] = 0
				}
				sum[i] += float64(x)
			}
		})
		var panicked *par.Panicked
		if errors.As(err, &panicked) { // its memory may be in any state
			speculate.LogError("", err)
			pass = m.m.NewPass()
		}
		if err != nil {
			return nil, cmp.Or(context.Cause(ctx), err)
		}
		if o.Width > 0 {
			sum = sum[:o.Width]
		}
		return unit(sum), nil
	}
}

// tryHidden runs the pass of an embedding. It returns a panic as an error.
func tryHidden(ctx context.Context, pass *model.Pass, tokens []int32, use func(state []float32)) (err error) {
	defer par.Recover("the pass of an embedding", &err)
	return pass.Hidden(ctx, tokens, use)
}

// unit scales a vector to length 1. It leaves zeros as they are.
func unit(v []float64) []float32 {
	square := 0.0
	for _, x := range v {
		square += x * x
	}
	scaled := make([]float32, len(v))
	for i, x := range v {
		if square > 0 {
			scaled[i] = float32(x / math.Sqrt(square))
		}
	}
	return scaled
}
