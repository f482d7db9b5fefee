// Top-k, top-p and min-p: which tokens may be drawn. Each keeps a beginning of one total order
// of the tokens, so what is kept is told by where it ends.

package sample

import (
	"math"
	"slices"

	"github.com/grovellm/grove/internal/kernels/simd"
)

// orderKey orders tokens by logit, the lower id first among equals: larger is earlier. NaN counts as minus infinity.
func orderKey(l float32, id int) uint64 {
	u := ^uint32(0xff800000)
	if l > negInf {
		u = math.Float32bits(l + 0) // the sum makes one zero of the two
		u ^= uint32(int32(u)>>31) | 1<<31
	}
	return uint64(u)<<32 | uint64(^uint32(id))
}

// listMax is the longest list of tokens that is kept as one; beyond it the vocabulary is scanned.
const listMax = 128

// support returns the kept tokens as a list in order, or, when they may be many, nil and the
// order key of the last one (0 when all are kept). top is the largest logit, a finite number.
func (s *Sampler) support(logits []float32, top float32) (list []int32, cut uint64) {
	k, topP := len(logits), s.p.TopP > 0 && s.p.TopP < 1
	if s.p.TopK > 0 {
		k = min(k, s.p.TopK)
	}
	if k <= listMax {
		list, val := s.first(logits, k)
		if topP {
			w := s.exps(val, top)
			list = list[:s.reach(w, s.share(sum(w)))]
		}
		return s.minP(list, logits, top), 0
	}
	if k < len(logits) {
		cut = s.cutAt(logits, 0, nil, uint64(k))
	}
	if topP {
		if cut == 0 {
			least, most := s.total(logits, top)
			list = s.listed(logits, top, least, most)
		}
		var all uint64
		if list == nil {
			w := s.exps(logits, top)
			if cut > 0 {
				for i, l := range logits {
					if orderKey(l, i) < cut {
						w[i] = 0
					}
				}
			}
			all = sum(w)
			list = s.listed(logits, top, all, all)
		}
		if list != nil {
			return s.minP(list, logits, top), 0
		}
		cut = s.cutAt(logits, cut, s.exps(logits, top), s.share(all))
	}
	if s.p.MinP > 0 {
		if list, val := s.first(logits, listMax); !s.likely(val[len(val)-1], top) {
			return s.minP(list, logits, top), 0
		}
		least := ^uint64(0)
		for i, l := range logits {
			if s.likely(l, top) {
				least = min(least, orderKey(l, i))
			}
		}
		cut = max(cut, least)
	}
	return nil, cut
}

// listed is the tokens that top-p keeps, where that is the same few for every mass of all tokens from least to most;
// else nil. A trained model's distribution nearly always has its share in a short list, whose end does not depend on
// the last digits of the sum.
func (s *Sampler) listed(logits []float32, top float32, least, most uint64) []int32 {
	list, val := s.first(logits, listMax)
	w := s.exps(val, top)
	if n := s.reach(w, s.share(least)); n > 0 && n == s.reach(w, s.share(most)) {
		return list[:n]
	}
	return nil
}

// minP is the beginning of list that min-p keeps.
func (s *Sampler) minP(list []int32, logits []float32, top float32) []int32 {
	if s.p.MinP > 0 {
		for n, i := range list {
			if !s.likely(logits[i], top) {
				return list[:n]
			}
		}
	}
	return list
}

// likely reports whether exp((l − top) / temperature) is at least min-p.
func (s *Sampler) likely(l, top float32) bool { return s.scaled(l, top) >= s.lnMinP }

// scaled is (l − top) / temperature, at most 0, and least where nothing is left of its exponential.
func (s *Sampler) scaled(l, top float32) float32 {
	if x := (l - top) * float32(s.inv); x > nothing {
		return x
	}
	return nothing
}

// nothing is a logarithm whose exponential has no mass; massUnits a certain token's mass.
const (
	nothing   = -87
	massUnits = 1 << 40
)

// mass turns exp((l − top) / temperature) into a whole number, so that sums do not depend on their order.
func mass(e float32) uint64 { return uint64(float64(e) * massUnits) }

