package tokenizer

// Working memory of one Encode call, reused through a pool: the buffers of merging, and the words met
// before with their tokens. Its size is bounded whatever text comes.

import (
	"hash/maphash"
)

const (
	cacheBits  = 13
	cachedText = 30      // longest word kept, in bytes
	cachedIDs  = 8       // most tokens kept
	keepBuffer = 1 << 20 // symbols; larger buffers go back to the collector
)

type scratch struct {
	sym, prev, next []int32
	heap            minHeap
	text            []byte
	sum             []float64 // unigram
	work            int       // steps taken, so that tests can state complexity without a clock
	words           *[1 << cacheBits]cachedWord
}

// cachedWord is one cache line: a direct-mapped slot.
type cachedWord struct {
	textLen, idsLen uint8
	text            [cachedText]byte
	ids             [cachedIDs]int32
}

var cacheSeed = maphash.MakeSeed()

func newScratch() any { return &scratch{words: new([1 << cacheBits]cachedWord)} }

// slot is where the word w is kept, if it is. w has at most cachedText bytes.
func (sc *scratch) slot(w string) (_ *cachedWord, hit bool) {
	s := &sc.words[maphash.String(cacheSeed, w)&(1<<cacheBits-1)]
	return s, string(s.text[:s.textLen]) == w && s.idsLen > 0
}

func (s *cachedWord) store(w string, ids []int32) {
	if len(ids) > cachedIDs {
		return
	}
	s.textLen = uint8(copy(s.text[:], w))
	s.idsLen = uint8(copy(s.ids[:], ids))
}

// trim drops the buffers that one huge word left behind.
func (sc *scratch) trim() {
	if max(cap(sc.sym), cap(sc.prev)) > keepBuffer {
		sc.sym = nil
		sc.prev = nil
		sc.next = nil
		sc.heap = nil
		sc.sum = nil
	}
	if cap(sc.text) > 4*keepBuffer {
		sc.text = nil
	}
	sc.work = 0
}
