// What a tree may grow next: a heap of Openings, the best first.

package clues

// Opening is a place where a tree may grow.
type Opening struct {
	Score float64
	Sum   float64 // log-probability of the path from the root to Node
	Node  int32   // to expand, or the parent of the one to add
	Rank  int32   // of the one to add, among its siblings
	order int32   // of equal scores the one that was opened first comes first
}

func (a *Opening) before(b *Opening) bool {
	return a.Score > b.Score || a.Score == b.Score && a.order < b.order
}

// Frontier is a binary heap.
type Frontier struct {
	open   []Opening
	opened int32
}

// Reset empties the heap.
func (f *Frontier) Reset() { f.open, f.opened = f.open[:0], 0 }

// Len is the number of openings.
func (f *Frontier) Len() int { return len(f.open) }

// Push adds an opening.
func (f *Frontier) Push(o Opening) {
	o.order = f.opened
	f.opened++
	h := append(f.open, o)
	i := len(h) - 1
	for ; i > 0; i = (i - 1) / 2 {
		parent := &h[(i-1)/2]
		if !o.before(parent) {
			break
		}
		h[i] = *parent
	}
	h[i] = o
	f.open = h
}

// Pop takes the best off.
func (f *Frontier) Pop() Opening {
	h := f.open
	top, o := h[0], h[len(h)-1]
	h = h[:len(h)-1]
	i := 0
	for {
		c := 2*i + 1
		if c >= len(h) {
			break
		}
		if c+1 < len(h) && h[c+1].before(&h[c]) {
			c++
		}
		if !h[c].before(&o) {
			break
		}
		h[i] = h[c]
		i = c
	}
	if len(h) > 0 {
		h[i] = o
	}
	f.open = h
	return top
}
