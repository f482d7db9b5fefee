package bpe

// candidate is a pair in the heap, with its count at the time when it was put there.
type candidate struct {
	pair  pair
	count int64
	index int32 // in trainer.pairs
}

// candidates is a binary heap, the most frequent pair on top.
type candidates []candidate

func (a candidate) before(b candidate) bool {
	switch {
	case a.count != b.count:
		return a.count > b.count
	case a.pair.left != b.pair.left:
		return a.pair.left < b.pair.left
	}
	return a.pair.right < b.pair.right
}

func (h *candidates) push(c candidate) {
	*h = append(*h, c)
	s := *h
	for i := len(s) - 1; i > 0; {
		up := (i - 1) / 2
		if !s[i].before(s[up]) {
			return
		}
		s[i], s[up] = s[up], s[i]
		i = up
	}
}

func (h *candidates) pop() {
	s := *h
	last := len(s) - 1
	s[0] = s[last]
	*h = s[:last]
	h.down(0)
}

// down moves the entry at i to its place below.
func (h candidates) down(i int) {
	for {
		c := 2*i + 1
		if c >= len(h) {
			return
		}
		if c+1 < len(h) && h[c+1].before(h[c]) {
			c++
		}
		if !h[c].before(h[i]) {
			return
		}
		h[i], h[c] = h[c], h[i]
		i = c
	}
}
