package simd

// ArgMax returns the index of the largest number of x, the lowest such index. A NaN never
// wins; where there is no number, ArgMax returns -1.
func ArgMax(x []float32) int {
	// One reading of x finds the maximum and the block it is in; that block is read again.
	const block = 8192
	best, at := negInf, -1
	for i := 0; i < len(x); i += block {
		if m := maxScaled(x[i:min(i+block, len(x))], 1); m > best {
			best, at = m, i
		}
	}
	at = max(at, 0) // where all are -Inf or NaN, look from the start
	if at += indexEqual(x[at:], best); at < len(x) {
		return at
	}
	return -1
}

// TopK finds the len(idx) largest entries of x and writes their indices and values in
// descending order, equal ones by index, NaNs after all numbers. It returns how many it
// wrote: len(idx), or len(x) if that is less.
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
		h.down(i, k)
	}
	// The root is the worst of the k best so far: an entry gets in only if it is larger.
	i := k
	for ; i < len(x) && h.val[0] != h.val[0]; i++ { // the root is NaN: any number gets in
		if x[i] == x[i] {
			h.replace(int32(i), x[i])
		}
	}
	for {
		i += indexAbove(x[i:], h.val[0])
		if i >= len(x) {
			break
		}
		h.replace(int32(i), x[i])
		i++
	}
	for n := k - 1; n > 0; n-- { // heapsort: the worst goes last
		h.swap(0, n)
		h.down(0, n)
	}
	return k
}

// heap keeps the entry that comes last in TopK's order at its root.
type heap struct {
	idx []int32
	val []float32
}

func (h heap) replace(i int32, v float32) {
	h.idx[0], h.val[0] = i, v
	h.down(0, len(h.idx))
}

func (h heap) swap(i, j int) {
	h.idx[i], h.idx[j] = h.idx[j], h.idx[i]
	h.val[i], h.val[j] = h.val[j], h.val[i]
}

// after reports whether entry i comes after entry j in TopK's order.
func (h heap) after(i, j int) bool {
	a, b := h.val[i], h.val[j]
	switch {
	case a < b:
		return true
	case a > b:
		return false
	case (a != a) != (b != b):
		return a != a
	}
	return h.idx[i] > h.idx[j]
}

func (h heap) down(i, n int) {
	for {
		c := 2*i + 1
		if c >= n {
			return
		}
		if c+1 < n && h.after(c+1, c) {
			c++
		}
		if !h.after(c, i) {
			return
		}
		h.swap(i, c)
		i = c
	}
}

// maxScaled is the largest number among scale·x, -Inf if there is none. (The sign of a zero is not defined.)
func maxScaledGeneric(x []float32, scale float32) float32 {
	m := negInf
	for _, v := range x {
		if v *= scale; v > m {
			m = v
		}
	}
	return m
}

// indexEqual is the first i with x[i] == v, or len(x).
func indexEqualGeneric(x []float32, v float32) int {
	for i, u := range x {
		if u == v {
			return i
		}
	}
	return len(x)
}

// indexAbove is the first i with x[i] > v, or len(x).
func indexAboveGeneric(x []float32, v float32) int {
	for i, u := range x {
		if u > v {
			return i
		}
	}
	return len(x)
}
