package nn

import "slices"

// A recurrent layer is also a cache of pages. For every row it keeps a few numbers, as attention keeps
// a key and a value: pending, moved by Commit, dropped by Truncate. It also keeps a state at the
// beginning of a page, made from all rows before it. A row's contribution and its output are computed
// from that state and from the row's ancestors on its page, in the order of positions: so they depend
// only on the path, whatever tree, chunk or round the rows came in. The first pass after the page
// before is full of committed rows makes a page's state, which never changes: forks share it.

// RecurrentShape is what recurrent layers keep, in numbers: for a row, Row numbers one after
// another and Column numbers across the page, as keys are (Column × PageRows); and State numbers at
// the beginning of a page. Carried layers also keep the state after the rows that were committed when
// the last pass began, from which the next one goes on. All recurrent layers of a network have the same shape.
type RecurrentShape struct {
	Row, Column, State int
	Carried            bool
}

// recurrent returns the shape of a layer, nil for an attention layer.
func (p *Pages) recurrent(layer int) *RecurrentShape {
	if p.Recurrent == nil {
		return nil
	}
	return p.Recurrent[layer]
}

// stateShare sets how much memory the states kept for Truncate take: one part in stateShare of that
// of keys and values. With 4 instead of 8, twice as many states are kept.
const stateShare = 8

// prepareStates sizes the pools of recurrent layers.
func (p *Pages) prepareStates() {
	for _, shape := range p.Recurrent {
		if shape != nil {
			p.kept = *shape
		}
	}
	rows, r := &p.pools[recurrentRows], p.kept
	rows.bytes = rows.layers * (r.Row + r.Column) * PageRows * 4
	p.pools[states].layers = rows.layers
	p.pools[states].bytes = rows.layers * r.State * 4
	p.zeros = make([]float32, r.State)
	p.spacing = 1
	for page := p.attentionBytes() * PageRows; p.spacing*page < stateShare*p.pools[states].bytes; p.spacing *= 2 {
		if p.spacing == 1<<10 { // 32,768 rows: there is little or no attention
			break
		}
	}
}

// StateBytes is the memory of one state of all recurrent layers, or 0 if there are none.
func (p *Pages) StateBytes() int { return p.pools[states].bytes }

// statesBytes is the most memory that recurrent layers need for a text of the given rows: rows of a pass and of
// its first page; the states before and after these, the one that KeepState keeps, and those at even spaces.
func (p *Pages) statesBytes(rows, pass int) int64 {
	page, kept := int64(p.pools[recurrentRows].bytes), 3+rows/(p.spacing*PageRows)
	if p.kept.Carried {
		kept += 2
	}
	return page*int64(pagesFor(min(rows, pass))+1) + int64(p.pools[states].bytes)*int64(kept)
}

// moveRecurrent copies row src of a page to row dst of a page.
func (p *Pages) moveRecurrent(to []float32, dst int, from []float32, src int) {
	r := p.kept
	for size := (r.Row + r.Column) * PageRows; len(to) > 0; to, from = to[size:], from[size:] {
		copy(to[dst*r.Row:(dst+1)*r.Row], from[src*r.Row:])
		for i := r.Row * PageRows; i < size; i += PageRows {
			to[i+dst] = from[i+src]
		}
	}
}

// stateList is the states of a cache.
type stateList struct {
	at     []*page // for each page, the state before it; nil: it is not kept, or is zeros
	origin int     // the page whose state is zeros, if it is not in at
	mark   int     // the page that KeepState chose
	making []making

	// Of carried layers: the state after as many rows, and the one that the current pass makes.
	latest, next *page
	rows         int
}

// making is a state that the current pass makes.
type making struct {
	page  int
	state *page
}

func (s stateList) fork() stateList {
	s.at = sharePages(s.at)
	s.making, s.next = nil, nil
	if s.latest != nil {
		s.latest.refs.Add(1)
	}
	return s
}

// firstPage returns the page where the next pass begins: it has the last state, and rows from it on are kept.
func (c *Cache) firstPage() int {
	for i := min(c.len/PageRows, len(c.states.at)-1); i > c.states.origin; i-- {
		if c.states.at[i] != nil {
			return i
		}
	}
	return c.states.origin
}

// KeepState keeps the last state at or before the last row until it is called again, so that
// another text can continue from about here.
func (c *Cache) KeepState() { c.states.mark = max(0, c.len-1) / PageRows }

// States returns how many states of all recurrent layers the cache has.
func (c *Cache) States() (n int) {
	for _, state := range append(slices.Clone(c.states.at), c.states.latest, c.states.next) {
		if state != nil {
			n++
		}
	}
	return n + len(c.states.making)
}

// keeps reports whether the state before a page is kept as the text continues.
func (c *Cache) keeps(page int) bool { return page%c.mem.spacing == 0 || page == c.states.mark }

