// The committed text of a sequence, as drafters with layers store it.

package sequence

import (
	"cmp"

	"github.com/grovellm/grove/draft"
	"github.com/grovellm/grove/internal/nn"
)

// Text is the committed text of one sequence as a drafter's layers read it: a cache of the tokens
// that they have read, and the latest tokens, which wait to be read.
//
// An entry is what a token adds to the cache. The cache is a window over the text: when it is full,
// the oldest entries are dropped, and positions continue. Which entries an entry sees depends only on
// its place in the text, not on how the text was read.
type Text struct {
	TextOptions
	Cache  *nn.Cache
	Tokens []int32   // committed and not read yet
	Taps   []float32 // for each of Tokens, its taps of all layers, one after the other

	at    int // committed tokens
	first int // place in the text of the first entry ever read, counted from 0
	from  int // tokens before this place are not taken in: they have been read, or will not be
}

// TextOptions describe how a drafter reads text.
type TextOptions struct {
	Layers int  // tapped layers of the target; 0: the drafter reads only tokens
	Ahead  bool // an entry needs a token's taps and the next token, and waits for that
	Rows   int  // rows of the cache for each entry
	Window int  // most entries in the cache
	// entries stay in whole blocks of so many, and at least the last Block entries wait; 0 or 1: each stays by itself
	Block  int
	Alone  bool // a row depends on more rows before it than the cache has: no other text may take over the cache
	Recall int  // rows of a cached prefix that the drafter reads, if fewer than the constant Recall; 0: that many
}

// Recall is the number of rows of a cached prefix that the target computes again for a drafter that
// has not read the prefix. More rows cost more prefill time, and show the drafter more of the text.
// Measured with grove's EAGLE-3, JetSpec, DFlash and SpecBlock heads, on 120 tokens at temperature
// 1 after prefixes of 500: with 64 rows τ is 0.98 to 1.00 of that with the whole prefix, with 32
// rows 0.97 to 1.00, with 128 rows 0.98 to 1.01, with none 0.92 to 0.98.
const Recall = 64

// Reader is a drafter whose states read their text as a Text.
type Reader interface{ TextOf(s draft.State) *Text }

// NewText returns an empty text over an empty cache, which the text owns from then on.
func NewText(o TextOptions, cache *nn.Cache) *Text {
	cache.KeepAll() // it slides
	return &Text{TextOptions: o, Cache: cache}
}

// Commit takes in rows of the target, which then wait to be read. It returns false if the text now
// begins after these rows, because they came without the taps that the drafter reads, or with
// Skip.
func (t *Text) Commit(r *draft.Rows) bool {
	place := t.at
	t.at += len(r.Tokens)
	if r.Skip || r.Pass == nil && t.Layers > 0 && t.at > t.from {
		t.Cache.Free()
		t.Tokens, t.Taps = t.Tokens[:0], t.Taps[:0]
		t.first, t.from = t.at, t.at
		return false
	}
	for i := max(t.from-place, 0); i < len(r.Tokens); i++ {
		t.Tokens = append(t.Tokens, r.Tokens[i])
		for layer := range t.Layers {
			t.Taps = append(t.Taps, r.Tap(layer, i)...)
		}
	}
	return true
}

// Close frees the text's memory.
func (t *Text) Close() {
	t.Cache.Free()
	t.Tokens, t.Taps = nil, nil
}

// Todo returns the tokens of the entries that can be read: Tokens, or with Ahead all but the first of
// them.
func (t *Text) Todo() []int32 { return t.Tokens[len(t.Tokens)-t.Waiting():] }

// Waiting returns the number of entries that can be read.
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

// Whole returns how many of a pass's n entries, which include the last of the text, stay in the cache.
func (t *Text) Whole(n int) int {
	if t.Block <= 1 {
		return n
	}
	return max(n-t.Block, 0) / t.Block * t.Block
}

// Ready returns how many of the waiting entries can be read and stay, before there is an entry after
// them.
func (t *Text) Ready() int {
	if t.Block <= 1 {
		return t.Waiting()
	}
	return t.Whole(t.Waiting() + 1)
}

// Take returns how many of the waiting entries, at most most, the next pass reads and keeps. It is 0
// if no more than least wait and they fit together with a root: they are then read with the root.
func (t *Text) Take(least, most int) int {
	waiting, n := len(t.Todo()), min(t.Ready(), most)
	if n <= 0 || waiting <= least && waiting < t.Room() {
		return 0
	}
	n = min(n, t.Room())
	return max(n-n%max(t.Block, 1), 0)
}

