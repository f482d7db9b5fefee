package gemm

import (
	"fmt"
	"runtime"
	"sort"
	"unsafe"
)

// A product may need only part of a matrix, and a different part for each row, such as a drafter's
// head over shortlists of tokens. Choosing and multiplying are one walk over the panels: each panel
// is read once, for all rows that need it, and no weight is moved.

// Run is panels [From, To) of a matrix. Their results begin At panels into a row of results.
type Run struct{ From, To, At int }

// Band is rows [From, To) of an input that need the same panels: runs in ascending order, with gaps between them.
type Band struct {
	From, To int
	Runs     []Run
}

// MulBands computes, for every band, the outputs of its runs' panels that lie in [p0, p1): the result that Mul
// would write to dst[r·stride + p·Panel + o] goes to dst[r·stride + (At + p − From)·Panel + o]. Outputs beyond the
// matrix, in its last panel, are not written. Disjoint ranges of panels may run in parallel. It allocates nothing.
func (m *Matrix) MulBands(dst []float32, stride int, x *Input, bands []Band, p0, p1 int) {
	if x.t != m.t.Activations() || x.in != m.in {
		panic(fmt.Sprintf("gemm: input of %d %v activations for a matrix of %d %v", x.in, x.t, m.in, m.t))
	}
	if p0 < 0 || p1 > m.Panels() {
		panic(fmt.Sprintf("gemm: panels [%d, %d) of %d", p0, p1, m.Panels()))
	}
	e, ok := engineFor(m.t, x.level, x.pairs)
	s := pass{e: e, m: m, dst: dst, stride: stride, x: x}
	for len(bands) > 0 {
		n := min(len(bands), abreast)
		b := bands[:n]
		for i := range b {
			s.check(&b[i], p0, p1)
		}
		switch {
		case !ok:
			s.portableBands(b, p0, p1)
		case n == 1:
			s.band(&b[0], p0, p1)
		case m.t.coded():
			s.bandsCoded(b, p0, p1)
		default:
			s.bands(b, p0, p1)
		}
		bands = bands[n:]
	}
	runtime.KeepAlive(m)
	runtime.KeepAlive(x)
}

// abreast is how many bands share one reading of the panels; each further group of this size reads them again.
const abreast = 64

// check panics if the results of a band in panels [p0, p1) do not fit dst.
func (s *pass) check(b *Band, p0, p1 int) {
	if b.From < 0 || b.To > s.x.n {
		panic(fmt.Sprintf("gemm: rows [%d, %d) of %d", b.From, b.To, s.x.n))
	}
	last := 0
	for _, r := range b.Runs[b.first(p0):] {
		if r.From >= p1 {
			break
		}
		end := (r.At + r.To - r.From) * Panel
		if s.m.out < r.To*Panel {
			end -= r.To*Panel - s.m.out
		}
		if r.From < last || r.To > s.m.Panels() || r.At < 0 || b.From < b.To &&
			(s.stride < end || len(s.dst) < (b.To-1)*s.stride+end) {
			panic(fmt.Sprintf("gemm: run %+v after panel %d of %d, with %d results of stride %d for rows up to %d", r, last, s.m.Panels(),
				len(s.dst), s.stride, b.To))
		}
		last = r.To
	}
}

// first returns the first of the band's runs that ends after panel p.
func (b *Band) first(p int) int {
	return sort.Search(len(b.Runs), func(i int) bool { return b.Runs[i].To > p })
}

func (s *pass) portableBands(bands []Band, p0, p1 int) {
	for _, b := range bands {
		for _, r := range b.Runs[b.first(p0):] {
			mulPortable(s.m, s.dst, s.stride, r.At-r.From, s.x, b.From, b.To, 0, max(p0, r.From), min(p1, r.To))
		}
	}
}

// band multiplies one band: run by run, as whole ranges of panels.
func (s pass) band(b *Band, p0, p1 int) {
	s.r0, s.r1 = b.From, b.To
	if s.r0 >= s.r1 {
		return
	}
	for _, r := range b.Runs[b.first(p0):] {
		if r.From >= p1 {
			return
		}
		s.shift = r.At - r.From
		s.run(max(p0, r.From), min(p1, r.To))
	}
}

// bands multiplies several bands: panel by panel, each band that needs it in turn.
//
//go:noinline
func (s pass) bands(bands []Band, p0, p1 int) {
	var memory [cacheLine + sumsSize]byte
	s.work = line(unsafe.Pointer(&memory))
	s.walkBands(bands, p0, p1)
}

// bandsCoded is bands with room for unpacked elements.
//
//go:noinline
func (s pass) bandsCoded(bands []Band, p0, p1 int) {
	var m Scratch
	s.workingIn(&m, true).walkBands(bands, p0, p1)
}

func (s pass) walkBands(bands []Band, p0, p1 int) {
	var (
		run  [abreast]int // for each band, the run that p is in or before
		want [abreast]int // the bands that need p
		next = -1         // the panel that was prefetched
	)
	for i := range bands {
		run[i] = bands[i].first(p0)
		if bands[i].From >= bands[i].To {
			run[i] = len(bands[i].Runs)
		}
	}
	for p := p0; p < p1; {
		n, after := 0, p1 // after: the next panel that a band needs, if none needs this one
		more := false     // the next panel is also needed
		for i := range bands {
			runs := bands[i].Runs[run[i]:]
			switch {
			case len(runs) == 0:
			case runs[0].From > p:
				after = min(after, runs[0].From)
				more = more || runs[0].From == p+1
			default:
				want[n] = i
				n++
				more = more || runs[0].To > p+1 || len(runs) > 1 && runs[1].From == p+1
			}
		}
		if n == 0 {
			p = after
			continue
		}
		more = more && p+1 < p1
		for k, i := range want[:n] {
			b := &bands[i]
			r := &b.Runs[run[i]]
			s.shift = r.At - r.From
			rows := b.To - b.From
			chunks := (rows + chunkRows - 1) / chunkRows
			for c := range chunks {
				last := k == n-1 && c == chunks-1
				var a ahead
				if last && more {
					a = s.after(p)
				}
				s.panel(p, b.From+rows*c/chunks, b.From+rows*(c+1)/chunks, k == 0 && c == 0 && next != p, a)
			}
			if p+1 == r.To {
				run[i]++
			}
		}
		if more {
			next = p + 1
		}
		p++
	}
}
