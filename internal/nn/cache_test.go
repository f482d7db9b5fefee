package nn

import (
	"encoding/binary"
	"math"
	"testing"

	"pgregory.net/rapid"

	"github.com/grovellm/grove/internal/kernels/gemm"
	"github.com/grovellm/grove/internal/kernels/num"
	"github.com/grovellm/grove/internal/testing/cases"
	_ "github.com/grovellm/grove/internal/testing/testfile" // collects garbage less often
)

// rowModel models the content of a cache: one number per committed row.
type rowModel struct {
	c    *Cache
	rows []float32
}

// write runs a pass of n pending rows, each marked with its own number in every layer and head.
func (m *rowModel) write(n int, next *float32) []float32 {
	m.c.Reserve(0, n)
	var marks []float32
	for i := range n {
		*next++
		marks = append(marks, *next)
		for layer := range m.c.mem.Layers {
			for head := range m.c.mem.Heads {
				m.c.storeKeys(layer, head, m.c.Len()+i, 1, mark(*next, layer, head, 0, m.c.mem.Dim), m.c.mem.Dim)
				m.c.storeValue(layer, head, m.c.Len()+i, mark(*next, layer, head, 1, m.c.mem.Dim))
			}
		}
	}
	return marks
}

// held returns a head's row as a cache of a type stores it.
func held(kv KVType, v []float32) []float32 {
	v = append([]float32(nil), v...)
	switch kv {
	case KVBF16:
		for i, x := range v {
			v[i] = num.BF16(num.ToBF16(x))
		}
	case KVQ8:
		var row blockRow
		b := row.quantize(append([]float32(nil), v...))
		for i := range v {
			q, scale := b.Block(i / blockDims)
			v[i] = float32(int8(q[i%blockDims])) * num.F16(scale)
		}
	}
	return v
}

// mark returns numbers that bf16 can hold too: their eight bits are the row's number, spread over a few dimensions.
func mark(x float32, layer, head, kind, dim int) []float32 {
	v := make([]float32, dim)
	for d := range v {
		v[d] = float32(int(x)>>(d%3*6)&63*4+d%4) * float32(math.Ldexp(1, layer*8+head*4+kind*2))
	}
	return v
}

// keyAt and valueAt return one dimension of a key or value in a cache's row.
func keyAt(c *Cache, layer, head, row, d int) float32 {
	switch c.mem.KV {
	case KVQ8:
		key := make([]float32, c.mem.Dim)
		c.loadBlockKey(key, layer, head, row)
		return key[d]
	case KVBF16:
		k, _ := c.panels(layer, head, row/PageRows)
		return num.BF16(binary.LittleEndian.Uint16(k[d/2*halfStep+(row%PageRows^1)*4+d%2*2:]))
	}
	return c.Keys(layer, head, row/PageRows)[d*PageRows+row%PageRows]
}

func valueAt(c *Cache, layer, head, row, d int) float32 {
	switch c.mem.KV {
	case KVQ8:
		_, v := c.panels(layer, head, row/PageRows)
		v = v[d/32*gemm.BlockBytes:]
		q := int8(v[64+row%PageRows/2*64+d%32*2+(1-row%2)])
		return float32(q) * num.F16(binary.LittleEndian.Uint16(v[(row%PageRows^1)*2:]))
	case KVBF16:
		_, v := c.panels(layer, head, row/PageRows)
		return num.BF16(binary.LittleEndian.Uint16(v[d/32*halfPanel+row%PageRows/2*halfStep+d%32*4+(1-row%2)*2:]))
	}
	return c.Values(layer, head, row/PageRows)[row%PageRows*c.mem.Dim+d]
}

// keepRows makes caches keep n rows before those that the next row sees.
func keepRows(n int) (restore func()) {
	old := keptRows
	keptRows = n
	return func() { keptRows = old }
}