// exps fills s.exp with exp((l − top) / temperature) of each logit.
func (s *Sampler) exps(logits []float32, top float32) []float32 {
	s.exp = slices.Grow(s.exp[:0], len(logits))[:len(logits)]
	for i, l := range logits {
		s.exp[i] = s.scaled(l, top)
	}
	simd.Exp(s.exp, s.exp)
	return s.exp
}

// sum is the mass of tokens with exponentials w.
func sum(w []float32) (all uint64) {
	for _, e := range w {
		all += mass(e)
	}
	return all
}

// total is bounds of the mass of all tokens: 0 and the most there is where they are not known.
func (s *Sampler) total(logits []float32, top float32) (least, most uint64) {
	// The sum is off by 2⁻¹⁶ of itself at most. What is raised is below 256 and off by 2⁻¹⁵, as its terms are then; a
	// mass is off by a unit.
	const slack = 0x1p-13
	m := top * float32(s.inv)
	if !(m > -256 && m < 256) || len(logits) > 1<<22 {
		return 0, math.MaxUint64
	}
	s.exp = append(s.exp[:0], logits...)
	all := simd.ScaledSumExp(s.exp, float32(s.inv), m)
	if !(all > 0) { // there is a NaN
		return 0, math.MaxUint64
	}
	return uint64(all * (1 - slack) * massUnits), uint64(all * (1 + slack) * massUnits)
}

// share is the mass that top-p wants of all there is: between 1 and all.
func (s *Sampler) share(all uint64) uint64 {
	return min(max(uint64(math.Ceil(float64(s.p.TopP)*float64(all))), 1), all)
}

// reach is how many of w it takes to reach target, 0 when all do not.
func (s *Sampler) reach(w []float32, target uint64) int {
	var sum uint64
	for i, e := range w {
		sum += mass(e)
		if sum >= target {
			return i + 1
		}
	}
	return 0
}

// first lists the first k tokens in order, leaving out those with minus infinity.
func (s *Sampler) first(logits []float32, k int) (list []int32, val []float32) {
	s.idx = slices.Grow(s.idx[:0], k)[:k]
	s.val = slices.Grow(s.val[:0], k)[:k]
	n := simd.TopK(logits, s.idx, s.val)
	for n > 0 && !(s.val[n-1] > negInf) {
		n--
	}
	return s.idx[:n], s.val[:n]
}

type item struct{ key, weight uint64 }

// cutAt returns the largest order key such that the tokens from it up, among those that reach floor, weigh
// at least target; a token weighs the mass of its w, or 1 where w is nil. It narrows the key eleven bits
// at a time by a histogram of weights, and sorts when few tokens are left: linear, whatever the logits.
func (s *Sampler) cutAt(logits []float32, floor uint64, w []float32, target uint64) uint64 {
	const bits, buckets = 11, 1 << 11
	shift := 64 - bits
	clear(s.hist[:])
	for i, l := range logits {
		if key := orderKey(l, i); key >= floor {
			weight := uint64(1)
			if w != nil {
				weight = mass(w[i])
			}
			s.hist[key>>shift] += weight
		}
	}
	bucket, above := s.bucket(target)
	target -= above
	items := s.items[:0]
	for i, l := range logits {
		if key := orderKey(l, i); key >= floor && key>>shift == bucket {
			weight := uint64(1)
			if w != nil {
				weight = mass(w[i])
			}
			items = append(items, item{key, weight})
		}
	}
	s.items = items
	for len(items) > 256 && shift > 0 {
		shift = max(shift-bits, 0)
		clear(s.hist[:])
		for _, it := range items {
			s.hist[it.key>>shift&(buckets-1)] += it.weight
		}
		bucket, above = s.bucket(target)
		target -= above
		n := 0
		for _, it := range items {
			if it.key>>shift&(buckets-1) == bucket {
				items[n] = it
				n++
			}
		}
		items = items[:n]
	}
	slices.SortFunc(items, func(a, b item) int {
		if a.key > b.key {
			return -1
		}
		return 1
	})
	for _, it := range items {
		if it.weight >= target {
			return it.key
		}
		target -= it.weight
	}
	return floor
}

// bucket is the bucket of s.hist in which the weights, from the top, reach target, and the weight above it.
func (s *Sampler) bucket(target uint64) (b, above uint64) {
	for b = uint64(len(s.hist)) - 1; b > 0 && above+s.hist[b] < target; b-- {
		above += s.hist[b]
	}
	return b, above
}
