package nn

import "github.com/grovellm/grove/tree"

// Forest is the rows of one pass: for each sequence a cache and a tree of new rows. The rows
// of a sequence are in the order of its tree's nodes, and follow those of the sequence before.
type Forest struct {
	segs []Segment
	rows []forestRow
	rest []int32 // the nodes of all rows' visible lists, after their prefixes
	vis  []int32 // scratch

	walked walk // what layers with a state make of it
}

// Segment is one sequence's part of the forest.
type Segment struct {
	Cache     *Cache
	Base      int // committed rows before the pass
	From      int // nodes of the tree that earlier passes left pending
	Row, Rows int // its rows are [Row, Row+Rows): the nodes from there on
	samePages int // pages of the cache, from the first on, that are those of the sequence before too; of readers 0

	readers bool // its rows are cached nowhere: AddReaders
}

// Slots is one past the last slot of the cache that the sequence's rows may see.
func (s *Segment) Slots() int {
	if s.readers {
		return s.Base
	}
	return s.Base + s.From + s.Rows
}

// firstSeen is the number of positions before those that a row sees of a window, which is 0 for
// all. A window ends at the row's own position: a row of a block that looks both ways sees more.
func (s *Segment) firstSeen(r forestRow, window int) int {
	if window == 0 {
		return 0
	}
	first := s.Base + r.depth + 1 - window
	if s.readers { // whose own position has no row
		first = min(first, s.Base-1)
	}
	return max(0, first)
}

// end is one past the last position that a row sees, its own.
func (s *Segment) end(r forestRow) int { return s.Base + r.prefix + r.to - r.from }

// restWithin is the nodes of a row's visible list with numbers [from, to) after its prefix, as far as there are such.
func (f *Forest) restWithin(r forestRow, from, to int) []int32 {
	rest := f.rest[r.from:r.to]
	from, to = max(from, 0), min(to, len(rest))
	return rest[min(from, max(to, 0)):max(to, 0)]
}

// sees says which slots of a page have positions [from, to) that a row sees, a bit for each.
func (s *Segment) sees(f *Forest, r forestRow, page, from, to int) uint32 {
	at, ordered := page*PageRows, s.Base+r.prefix
	seen := uint32(1<<min(PageRows, max(0, min(ordered, to)-at)) - 1)
	seen &^= uint32(1<<min(PageRows, max(0, from-at)) - 1)
	for _, v := range f.restWithin(r, from-ordered, to-ordered) {
		if slot := s.Base + int(v) - at; slot >= 0 && slot < PageRows {
			seen |= 1 << slot
		}
	}
	return seen
}

// forestRow says what a row sees beyond the committed rows: nodes 0..prefix−1 of its tree,
// which sit in the cache in position order already, then rest[from:to]. A chain is all
// prefix; in a tree the prefix is short.
type forestRow struct {
	position int
	depth    int // of the row's node: the committed rows before it, and its ancestors, are so many more
	prefix   int
	from, to int
}

// Reset empties the forest.
func (f *Forest) Reset() {
	f.segs = f.segs[:0]
	f.rows = f.rows[:0]
	f.rest = f.rest[:0]
	f.walked.reset()
}

// Len is the number of rows.
func (f *Forest) Len() int { return len(f.rows) }

// Segments are the parts of the sequences.
func (f *Forest) Segments() []Segment { return f.segs }

// Row is the position of row i, and the nodes of its tree that it sees: the first ones, as many as
// prefix, then those of rest.
func (f *Forest) Row(i int) (position, prefix int, rest []int32) {
	r := &f.rows[i]
	return r.position, r.prefix, f.rest[r.from:r.to]
}

// Add appends the nodes of t from number from on, to be cached after the committed rows of c and the nodes
// before them, which are pending there.
func (f *Forest) Add(c *Cache, t *tree.Tree, from int) { f.add(c, t, from, nil) }

// AddAt is Add of nodes whose positions are not those of their places in the text, as where several
// rows stand for one token: positions[i] is node i's.
func (f *Forest) AddAt(c *Cache, t *tree.Tree, from int, positions []int32) {
	f.add(c, t, from, positions)
}

func (f *Forest) add(c *Cache, t *tree.Tree, from int, positions []int32) {
	g := Segment{Cache: c, Base: c.Len(), From: from, Row: len(f.rows), Rows: t.Len() - from}
	if n := len(f.segs); n > 0 {
		g.samePages = c.samePages(f.segs[n-1].Cache)
	}
	f.segs = append(f.segs, g)
	for i := from; i < t.Len(); i++ {
		f.vis = t.Visible(i, f.vis[:0])
		prefix := 0
		for prefix < len(f.vis) && int(f.vis[prefix]) == prefix {
			prefix++
		}
		from := len(f.rest)
		f.rest = append(f.rest, f.vis[prefix:]...)
		position := c.Position() + int(t.Depth[i])
		if positions != nil {
			position = int(positions[i])
		}
		f.rows = append(f.rows, forestRow{position, int(t.Depth[i]), prefix, from, len(f.rest)})
	}
}

// AddReaders appends rows, so many, of another network's layers, which have queries alone
// (Attention.Reads): they see the committed rows of c, none of each other, and leave nothing in it.
// c has at least one. Their position is that of the row that follows, so a window ends one row
// before theirs: they see the last row in any case.
func (f *Forest) AddReaders(c *Cache, rows int) {
	f.segs = append(f.segs, Segment{Cache: c, Base: c.Len(), Row: len(f.rows), Rows: rows, readers: true})
	for range rows {
		f.rows = append(f.rows, forestRow{position: c.Position(), from: len(f.rest), to: len(f.rest)})
	}
}

// maxPosition is the greatest position of any row.
func (f *Forest) maxPosition() int {
	p := 0
	for i := range f.rows {
		p = max(p, f.rows[i].position)
	}
	return p
}