// verify checks all rows that the next row sees.
func (m *rowModel) verify(t *rapid.T) {
	if m.c.Len() != len(m.rows) {
		t.Fatalf("cache has %d rows, want %d", m.c.Len(), len(m.rows))
	}
	mem := m.c.mem
	for i, x := range m.rows {
		for layer := range mem.Layers {
			if mem.Windows != nil && mem.Windows[layer] > 0 && i < len(m.rows)+1-mem.Windows[layer] {
				continue
			}
			for head := range mem.Heads {
				k, v := held(mem.KV, mark(x, layer, head, 0, mem.Dim)), held(mem.KV, mark(x, layer, head, 1, mem.Dim))
				for d := range mem.Dim {
					if got := keyAt(m.c, layer, head, i, d); got != k[d] {
						t.Fatalf("row %d layer %d head %d: key %v, want %v", i, layer, head, got, k[d])
					}
					if got := valueAt(m.c, layer, head, i, d); got != v[d] {
						t.Fatalf("row %d layer %d head %d: value %v, want %v", i, layer, head, got, v[d])
					}
				}
			}
		}
	}
}

// After any sequence of forks, passes, commits and truncations, each cache holds its rows, or in
// layers with windows those that the next row sees: no cache sees another's writes.
func TestCacheHoldsItsRows(t *testing.T) {
	cases.Check(t, 40, func(t *rapid.T) {
		mem := &Pages{
			Layers: 2, Heads: 2, Dim: rapid.SampledFrom([]int{4, 7, 40}).Draw(t, "dim"),
			KV: rapid.SampledFrom([]KVType{KVAuto, KVBF16, KVQ8}).Draw(t, "type"),
		}
		if rapid.Bool().Draw(t, "windows") {
			for range mem.Layers {
				mem.Windows = append(mem.Windows, rapid.SampledFrom([]int{0, 1, 5, 32, 50}).Draw(t, "window"))
			}
		}
		defer keepRows(rapid.SampledFrom([]int{0, 40}).Draw(t, "kept"))()
		caches := []*rowModel{{c: mem.NewCache()}}
		var next float32
		for range rapid.IntRange(1, 25).Draw(t, "steps") {
			i := rapid.IntRange(0, len(caches)-1).Draw(t, "cache")
			m := caches[i]
			switch rapid.IntRange(0, 4).Draw(t, "op") {
			case 0, 1: // a pass of which one path is committed
				n := rapid.IntRange(1, 2*PageRows+3).Draw(t, "rows")
				marks := m.write(n, &next)
				var path []int32
				for j := range n {
					if rapid.Bool().Draw(t, "keep") {
						path = append(path, int32(j))
						m.rows = append(m.rows, marks[j])
					}
				}
				if err := m.c.Commit(path); err != nil {
					t.Fatal(err)
				}
			case 2: // an abandoned pass, then a chain
				m.write(rapid.IntRange(1, 5).Draw(t, "dropped"), &next)
				m.rows = append(m.rows, m.write(rapid.IntRange(1, 40).Draw(t, "chain"), &next)...)
				m.c.CommitAll()
			case 3:
				n := rapid.IntRange(0, len(m.rows)).Draw(t, "len")
				if reach := m.c.Reach(n); reach < n {
					if err := m.c.Truncate(n); err == nil || m.c.Len() != len(m.rows) {
						t.Fatalf("truncated to %d of %d, more than %d: %v", n, len(m.rows), reach, err)
					}
					n = reach
				}
				if err := m.c.Truncate(n); err != nil {
					t.Fatal(err)
				}
				m.rows = m.rows[:n:n]
			case 4:
				if len(caches) < 4 {
					caches = append(caches, &rowModel{m.c.Fork(), append([]float32(nil), m.rows...)})
				}
			}
			for _, m := range caches {
				m.verify(t)
			}
		}
		for _, m := range caches {
			m.c.Free()
		}
		for i, g := range append(mem.pools[0].free, mem.pools[1].free...) {
			if g.refs.Load() != 0 {
				t.Fatalf("free page %d still has %d references", i, g.refs.Load())
			}
		}
	})
}

