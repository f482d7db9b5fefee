// Laws of drafters that share results computed from a text between sequences.

package drafttest

import (
	"github.com/grovellm/grove/draft"
	"github.com/grovellm/grove/internal/drafters/sequence"
	"github.com/grovellm/grove/tree"
	"pgregory.net/rapid"
)

// GenWindow draws how many tokens of a text a head was made for: fewer than the texts of Live have,
// or more.
func GenWindow(r *rapid.T) int {
	return rapid.SampledFrom([]int{1, 40, 128, 256, 300, 4096}).Draw(r, "window")
}

// Resumes checks a case of Drafter.Resume. d and other are drafters of the same kind. Their taps
// have hidden numbers (0: they read only tokens), their trees depend only on the text, and they
// remember window tokens.
//
// A sequence lives for some rounds. A second one begins with a part of its text, and the target has
// a part of the second one's prompt in a cache. The second drafts, to the bit, like a sequence that
// reads the same text at once: from the first token on, or, if more rows are missing than the
// target computes again, only from those rows. The first sequence drafts as before, or is closed.
func Resumes(r *rapid.T, d, other draft.Drafter, o draft.Options, hidden, window int) {
	ResumesBlocks(r, d, other, o, hidden, window, 1)
}

// ResumesBlocks is Resumes for drafters that share only whole blocks of block tokens and keep one block pending.
func ResumesBlocks(r *rapid.T, d, other draft.Drafter, o draft.Options, hidden, window, block int) {
	a := Begin(r, d, draft.Options{}, 1)
	token := rapid.Int32Range(0, Vocab-1)
	for range rapid.IntRange(1, 6).Draw(r, "rounds") {
		switch rapid.IntRange(0, 3).Draw(r, "what") {
		case 0:
			Commit(r, d, a.Prompt(GenText(r, 1, 120), hidden, true))
		case 1:
			Commit(r, d, a.Accept(tree.New(a.Root), 0, token.Draw(r, "next"), hidden))
		default:
			q := a.Request(rapid.IntRange(2, 30).Draw(r, "budget"), 20, nil)
			Propose(r, d, q)
			Commit(r, d, a.Accept(q.Tree, rapid.IntRange(0, q.Tree.Len()-1).Draw(r, "accepted"), token.Draw(r, "next"), hidden))
		}
	}
	if rapid.Bool().Draw(r, "proposed") {
		Propose(r, d, a.Request(20, 20, nil))
	}

	common := len(a.Text)
	if len(a.Text) < window { // otherwise less than a window would be left of a shorter text
		common = rapid.IntRange(0, common).Draw(r, "common")
	}
	text := append(a.Text[:common:common], GenText(r, 1, 300)...)
	n := rapid.IntRange(common, len(text)).Draw(r, "cached")
	b := Begin(r, d, o, a.ID)
	defer b.Close()
	first := d.Resume(b.State, n, a.State, common)
	recall := window
	if hidden > 0 {
		recall = min(window, sequence.Recall)
	}
	if first < max(n-recall, 0) || first > n || hidden == 0 && first < n {
		r.Fatalf("of %d rows with %d in common the rows from %d on are to be computed again", n, common, first)
	}
	if rapid.Bool().Draw(r, "closed") {
		a.Close()
	} else {
		defer a.Close()
		got, want := a.Request(20, 20, nil), a.Fresh(r, other, draft.Options{}, hidden)
		defer want.Close()
		q := want.Request(20, 20, nil)
		Propose(r, d, got)
		Propose(r, other, q)
		if err := Same(got.Tree, q.Tree); err != nil {
			r.Fatal("the first sequence: ", err)
		}
	}
	if first > 0 { // without a pass, in chunks
		chunk := rapid.IntRange(1, first).Draw(r, "chunk")
		for len(b.Text) < first {
			Commit(r, d, b.Prompt(text[len(b.Text):min(len(b.Text)+chunk, first)], hidden, false))
		}
	}
	b.Start = 0
	if rest := text[first:]; len(rest) > 0 {
		Commit(r, d, b.Prompt(rest, hidden, true))
	}
	switch {
	case n-common > recall && hidden == 0: // no other rows can be left out
		return
	case n-common > recall:
		b.Start = first
		if first != n-recall {
			r.Fatalf("nothing can be shared, and rows from %d of %d on are computed again", first, n)
		}
	case n-common == recall, len(a.Text) >= window && window < 256: // too little may be left
		return
	case block > 1 && n-common > recall-2*block && first == n-recall:
		// The last whole block in common ends before this row, and the text begins there; or it ends here.
		b.Start = first
		if first%block == 0 {
			return
		}
	case first <= common-2*block:
		r.Fatalf("of %d rows with %d in common the rows from %d on are to be computed again", n, common, first)
	}
	twin := b.Fresh(r, other, o, hidden)
	defer twin.Close()
	b.Root = token.Draw(r, "root")
	twin.Root = b.Root
	got, want := b.Request(40, 20, nil), twin.Request(40, 20, nil)
	Propose(r, d, got)
	Propose(r, other, want)
	if err := Same(got.Tree, want.Tree); err != nil {
		r.Fatalf("%d tokens of %d in common, %d cached, from %d on computed again: %v", common, len(text), n, first, err)
	}
}
