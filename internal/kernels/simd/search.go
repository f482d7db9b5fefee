package simd

import "math"

// ArgMax returns the index of the largest number in x, the lowest index if there are several. A NaN
// never wins; if there is no number, ArgMax returns -1.
func ArgMax(x []float32) int {
	// One pass over x finds the maximum and the block it is in; that block is read again.
	const block = 8192
	best, at := negInf, -1
	for i := 0; i < len(x); i += block {
		if m := maxScaled(x[i:min(i+block, len(x))], 1); m > best {
			best, at = m, i
		}
	}
	at = max(at, 0) // if all are -Inf or NaN, search from the start
	at += indexEqual(x[at:], best)
	if at < len(x) {
		return at
	}
	return -1
}

// TopK finds the len(idx) largest entries of x and writes their indices and values in descending
// order, equal ones by index, NaNs after all numbers. It returns the number of entries written:
// len(idx), or len(x) if that is less.
func TopK(x []float32, idx []int32, val []float32) int {
	k := min(len(idx), len(x))
	if k == 0 {
		return 0
	}
	h := heap{idx[:k], val[:k]}
	for i, v := range x[:k] {
		h.idx[i], h.val[i] = int32(i), v
	}
	for i := k/2 - 1; i >= 0; i-- {
		h.sift(i, k, h.idx[i], h.val[i])
	}
	// The root is the worst of the k best so far: only a larger entry gets in.
	i := k
	for ; i < len(x) && h.val[0] != h.val[0]; i++ { // the root is NaN: any number gets in
		if x[i] == x[i] {
			h.sift(0, k, int32(i), x[i])
		}
	}
	for {
		i += indexAbove(x[i:], h.val[0])
		if i >= len(x) {
			break
		}
		h.sift(0, k, int32(i), x[i])
		i++
	}
	for n := k - 1; n > 0; n-- { // heapsort: the worst goes to the end
		id, v := h.idx[n], h.val[n]
		h.idx[n], h.val[n] = h.idx[0], h.val[0]
		h.sift(0, n, id, v)
	}
	return k
}

// heap keeps the entry that comes last in TopK's order at its root.
type heap struct {
	idx []int32
	val []float32
}

// rank maps the order of entries to one integer: by value, with NaNs below all numbers and zeros
// equal, then by index, lower ones first.
func rank(i int32, v float32) int64 {
	u := int32(math.Float32bits(v + 0)) // -0 + 0 is 0
	u ^= u >> 31 & math.MaxInt32        // negative numbers sort in reverse
	if v != v {
		u = math.MinInt32
	}
	return int64(u)<<32 | int64(^uint32(i))
}

// sift puts an entry in the place of entry i, or further down, in a heap of n.
func (h heap) sift(i, n int, id int32, v float32) {
	idx, val := h.idx[:n], h.val[:n]
	r := rank(id, v)
	for {
		c := 2*i + 1
		if c >= len(idx) {
			break
		}
		rc := rank(idx[c], val[c])
		if d := c + 1; d < len(idx) {
			if rd := rank(idx[d], val[d]); rd < rc {
				c, rc = d, rd
			}
		}
		if rc >= r {
			break
		}
		idx[i], val[i] = idx[c], val[c]
		i = c
	}
	idx[i], val[i] = id, v
}

// maxScaled returns the largest number among scale·x, -Inf if there is none. (The sign of a zero is not defined.)
func maxScaledGeneric(x []float32, scale float32) float32 {
	m := negInf
	for _, v := range x {
		v *= scale
		if v > m {
			m = v
		}
	}
	return m
}

// indexEqual returns the first i with x[i] == v, or len(x).
func indexEqualGeneric(x []float32, v float32) int {
	for i, u := range x {
		if u == v {
			return i
		}
	}
	return len(x)
}

// indexAbove returns the first i with x[i] > v, or len(x).
func indexAboveGeneric(x []float32, v float32) int {
	for i, u := range x {
		if u > v {
			return i
		}
	}
	return len(x)
}
