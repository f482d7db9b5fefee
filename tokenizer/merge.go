package tokenizer

// Byte-pair merging: of all neighbouring pairs in a word that the table knows, merge the one of
// lowest rank, leftmost first among equals, until none is left. SentencePiece's merging by score is
// the same thing with the scores, highest first, as ranks.
//
// Words are short, so a linear search for the lowest rank serves most. A word may also be a megabyte
// of spaces: beyond shortWord symbols a heap over a linked list keeps it n·log n.

import "math"

const (
	shortWord = 32
	noMerge   = math.MaxInt32
)

// pairTable maps a pair of symbols to its rank and to the symbol it becomes. Open addressing, at most
// half full.
type pairTable struct {
	slots []pairSlot
	shift uint
	n     int
}

type pairSlot struct {
	key  uint64 // left<<32 | right, plus 1: 0 is an empty slot
	rank int32
	out  int32
}

func pairKey(left, right int32) uint64 { return uint64(uint32(left))<<32 | uint64(uint32(right)) + 1 }

func newPairTable(n int) *pairTable {
	bits := uint(4)
	for 1<<bits < 2*n {
		bits++
	}
	return &pairTable{slots: make([]pairSlot, 1<<bits), shift: 64 - bits}
}

func (t *pairTable) slot(key uint64) *pairSlot {
	mask := uint64(len(t.slots) - 1)
	for i := key * 0x9E3779B97F4A7C15 >> t.shift; ; i = (i + 1) & mask {
		if s := &t.slots[i]; s.key == key || s.key == 0 {
			return s
		}
	}
}

// add stores a pair that is not there yet; the first one stays. The table must have been made large
// enough.
func (t *pairTable) add(left, right, rank, out int32) {
	key := pairKey(left, right)
	if s := t.slot(key); s.key == 0 {
		*s = pairSlot{key, rank, out}
		t.n++
	}
}

// find returns the rank of a pair, noMerge where it has none, and the symbol it becomes.
func (t *pairTable) find(left, right int32) (rank, out int32) {
	s := t.slot(pairKey(left, right))
	if s.key == 0 {
		return noMerge, 0
	}
	return s.rank, s.out
}

// merge merges the symbols of one word in place and returns what is left of them.
func (t *pairTable) merge(sym []int32, sc *scratch) []int32 {
	if len(sym) <= shortWord {
		return t.mergeShort(sym, sc)
	}
	return t.mergeLong(sym, sc)
}

func (t *pairTable) mergeShort(sym []int32, sc *scratch) []int32 {
	var rank, out [shortWord + 1]int32 // of the pair (i, i+1); the last symbol has none
	n := len(sym)
	for i := range n - 1 {
		rank[i], out[i] = t.find(sym[i], sym[i+1])
	}
	sc.work += n
	for n > 1 {
		k, low := 0, int32(noMerge)
		for i, r := range rank[:n-1] {
			if r < low {
				k, low = i, r
			}
		}
		if low == noMerge {
			break
		}
		sc.work += n
		sym[k] = out[k]
		n--
		copy(sym[k+1:n], sym[k+2:])
		copy(rank[k+1:n], rank[k+2:])
		copy(out[k+1:n], out[k+2:])
		if k+1 < n {
			rank[k], out[k] = t.find(sym[k], sym[k+1])
		}
		if k > 0 {
			rank[k-1], out[k-1] = t.find(sym[k-1], sym[k])
		}
	}
	return sym[:n]
}

// mergeLong keeps the word as a doubly linked list over positions and the known pairs in a heap of
// rank<<32 | position of the left symbol. An entry is stale where the pair now at its position has
// another rank; a merged-away position has next = −2.
func (t *pairTable) mergeLong(sym []int32, sc *scratch) []int32 {
	n := len(sym)
	sc.prev, sc.next = grow(sc.prev, n), grow(sc.next, n)
	prev := sc.prev
	next := sc.next
	heap := sc.heap[:0]
	for i := range n {
		prev[i], next[i] = int32(i-1), int32(i+1)
	}
	next[n-1] = -1
	for i := range n - 1 {
		if r, _ := t.find(sym[i], sym[i+1]); r != noMerge {
			heap = append(heap, uint64(r)<<32|uint64(i))
		}
	}
	heap.init()
	sc.work += n + len(heap)
	push := func(i int32) {
		if r, _ := t.find(sym[i], sym[next[i]]); r != noMerge {
			heap.push(uint64(r)<<32 | uint64(i))
			sc.work++
		}
	}
	for len(heap) > 0 {
		top := heap.pop()
		i := int32(top & math.MaxUint32)
		j := next[i]
		if j < 0 {
			continue
		}
		rank, out := t.find(sym[i], sym[j])
		if rank != int32(top>>32) {
			continue
		}
		sym[i] = out
		next[i], next[j] = next[j], -2
		if next[i] >= 0 {
			prev[next[i]] = i
			push(i)
		}
		if prev[i] >= 0 {
			push(prev[i])
		}
	}
	sc.heap = heap
	k := 0
	for i := int32(0); i >= 0; i = next[i] {
		sym[k] = sym[i]
		k++
	}
	return sym[:k]
}

// minHeap is a binary heap of the smallest number, with four children a node to spare cache misses.
type minHeap []uint64

func (h minHeap) init() {
	for i := len(h) / 4; i >= 0; i-- {
		h.down(i)
	}
}

func (h *minHeap) push(x uint64) {
	*h = append(*h, x)
	s := *h
	i := len(s) - 1
	for i > 0 {
		up := (i - 1) / 4
		if s[up] <= x {
			break
		}
		s[i] = s[up]
		i = up
	}
	s[i] = x
}

func (h *minHeap) pop() uint64 {
	s := *h
	top := s[0]
	s[0] = s[len(s)-1]
	*h = s[:len(s)-1]
	h.down(0)
	return top
}

func (h minHeap) down(i int) {
	if i >= len(h) {
		return
	}
	x := h[i]
	for {
		c := 4*i + 1
		if c >= len(h) {
			break
		}
		low := c
		for k := c + 1; k < min(c+4, len(h)); k++ {
			if h[k] < h[low] {
				low = k
			}
		}
		if x <= h[low] {
			break
		}
		h[i] = h[low]
		i = low
	}
	h[i] = x
}

// grow returns s with length n, its contents undefined.
func grow[T any](s []T, n int) []T {
	if cap(s) < n {
		return make([]T, n, n+n/2)
	}
	return s[:n]
}
