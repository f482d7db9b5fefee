package nn

import "github.com/grovellm/grove/tree"

// Forest is the rows of one pass: for each sequence, a cache and a tree of new rows. The rows of a
// sequence are in the order of its tree's nodes and follow those of the previous sequence.
type Forest struct {
	segs []Segment
	rows []forestRow
	rest []int32 // the nodes of all rows' visible lists, after their prefixes
	vis  []int32 // scratch

	walked walk // the order in which layers with a state compute it
}

// Segment is one sequence's part of the forest.
type Segment struct {
	Cache     *Cache
	Base      int // committed rows before the pass
	From      int // nodes of the tree that earlier passes left pending
	Row, Rows int // its rows are [Row, Row+Rows): the nodes from number From on
	samePages int // leading pages of the cache shared with the previous sequence; 0 for readers

	readers bool // its rows are not cached: see AddReaders
}

// Slots is one past the last slot of the cache that the sequence's rows may see.
func (s *Segment) Slots() int {
	if s.readers {
		return s.Base
	}
	return s.Base + s.From + s.Rows
}

// firstSeen returns the number of positions before those that a row sees with a window, 0 for none.
// A window ends at the row's own position; a row of a block that looks both ways sees more.
func (s *Segment) firstSeen(r forestRow, a *Attention) int {
	if a.Window == 0 {
		return 0
	}
	first := s.Base + r.depth + 1 - a.Window
	if a.Chunks {
		first = (s.Base + r.depth) / a.Window * a.Window
	}
	if s.readers { // their own position has no row
		first = min(first, s.Base-1)
	}
	return max(0, first)
}

// end returns one past the last position that a row sees, which is its own.
func (s *Segment) end(r forestRow) int { return s.Base + r.prefix + r.to - r.from }

// restWithin returns the nodes numbered [from, to) after the prefix in a row's visible list, as far as they exist.
func (f *Forest) restWithin(r forestRow, from, to int) []int32 {
	rest := f.rest[r.from:r.to]
	from, to = max(from, 0), min(to, len(rest))
	return rest[min(from, max(to, 0)):max(to, 0)]
}

// sees returns which slots of a page have positions in [from, to) that a row sees, as one bit for each.
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

// forestRow is what a row sees beyond the committed rows: nodes 0..prefix−1 of its tree, which are
// already in the cache in the order of positions, then rest[from:to]. A chain is all prefix; in a
// tree the prefix is short.
type forestRow struct {
	position int
	depth    int // of the row's node: how many ancestors it has, the committed rows included
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

// Row returns the position of row i and the nodes of its tree that it sees: the first prefix nodes,
// then those of rest.
func (f *Forest) Row(i int) (position, prefix int, rest []int32) {
	r := &f.rows[i]
	return r.position, r.prefix, f.rest[r.from:r.to]
}

// Add appends the nodes of t from number from on. They will be cached after the committed rows of c
// and the earlier nodes, which are pending there.
func (f *Forest) Add(c *Cache, t *tree.Tree, from int) { f.add(c, t, from, nil) }

// AddAt is Add for nodes whose positions differ from their places in the text, as when several rows
// stand for one token: positions[i] is the position of node i.
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

// AddReaders appends rows of another network's layers that have only queries (Attention.Reads):
// they see the committed rows of c but not each other, and leave nothing in c, which must have at
// least one row. Their position is that of the next row, so a window ends one row before them: they
// see the last row in any case.
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
