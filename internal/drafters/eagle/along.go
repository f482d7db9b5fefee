package eagle

import (
	"github.com/grovellm/grove/internal/nn"
	"github.com/grovellm/grove/tree"
)

// Along lays out the passes in which a head reads texts and drafts along them, to learn: first the
// entries of all texts, then, pass after pass, rows below some rows of the pass before.
type Along struct {
	Cache  func(text int) *nn.Cache
	Forest *nn.Forest // of the pass laid out last; a tape holds on to it

	trees []*tree.Tree // of the texts
	rows  []place      // of the pass laid out last
}

// place is a node of a text's tree.
type place struct{ text, node int }

// Begin lays out the entries of texts, one row per token, and returns the tokens.
func (a *Along) Begin(texts [][]int32) (tokens []int32) {
	a.Forest = new(nn.Forest)
	a.trees = nil
	a.rows = nil
	for i, text := range texts {
		t := tree.Chain(text)
		a.trees = append(a.trees, t)
		a.Forest.Add(a.Cache(i), t, 0)
		a.Cache(i).Reserve(0, len(text))
		for node := range text {
			a.rows = append(a.rows, place{i, node})
		}
		tokens = append(tokens, text...)
	}
	return tokens
}

// Below lays out a row for each token, below the row of the pass before whose number is in from. Rows
// are in the order of texts.
func (a *Along) Below(from, tokens []int32) {
	first := make([]int, len(a.trees))
	for i, t := range a.trees {
		first[i] = t.Len()
	}
	rows := make([]place, len(from))
	for i, r := range from {
		at := a.rows[r]
		rows[i] = place{at.text, a.trees[at.text].AppendApart(at.node, tokens[i])}
	}
	a.Forest, a.rows = new(nn.Forest), rows
	for i, t := range a.trees {
		if more := t.Len() - first[i]; more > 0 {
			a.Cache(i).Reserve(first[i], more)
			a.Forest.Add(a.Cache(i), t, first[i])
		}
	}
}