// A text takes no more memory than TextBytes says, and the part for layers with windows does not
// grow with the text. The last rows can be truncated.
func TestWindowsFreePages(t *testing.T) {
	cases.Check(t, 40, func(t *rapid.T) {
		mem := &Pages{Layers: 3, Heads: 2, Dim: 4, KV: rapid.SampledFrom([]KVType{KVF32, KVBF16, KVQ8}).Draw(t, "type")}
		mem.Windows = rapid.SliceOfN(rapid.SampledFrom([]int{0, 1, 33, 100}), 3, 3).Draw(t, "windows")
		pass := rapid.IntRange(1, 200).Draw(t, "pass")
		c := mem.NewCache()
		for c.Len() < 3000 {
			c.Reserve(0, pass)
			if most := mem.TextBytes(c.Len()+pass, pass) + int64(PageRows*mem.RowBytes()); mem.InUse() > most {
				t.Fatalf("%d rows take %d bytes, want at most %d", c.Len()+pass, mem.InUse(), most)
			}
			c.CommitAll()
			if n := max(0, c.Len()-keptRows); c.Reach(n) != n {
				t.Fatalf("of %d rows %d cannot be kept, but %d", c.Len(), n, c.Reach(n))
			}
		}
		if n := mem.TextBytes(6000, pass) - mem.TextBytes(3000, pass); n != 3000*int64(mem.RowBytes())*int64(
			mem.pools[wholeText].layers)/3 {
			t.Fatalf("3000 more rows take %d bytes more, where %d layers of 3 see all", n, mem.pools[wholeText].layers)
		}
		fork := c.Fork()
		c.Free()
		fork.Free()
		if mem.InUse() != 0 {
			t.Fatalf("freed caches have %d bytes", mem.InUse())
		}
	})
}

// In each layer, a row is counted as reading the committed rows of all pages in which it sees a row.
func TestReadBytesAreOfThePagesSeen(t *testing.T) {
	cases.Check(t, 40, func(t *rapid.T) {
		mem := &Pages{Layers: 3, Heads: 2, Dim: 4, KV: rapid.SampledFrom([]KVType{KVF32, KVBF16, KVQ8}).Draw(t, "type")}
		mem.Windows = rapid.SliceOfN(rapid.SampledFrom([]int{0, 1, 2, 31, 32, 33, 100}), 3, 3).Draw(t, "windows")
		committed := rapid.IntRange(0, 300).Draw(t, "committed")
		c := mem.NewCache()
		c.Reserve(0, committed)
		c.CommitAll()
		var f Forest
		f.Add(c, chain(1), 0)
		g := &f.segs[0]
		row := f.rows[0]
		rows := 0
		for _, w := range mem.Windows {
			for page := range pagesFor(committed) {
				if g.sees(&f, row, page, g.firstSeen(row, &Attention{Window: w}), g.end(row)) != 0 {
					rows += min(PageRows, committed-page*PageRows)
				}
			}
		}
		if got, want := mem.ReadBytes(committed), rows*mem.shapeOf(0).layerBytes(); got != want {
			t.Fatalf("%d bytes read with windows %v after %d rows, want %d", got, mem.Windows, committed, want)
		}
	})
}

func TestCommitRefusesWhatIsNoPath(t *testing.T) {
	mem := &Pages{Layers: 1, Heads: 1, Dim: 2}
	for _, path := range [][]int32{{-1}, {3}, {0, 0}, {1, 0}} {
		c := mem.NewCache()
		c.Reserve(0, 3)
		if err := c.Commit(path); err == nil || c.Len() != 0 || c.Pending() != 3 {
			t.Errorf("commit %v: error %v, %d rows, %d pending", path, err, c.Len(), c.Pending())
		}
	}
	if err := mem.NewCache().Truncate(1); err == nil {
		t.Error("truncate beyond the end: no error")
	}
}

// Pages that store nothing are prepared once too: heads without layers ask for their size during a pass.
func TestEmptyPagesStayAsTheyAre(t *testing.T) {
	p := Pages{Layers: 2, Bare: []bool{true, true}}
	for range 3 {
		p.RowBytes()
	}
	if len(p.place) != p.Layers {
		t.Errorf("%d places for %d layers", len(p.place), p.Layers)
	}
}
