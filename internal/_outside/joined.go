package main

import (
	"context"
	"errors"
	"strings"

	"github.com/grovellm/grove/draft"
	"github.com/grovellm/grove/tree"
)

// joined runs two drafters that read tokens alone, such as joined:lookup,runners-up, and joins their trees.
type joined struct {
	draft.Base
	parts []draft.Drafter
}

type joinedState []draft.State // of each part

func (s joinedState) Close() {
	for _, part := range s {
		part.Close()
	}
}

func (d *joined) Begin(o draft.Options) (draft.State, error) {
	o.Sampling, o.Sampled = o.Ranking(), false // a joined tree cannot be drawn
	first, err := d.parts[0].Begin(o)
	second, more := d.parts[1].Begin(o)
	return joinedState{first, second}, errors.Join(err, more)
}

func (d *joined) Commit(rows []draft.Rows) (err error) {
	for _, r := range rows {
		for i, state := range r.State.(joinedState) {
			r.State = state
			err = errors.Join(err, d.parts[i].Commit([]draft.Rows{r}))
		}
	}
	return err
}

func (d *joined) Propose(ctx context.Context, requests []draft.Request) ([]draft.Proposal, error) {
	for _, r := range requests {
		whole := r.Tree
		for i, state := range r.State.(joinedState) {
			r.State, r.Tree = state, tree.New(whole.Token[0])
			if _, err := d.parts[i].Propose(ctx, []draft.Request{r}); err != nil {
				return nil, err
			}
			nodes := make([]int, r.Tree.Len()) // where they are in the whole tree
			for n := 1; n < len(nodes); n++ {
				nodes[n] = whole.Append(nodes[r.Tree.Parent[n]], r.Tree.Token[n], r.Tree.LogProb[n])
			}
		}
	}
	return make([]draft.Proposal, len(requests)), nil
}

func init() {
	draft.Register(draft.Family{Name: "joined", Help: "two drafters without networks",
		New: func(options string, target draft.Target) (draft.Drafter, error) {
			one, other, _ := strings.Cut(options, ",")
			first, err := target.New(one)
			second, more := target.New(other)
			return &joined{parts: []draft.Drafter{first, second}}, errors.Join(err, more)
		}})
}
