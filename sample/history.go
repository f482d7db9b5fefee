// What penalties look at: how often each token occurs in the window before a position, kept
// while walking up and down a tree.

package sample

// History counts the tokens of a text in a window at its end. Push adds a token and Pop removes the last
// one, both in constant time, so one History serves every node of a tree: push the path, sample, pop.
type History struct {
	last int     // window; 0: the whole text
	from int     // Params.PenaltyFrom
	text []int32 // every token pushed

	// The tokens that ever were in the window, how often they are now, and how often at from or later; index is an
	// open-addressed hash table of places in tokens, plus 1 (0: empty), a power of two long and at most half full.
	tokens, counts, late []int32
	index                []int32
}

// NewHistory returns an empty history for penalties, or nil, which keeps nothing, if there are none.
func NewHistory(p *Params) *History {
	if !p.penalised() {
		return nil
	}
	return &History{last: p.PenaltyLast, from: p.PenaltyFrom, index: make([]int32, 64)}
}

// Push adds a token to the end of the text.
func (h *History) Push(token int32) {
	if h == nil {
		return
	}
	h.text = append(h.text, token)
	h.add(len(h.text)-1, 1)
	if out := len(h.text) - 1 - h.last; h.last > 0 && out >= 0 {
		h.add(out, -1)
	}
}

// Pop removes the last token.
func (h *History) Pop() {
	if h == nil {
		return
	}
	n := len(h.text) - 1
	h.add(n, -1)
	if in := n - h.last; h.last > 0 && in >= 0 {
		h.add(in, 1)
	}
	h.text = h.text[:n]
}

// find is the place of token in index, or the empty one where it belongs.
func (h *History) find(token int32) int {
	mask := len(h.index) - 1
	i := int(uint64(uint32(token))*golden>>32) & mask
	for h.index[i] > 0 && h.tokens[h.index[i]-1] != token {
		i = (i + 1) & mask
	}
	return i
}

// add counts the token at a place of the text n times more.
func (h *History) add(place int, n int32) {
	token := h.text[place]
	i := h.find(token)
	if h.index[i] == 0 {
		if 2*(len(h.tokens)+1) > len(h.index) {
			h.index = make([]int32, 2*len(h.index))
			for at, t := range h.tokens {
				h.index[h.find(t)] = int32(at) + 1
			}
			i = h.find(token)
		}
		h.tokens, h.counts = append(h.tokens, token), append(h.counts, 0)
		h.late = append(h.late, 0)
		h.index[i] = int32(len(h.tokens))
	}
	h.counts[h.index[i]-1] += n
	if place >= h.from {
		h.late[h.index[i]-1] += n
	}
}
