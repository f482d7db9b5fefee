// What each row sees: its ancestors, unless visibility was set directly.

package tree

import "math/bits"

func words(n int) int { return (n + 63) >> 6 }

// Sees reports whether row i attends to node j: the tree mask M[i, j] of Merged-Tree Dual Drafting §4.2.
func (t *Tree) Sees(i, j int) bool {
	if t.stride > 0 {
		row := t.sees[i*t.stride : (i+1)*t.stride]
		return j>>6 < len(row) && row[j>>6]>>(j&63)&1 != 0
	}
	for i > j { // a parent's index is below its child's
		i = int(t.Parent[i])
	}
	return i == j
}

// SetSees sets whether row i attends to node j, for block heads whose rows also see later rows or
// other branches. A row always sees itself. Nodes appended later see their ancestors as usual.
func (t *Tree) SetSees(i, j int, on bool) {
	if i == j {
		return
	}
	if t.stride == 0 {
		if t.Sees(i, j) == on {
			return
		}
		t.layout(words(t.Len()))
		for k := range t.Token {
			t.ancestorRow(k)
		}
	}
	w, b := i*t.stride+j>>6, uint64(1)<<(j&63)
	if on {
		t.sees[w] |= b
	} else {
		t.sees[w] &^= b
	}
}

// Visible appends to dst the nodes that row i sees, in order of depth, ties by index: the order of
// their positions. Unless SetSees was used, that is the path from the root to i, i last.
func (t *Tree) Visible(i int, dst []int32) []int32 {
	if t.stride == 0 {
		return t.Path(i, dst)
	}
	start := len(dst)
	for w, word := range t.sees[i*t.stride : (i+1)*t.stride] {
		for ; word != 0; word &= word - 1 {
			dst = append(dst, int32(w<<6+bits.TrailingZeros64(word)))
		}
	}
	seen := dst[start:] // ascending indices; an insertion sort by depth keeps ties in that order
	for a := 1; a < len(seen); a++ {
		v := seen[a]
		b := a
		for ; b > 0 && t.Depth[seen[b-1]] > t.Depth[v]; b-- {
			seen[b] = seen[b-1]
		}
		seen[b] = v
	}
	return dst
}

// growSees gives the node just pushed its row of visibility.
func (t *Tree) growSees() {
	n := t.Len()
	if w := words(n); w > t.stride {
		t.layout(2 * w)
	}
	for range t.stride {
		t.sees = append(t.sees, 0)
	}
	t.ancestorRow(n - 1)
}

func (t *Tree) ancestorRow(i int) {
	row := t.sees[i*t.stride : (i+1)*t.stride]
	for ; i >= 0; i = int(t.Parent[i]) {
		row[i>>6] |= 1 << (i & 63)
	}
}

// layout widens the rows to stride words; with no rows yet it makes an empty one for each node.
func (t *Tree) layout(stride int) {
	old := t.stride
	rows := t.Len()
	if old > 0 {
		rows = len(t.sees) / old
	}
	for len(t.sees) < rows*stride {
		t.sees = append(t.sees, 0)
	}
	for i := rows - 1; i >= 0 && old > 0; i-- { // from the last row down: nothing is overwritten before it has moved
		copy(t.sees[i*stride:], t.sees[i*old:(i+1)*old])
		clear(t.sees[i*stride+old : (i+1)*stride])
	}
	t.stride = stride
}