// Place returns the place of the next entry, counted from the first entry ever read.
func (t *Text) Place() int { return t.Cache.Position() / t.Rows }

// Room returns how many entries the next pass may read: as many as share one window, and at least one
// or a block. A full window slides first.
func (t *Text) Room() int {
	if t.Cache.Len()+max(t.Block-1, 0) >= t.Window*t.Rows {
		t.slide()
	}
	return t.Window - t.Cache.Len()/t.Rows
}

// slide drops a quarter of a full window: the oldest entries except the first page, on which
// attention may have learned to rest (Xiao et al. 2023, attention sinks). Dropping a quarter lets a
// long text be read in large passes. A window of less than four pages is emptied.
func (t *Text) slide() {
	keep, entries := t.sink(), t.Window/4/nn.PageRows*nn.PageRows
	if keep == 0 {
		entries = t.Cache.Len() / t.Rows
	}
	if err := t.Cache.Slide(keep, entries*t.Rows, entries); err != nil {
		panic(err) // whole pages of a full cache
	}
}

// sink returns the number of rows that stay when the window slides.
func (t *Text) sink() int {
	if t.Window < 4*nn.PageRows {
		return 0
	}
	return nn.PageRows
}

// Resume is Drafter.Resume for a new text. It takes over what from, which may be nil, has read of the
// first common tokens, if that is Recall entries or the whole prefix, and no more than Recall rows
// are missing up to n. Otherwise the text begins Recall rows before n. A drafter that reads only
// tokens needs no taps: it reads the last tokens before n itself, as many as its window holds.
func (t *Text) Resume(n int, from *Text, common int) (first int) {
	recall := t.Window
	if t.Layers > 0 {
		recall = min(recall, cmp.Or(t.TextOptions.Recall, Recall))
	}
	t.first = max(n-recall, 0)
	t.from = t.first
	if from != nil && !t.Alone {
		have := from.covers(min(common, n))
		if have >= t.first && have-from.start() >= min(recall, Recall, have) && from.reaches(have) {
			t.share(from, have)
		}
	}
	if t.Layers == 0 {
		return n
	}
	return t.from
}

// IsPlain reports whether files can keep the cache: each token's entry is one row, which depends only on the tokens up
// to the next one.
func (t *Text) IsPlain() bool {
	return t.Rows == 1 && t.Block <= 1 && !t.Alone && t.first == 0 && t.Cache.Whole() && t.Cache.Pages().StateBytes() == 0
}

// Adopt takes rows that were put into the empty text's cache as the text that was read.
func (t *Text) Adopt() {
	t.at = t.Cache.Len()
	t.from = t.at
}

// end returns the place in the text after the last entry in the cache.
func (t *Text) end() int { return t.first + t.Place() }

// start returns the place in the text from which on the cache has all entries.
func (t *Text) start() int {
	if slid := t.Cache.Position() - t.Cache.Len(); slid > 0 {
		return t.first + (t.sink()+slid)/t.Rows
	}
	return t.first
}

// covers returns how many of the first n tokens another text can take over, with entries and taps.
func (t *Text) covers(n int) int {
	end := t.end()
	switch whole := t.first + t.Whole(n-t.first); {
	case t.Block > 1 && end > whole: // the other entries wait, as those after the n tokens will
		return whole
	case n > end:
		return min(n, end+len(t.Tokens))
	case t.Ahead && n > 0: // the entry of the last token depends on the next, which may differ
		return n - 1
	}
	return n
}

// reaches reports whether another text can take over just the entries of the first n tokens.
func (t *Text) reaches(n int) bool {
	rows := t.Cache.Len() - max(0, t.end()-n)*t.Rows
	return t.Cache.Reach(rows) == rows
}

// share takes over the entries and taps that from has of the first n tokens.
func (t *Text) share(from *Text, n int) {
	t.first, t.from = from.first, n
	t.Cache.Free()
	t.Cache = from.Cache.Fork()
	if end := from.end(); n > end {
		width := len(from.Taps) / len(from.Tokens)
		t.Tokens = append(t.Tokens, from.Tokens[:n-end]...)
		t.Taps = append(t.Taps, from.Taps[:(n-end)*width]...)
	} else if err := t.Cache.Truncate(t.Cache.Len() - (end-n)*t.Rows); err != nil {
		panic(err) // impossible: start is before n, and reaches(n) holds
	}
}