// reachState returns the most rows, at most n, after which recurrent layers can still compute the next row.
func (c *Cache) reachState(n int) int {
	if c.mem.StateBytes() == 0 || n >= c.firstPage()*PageRows {
		return n
	}
	for i := n / PageRows; i > c.states.origin; i-- {
		if c.states.at[i] != nil {
			return i * PageRows
		}
	}
	return 0
}

// truncateStates drops states that lie beyond the last row, and those being made.
func (c *Cache) truncateStates() {
	s := &c.states
	c.dropMaking()
	for last := c.len / PageRows; len(s.at) > last+1; s.at = s.at[:len(s.at)-1] {
		c.mem.put(s.at[len(s.at)-1])
	}
	if c.len/PageRows < s.origin || c.len == 0 {
		s.origin = 0
	}
	if s.rows > c.len {
		c.setLatest(nil, 0)
	}
}

func (c *Cache) dropMaking() {
	s := &c.states
	for _, m := range s.making {
		c.mem.put(m.state)
	}
	s.making = s.making[:0]
	if s.next != nil {
		c.mem.put(s.next)
		s.next = nil
	}
}

// setLatest replaces the state after the latest rows.
func (c *Cache) setLatest(state *page, rows int) {
	s := &c.states
	if s.latest != nil {
		c.mem.put(s.latest)
	}
	s.latest, s.rows = state, rows
}

// reserveStates makes room for the states that the next pass makes: the one before the page where
// it begins, and those to be kept between the last state and that one. If it keeps no pending rows,
// no earlier pass has made them.
func (c *Cache) reserveStates(kept int) {
	if c.mem.StateBytes() == 0 {
		return
	}
	if kept == 0 {
		c.dropMaking()
	}
	if len(c.states.making) > 0 || c.states.next != nil || c.pending == 0 {
		return
	}
	last := c.len / PageRows
	if c.mem.kept.Carried && c.len%PageRows > 0 && c.states.rows != c.len {
		c.states.next = c.get(states)
	}
	for i := c.firstPage() + 1; i <= last; i++ {
		if i == last || c.keeps(i) {
			c.states.making = append(c.states.making, making{i, c.get(states)})
		}
	}
}

// adoptStates takes over the states that the last pass made.
func (c *Cache) adoptStates() {
	s := &c.states
	for _, m := range s.making {
		for len(s.at) <= m.page {
			s.at = append(s.at, nil)
		}
		s.at[m.page] = m.state
	}
	s.making = s.making[:0]
	if s.next != nil {
		c.setLatest(s.next, c.len)
		s.next = nil
	}
}

// freeStates frees rows and states that no pass needs any longer.
func (c *Cache) freeStates() {
	if c.mem.StateBytes() == 0 {
		return
	}
	first := c.firstPage()
	rows := c.pages[recurrentRows]
	for i := first - 1; i >= 0 && i < len(rows) && rows[i] != nil; i-- {
		c.mem.put(rows[i])
		rows[i] = nil
	}
	for i, g := range c.states.at[:min(first, len(c.states.at))] {
		if g != nil && !c.keeps(i) {
			c.mem.put(g)
			c.states.at[i] = nil
		}
	}
}

// slideStates drops pages [first, last) of a text that slides. If the last state is among them, the
// text read before is forgotten.
func (c *Cache) slideStates(first, last int) {
	s := &c.states
	c.dropMaking()
	c.setLatest(nil, 0)
	if c.mem.StateBytes() == 0 {
		return
	}
	if c.firstPage() < last {
		s.origin = first
	} else {
		s.origin = max(0, s.origin-(last-first))
	}
	for i := first; i < min(last, len(s.at)); i++ {
		c.mem.put(s.at[i])
	}
	s.at = slices.Delete(s.at, min(first, len(s.at)), min(last, len(s.at)))
	s.mark = max(0, s.mark-(last-first))
}

// row returns the numbers that a recurrent layer keeps for a row, in the order of slots.
func (c *Cache) row(layer, slot int) []float32 {
	r := c.mem.kept
	g, layer := c.at(layer, 0, slot/PageRows)
	o := layer*(r.Row+r.Column)*PageRows + slot%PageRows*r.Row
	return g.data[o : o+r.Row]
}

// columns returns the numbers of page i that lie across it: Column × PageRows.
func (c *Cache) columns(layer, i int) []float32 {
	r := c.mem.kept
	g, layer := c.at(layer, 0, i)
	o := (layer*(r.Row+r.Column) + r.Row) * PageRows
	return g.data[o : o+r.Column*PageRows]
}

// stateAt returns the state of a layer in a page of states; nil: zeros.
func (c *Cache) stateAt(layer int, g *page) []float32 {
	if g == nil {
		return c.mem.zeros
	}
	size := c.mem.kept.State
	o := c.mem.place[layer].at * size
	return g.data[o : o+size]
}

// firstState returns the state of a layer that the next pass begins with: the one before firstPage.
func (c *Cache) firstState(layer int) []float32 {
	if i := c.firstPage(); i < len(c.states.at) {
		return c.stateAt(layer, c.states.at[i])
	}
	return c.mem.zeros
}
