package model_test

import (
	"context"
	"math/rand/v2"
	"testing"

	"github.com/grovellm/grove/internal/model"
	"github.com/grovellm/grove/internal/nn/output"
	"github.com/grovellm/grove/tensor"
	"github.com/grovellm/grove/tree"
)

// A pass gives each sequence the logits of the tokens it asked for: all of them or a shortlist's, the same bits.
func TestPassOverShortlists(t *testing.T) {
	ctx := context.Background()
	m := open(t, "tiny-qwen3", tensor.Q8_0, model.Options{Threads: 1})
	r := rand.New(rand.NewPCG(3, 4))
	var order []int32
	for _, token := range r.Perm(m.Config.Vocab) {
		order = append(order, int32(token))
	}
	by, err := output.NewTokenHead(&m.Head, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	head, err := output.NewOrderedHead(m.Pool(), by, order)
	if err != nil {
		t.Fatal(err)
	}
	lists := make([]*output.Shortlist, 3)
	for i := range lists {
		lists[i] = new(output.Shortlist)
		lists[i].Add(head, i, i+2)
		lists[i].Add(head, i+3, i+4)
	}
	var rows []model.Rows
	for s := range 4 {
		tr := tree.Chain(randomTokens(r, m, 5))
		rows = append(rows, model.Rows{Cache: m.NewCache(), Tree: tr, Logits: []int32{1, 4}})
		if s%2 == 1 {
			rows[s].Shortlists = []*output.Shortlist{lists[s/2], lists[s/2+1]}
		}
	}
	short, full := m.NewPass(), m.NewPass()
	if err := short.Run(ctx, rows, nil); err != nil {
		t.Fatal(err)
	}
	for s := range rows {
		lists := rows[s].Shortlists
		rows[s].Shortlists = nil
		if err := full.Run(ctx, rows[s:s+1], nil); err != nil {
			t.Fatal(err)
		}
		for i := range rows[s].Logits {
			want := full.Logits(0, i)
			if lists != nil {
				all := want
				want = nil
				for _, token := range lists[i].Tokens() {
					want = append(want, all[token])
				}
			}
			if !sameBits(short.Logits(s, i), want) {
				t.Errorf("sequence %d, node %d: other logits than the whole head's", s, rows[s].Logits[i])
			}
		}
		rows[s].Shortlists = lists
	}

	rows[1].Shortlists = lists[:1]
	if err := short.Run(ctx, rows, nil); err == nil {
		t.Error("one shortlist for two nodes: no error")
	}
	rows[1].Shortlists = []*output.Shortlist{lists[0], nil}
	if err := short.Run(ctx, rows, nil); err == nil {
		t.Error("no shortlist: no error")
	}
}
