// What a tree may grow next: a heap of openings, the best first.

package jet

// opening is a place where a tree may grow.
type opening struct {
	score float64
	sum   float64 // log-probability of the path from the root to node
	node  int32   // expanding: the node to expand; mostProbable: the parent of the one to add
	rank  int32   // mostProbable: of the one to add, among its siblings
	order int32   // of equal scores the one that was opened first comes first
}

func (a *opening) before(b *opening) bool {
	return a.score > b.score || a.score == b.score && a.order < b.order
}

// frontier is a binary heap.
type frontier struct {
	open   []opening
	opened int32
}

func (f *frontier) reset() { f.open, f.opened = f.open[:0], 0 }

func (f *frontier) push(o opening) {
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

func (f *frontier) pop() opening {
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
