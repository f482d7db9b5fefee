package main

import (
	"context"

	"github.com/grovellm/grove/draft"
	"github.com/grovellm/grove/sample"
)

// runnersUp drafts the tokens that the target thought likeliest the last time it stood after the
// same token: a tree with a few branches at each node.
type runnersUp struct {
	draft.Base
	sampler *sample.Sampler
	width   int // branches
}

// likely is what it knows of one text: for a token the candidates after it, the likeliest first.
type likely map[int32][]sample.Candidate

func (likely) Close() {}

func (*runnersUp) Begin(draft.Options) (draft.State, error) { return likely{}, nil }

func (d *runnersUp) Commit(rows []draft.Rows) error {
	for _, r := range rows {
		for i, token := range r.Tokens {
			if logits := r.Logits(i); logits != nil {
				dst := make([]sample.Candidate, 0, d.width)
				r.State.(likely)[token] = d.sampler.Top(dst, logits, 0, nil)
			}
		}
	}
	return nil
}

func (d *runnersUp) Propose(ctx context.Context, requests []draft.Request) ([]draft.Proposal, error) {
	for _, r := range requests {
		t := r.Tree
		for node := 0; node < t.Len(); node++ { // those that it appends too: level by level
			for _, c := range r.State.(likely)[t.Token[node]] {
				if t.Len() < r.Budget && int(t.Depth[node]) < r.Depth && t.PathLogProb(node)+c.LogProb > -4 {
					t.Append(node, c.Token, c.LogProb)
				}
			}
		}
	}
	return make([]draft.Proposal, len(requests)), ctx.Err()
}

func init() {
	draft.Register(draft.Family{
		Name: "runners-up", Help: "what the target thought likeliest after the same token before",
		New: func(options string, t draft.Target) (draft.Drafter, error) {
			o := struct {
				Width int `draft:"width" help:"branches at a node (1 to 16)"`
			}{3}
			if err := draft.Parse(options, &o); err != nil {
				return nil, err
			}
			sampler, err := sample.New(sample.Params{}, t.Vocab)
			return &runnersUp{sampler: sampler, width: o.Width}, err
		},
	})
}
