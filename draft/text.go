// The committed text of a sequence, as drafters with layers keep it.

package draft

import (
	"github.com/grovellm/grove/nn"
)

// Text is the committed text of one sequence as a drafter's layers read it: a cache of what they have read, and the latest tokens,
// which wait to be read.
//
// An entry is what a token adds to the cache. The cache is a window over the text: when it is full, the oldest entries go, and positions go
// on. Which entries an entry sees is decided by its place in the text alone.
type Text struct {
	TextOptions
	Cache  *nn.Cache
	Tokens []int32   // committed and not read yet
	Taps   []float32 // of Tokens: len(Tokens) × the width of all taps

	at    int // committed tokens
	first int // place in the text of the cache's first entry, counted from 0
	from  int // tokens before this place are not taken in: they have been read, or are not to be read
}

// TextOptions say how a drafter reads text.
type TextOptions struct {
	Taps   int  // number of taps of each row; 0: the drafter reads tokens alone
	Ahead  bool // an entry is made of a token's taps and the token after it, and so waits for that
	Rows   int  // rows of the cache for each entry
	Window int  // entries in the cache at most
}

// Recall is how many of the last rows of a prefix the target computes again, for a drafter that has nothing of it: with so many a drafter
// gets 0.98 or more of the acceptance that it gets with the whole prefix, on grove's models (docs/bench.md); with half as many 0.96.
const Recall = 64

// NewText returns an empty text over an empty cache, which it owns.
func NewText(o TextOptions, cache *nn.Cache) *Text {
	return &Text{TextOptions: o, Cache: cache}
}

// Commit takes in rows of the target, which then wait to be read. It reports false where it has forgotten all before the end of
// these rows: they came without the taps that the drafter reads, or with Skip.
func (t *Text) Commit(r *Rows) bool {
	place := t.at
	t.at += len(r.Tokens)
	if r.Skip || r.Pass == nil && t.TextOptions.Taps > 0 && t.at > t.from {
		t.Forget()
		return false
	}
	for i := max(t.from-place, 0); i < len(r.Tokens); i++ {
		t.Tokens = append(t.Tokens, r.Tokens[i])
		for tap := range t.TextOptions.Taps {
			t.Taps = append(t.Taps, r.Tap(tap, i)...)
		}
	}
	return true
}

// Forget makes the text begin after the committed tokens.
func (t *Text) Forget() {
	t.Cache.Free()
	t.Tokens, t.Taps = t.Tokens[:0], t.Taps[:0]
	t.first, t.from = t.at, t.at
}

// Close gives the memory back.
func (t *Text) Close() {
	t.Cache.Free()
	t.Tokens, t.Taps = nil, nil
}

// Todo is the tokens of the entries that can be read: Tokens, or where entries are Ahead those after the first.
func (t *Text) Todo() []int32 { return t.Tokens[len(t.Tokens)-t.Waiting():] }

// Waiting is the number of entries that can be read.
func (t *Text) Waiting() int {
	if t.Ahead && len(t.Tokens) > 0 {
		return len(t.Tokens) - 1
	}
	return len(t.Tokens)
}

// Read drops the first n of Tokens: their entries are in the cache, committed.
func (t *Text) Read(n int) {
	width := len(t.Taps) / max(len(t.Tokens), 1)
	t.Tokens = append(t.Tokens[:0], t.Tokens[n:]...)
	t.Taps = append(t.Taps[:0], t.Taps[n*width:]...)
}

// Place is the place in the text of the next entry of the cache, counted from the first that was ever read.
func (t *Text) Place() int { return t.Cache.Position() / t.Rows }

// Room is how many entries the next pass may read: as many as see the same window. There is always room for one.
func (t *Text) Room() int {
	if room := t.Window - t.Cache.Len()/t.Rows; room > 0 {
		return room
	}
	t.slide()
	return t.Window - t.Cache.Len()/t.Rows
}

// slide drops about a quarter of a full window: the oldest entries but the first page, which attention may have learned to rest on
// (Xiao et al. 2023, attention sinks). A quarter is what a large pass reads, so that reading a long text is not cut into small passes.
// A window of less than four pages is emptied.
func (t *Text) slide() {
	keep, entries := t.sink(), t.Window/4/nn.PageRows*nn.PageRows
	if keep == 0 {
		entries = t.Window
	}
	if err := t.Cache.Slide(keep, entries*t.Rows, entries); err != nil {
		panic(err) // whole pages of a full cache
	}
}

// sink is the rows that stay when the window slides.
func (t *Text) sink() int {
	if t.Window < 4*nn.PageRows {
		return 0
	}
	return nn.PageRows
}

// Resume is for Resumer.Resume: t is new, the first n rows of its text come without a pass. It shares with from, which may be nil, what
// that has read of the first common tokens, if that is enough of a window, and little is missing up to n. Else the text begins Recall rows
// before n, or for a drafter of tokens alone, which needs no pass, a window.
func (t *Text) Resume(n int, from *Text, common int) (first int) {
	recall := t.Window
	if t.TextOptions.Taps > 0 {
		recall = min(recall, Recall)
	}
	t.first = max(n-recall, 0)
	t.from = t.first
	if from != nil {
		have := from.covers(min(common, n))
		if have >= t.first && have-from.start() >= min(recall, Recall, have) {
			t.share(from, have)
		}
	}
	if t.TextOptions.Taps == 0 {
		return n
	}
	return t.from
}

// end is the place after the last entry in the cache, start that of the first that is not an attention sink.
func (t *Text) end() int { return t.first + t.Place() }
func (t *Text) start() int {
	if slid := t.Cache.Position() - t.Cache.Len(); slid > 0 {
		return t.first + (t.sink()+slid)/t.Rows
	}
	return t.first
}

// covers is how many of the first n tokens t knows all of that a sequence with the same n tokens needs.
func (t *Text) covers(n int) int {
	end := t.end()
	switch {
	case n > end:
		return min(n, end+len(t.Tokens))
	case t.Ahead && n > 0: // the last entry is of the token after the n, which may be another
		return n - 1
	}
	return n
}

// share takes over what from has of the first n tokens.
func (t *Text) share(from *Text, n int) {
	t.first, t.from = from.first, n
	t.Cache.Free()
	t.Cache = from.Cache.Fork()
	if end := from.end(); n > end {
		width := len(from.Taps) / len(from.Tokens)
		t.Tokens, t.Taps = append(t.Tokens, from.Tokens[:n-end]...), append(t.Taps, from.Taps[:(n-end)*width]...)
	} else {
		_ = t.Cache.Truncate(t.Cache.Len() - (end-n)*t.Rows) // covered
	}
}
