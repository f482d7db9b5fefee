package model

import "context"

// Hidden runs tokens as a chain over an empty cache and calls each with the last hidden state of
// every token, in order: the residual stream after the final norm, Hidden numbers, valid only
// during the call. It returns ctx's error when ctx ends.
func (p *Pass) Hidden(ctx context.Context, tokens []int32, each func(state []float32)) error {
	if len(tokens) > p.m.limit {
		return &ContextError{Need: len(tokens), Limit: p.m.limit}
	}
	c := p.m.NewCache()
	c.SetApart()
	defer c.Free()
	for len(tokens) > 0 {
		n := min(PrefillChunk, len(tokens))
		p.chain.ResetChain(tokens[:n])
		if err := p.Run(ctx, []Rows{{Cache: c, Tree: &p.chain}}, []int{p.m.Config.Layers}); err != nil {
			return err
		}
		p.exec.Normalise(&p.m.Norm, p.taps[0], p.taps[0])
		for i := range n {
			each(p.taps[0].Row(i))
		}
		c.CommitAll()
		tokens = tokens[n:]
	}
	return nil
}
