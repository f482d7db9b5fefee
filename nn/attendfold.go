package nn

import (
	"github.com/grovellm/grove/internal/gemm"
	"github.com/grovellm/grove/internal/simd"
)

// rangeResult is what attention to one range, or to several, came to, for each query of a block: the
// mean of the values o by their weights, the largest score and the sum of the exponentials of the
// scores less that one. Where pages hold panels, o is panel by panel: [width/Panel][queries][Panel].
type rangeResult struct{ o, tops, sums []float32 }

// keptSize is the size of a block's result of one range.
func (j *attendJob) keptSize(b *attendBlock) int {
	n := (b.to - b.from) * (j.a.Heads / j.a.KVHeads)
	return n * (j.f.segs[b.seg].cache.mem.resultWidth() + 2)
}

// keptRange is where the result of range r of a block of several parts is kept.
func (j *attendJob) keptRange(t *attendTask, r int) rangeResult {
	size := j.keptSize(&t.attendBlock)
	k := j.e.kept[t.keptAt+(t.head*(t.hi-t.lo)+r-t.lo)*size:][:size]
	o := size - 2*t.n
	return rangeResult{k[:o], k[o : o+t.n], k[o+t.n:]}
}

// nothing is the result of no range.
func (t *attendTask) nothing() rangeResult {
	all := rangeResult{t.s.folded[:t.n*t.width()], t.s.tops[t.n : 2*t.n], t.s.totals[t.n : 2*t.n]}
	clear(all.o)
	clear(all.sums)
	return all
}

// foldJob folds the results of blocks that were cut into parts.
type foldJob attendJob

func (f *foldJob) Do(worker, task int) {
	j := (*attendJob)(f)
	t := j.task(worker, task/len(j.split), j.blocks[j.split[task%len(j.split)]])
	all := t.nothing()
	for r := t.lo; r < t.hi; r++ {
		t.res = j.keptRange(&t, r)
		t.fold(all)
	}
	t.give(all)
}

// fold adds the result of a range to that of the ranges before it. With m the larger of the two
// largest scores, either weighs its sum times e to its largest score less m, and o becomes the mean of
// the two means by these weights. Where only one of the two weighs anything it is taken as it is.
func (t *attendTask) fold(all rangeResult) {
	res := t.res
	for k := range t.n {
		switch {
		case res.sums[k] == 0: // also of a row that sees nothing of the range
		case all.sums[k] == 0:
			t.blend(all.o, res.o, k, 0, 1)
			all.tops[k], all.sums[k] = res.tops[k], res.sums[k]
		default:
			a, b := all.weigh(k, res.tops[k], res.sums[k])
			t.blend(all.o, res.o, k, a, b)
		}
	}
}

// weigh adds a part of that largest score and sum to query k's. It returns the shares of the whole that
// the query had before and that the part has.
func (a *rangeResult) weigh(k int, top, sum float32) (before, part float32) {
	m := max(a.tops[k], top)
	e := [2]float32{a.tops[k] - m, top - m}
	simd.Exp(e[:], e[:])
	before, part = float32(a.sums[k]*e[0]), float32(sum*e[1])
	a.tops[k], a.sums[k] = m, before+part
	return before / a.sums[k], part / a.sums[k]
}

// blend makes query k's outputs a times themselves and b times x's, where there are those. Where a is 0 they are x's.
func (t *attendTask) blend(o, x []float32, k int, a, b float32) {
	size, step := t.width(), 0
	from := k * size
	if t.kv.panels() {
		size, from, step = gemm.Panel, k*gemm.Panel, t.n*gemm.Panel
	}
	for {
		y := o[from : from+size]
		switch {
		case x == nil:
			simd.Scale(y, a)
		case a == 0:
			copy(y, x[from:])
		default:
			simd.Scale(y, a)
			simd.Axpy(y, b, x[from:])
		}
		if from += step; step == 0 || from >= len(o) {
			return
		}
	}
}

// addSinks shares the weights of each query with its head's sink, whose weight nobody gets.
func (t *attendTask) addSinks(all rangeResult) {
	if t.a.Sinks == nil {
		return
	}
	for k := range t.n {
		if all.sums[k] != 0 {
			a, _ := all.weigh(k, t.a.Sinks[t.head*t.group+k%t.group], 1)
			t.blend(all.o, nil, k, a, 0)
		}
	}
}
