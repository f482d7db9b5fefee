package nn

import "slices"

// A recurrent layer is a cache of pages too. Of every row it keeps a few numbers, as attention keeps a
// key and a value: pending, moved by Commit, dropped by Truncate. And it keeps a state at the beginning of
// a page, made of all rows before it. What a row adds and what it puts out are made of that state and of the
// row's ancestors on its page, in the order of positions: so they are functions of the path alone, whatever
// tree, chunk or round the rows came in. A state is made when its page begins, by the first pass after the
// page before was full of committed rows, and it never changes: forks share it.

// RecurrentShape is what recurrent layers keep, in numbers: of a row, Row one after another and Column
// across the page, as keys are (Column × PageRows); and at the beginning of a page, State. All recurrent
// layers of a network have one shape.
type RecurrentShape struct{ Row, Column, State int }

// recurrent is the shape of a layer, nil of one of attention.
func (p *Pages) recurrent(layer int) *RecurrentShape {
	if p.Recurrent == nil {
		return nil
	}
	return p.Recurrent[layer]
}

// stateShare says how much memory states take that are kept for Truncate: a part of that of keys and
// values. Beside 8, half of it keeps twice as many states.
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
		if p.spacing == 1<<10 { // 32,768 rows: there is little attention, or none
			break
		}
	}
}

// StateBytes is the memory of a state of all recurrent layers; 0 where there are none.
func (p *Pages) StateBytes() int { return p.pools[states].bytes }

// statesBytes is the memory of what recurrent layers keep of a text of so many rows, at most: rows of a
// pass and of its first page; the states before and after that, the one that KeepState keeps, and those at even spaces.
func (p *Pages) statesBytes(rows, pass int) int64 {
	page := int64(p.pools[recurrentRows].bytes)
	return page*int64(pagesFor(min(rows, pass))+1) + int64(p.pools[states].bytes)*int64(3+rows/(p.spacing*PageRows))
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

// stateList is the states that a cache has.
type stateList struct {
	at     []*page // of each page, the state before it; nil: it is not kept, or is zeros
	origin int     // the page whose state is zeros, if it is not in at
	mark   int     // the page that KeepState chose
	making []making
}

// making is a state that the pass under way makes.
type making struct {
	page  int
	state *page
}

func (s stateList) fork() stateList {
	s.at = sharePages(s.at)
	s.making = nil
	return s
}

// firstPage is the page that the next pass begins at: it has the last state, and rows from it on are kept.
func (c *Cache) firstPage() int {
	for i := min(c.len/PageRows, len(c.states.at)-1); i > c.states.origin; i-- {
		if c.states.at[i] != nil {
			return i
		}
	}
	return c.states.origin
}

// KeepState keeps the state before the last row, or nearest before it, until it is called again: so that
// another text can go on from about here.
func (c *Cache) KeepState() { c.states.mark = max(0, c.len-1) / PageRows }

// States is how many states of all recurrent layers the cache has.
func (c *Cache) States() (n int) {
	for _, state := range c.states.at {
		if state != nil {
			n++
		}
	}
	return n + len(c.states.making)
}

// keeps says that the state before a page is kept when texts go on.
func (c *Cache) keeps(page int) bool { return page%c.mem.spacing == 0 || page == c.states.mark }

// reachState is the most rows, n at most, after which the next row has what it needs of recurrent layers.
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

// truncateStates drops states that are behind the last row, and those that were being made.
func (c *Cache) truncateStates() {
	s := &c.states
	c.dropMaking()
	for last := c.len / PageRows; len(s.at) > last+1; s.at = s.at[:len(s.at)-1] {
		c.mem.put(s.at[len(s.at)-1])
	}
	if c.len/PageRows < s.origin || c.len == 0 {
		s.origin = 0
	}
}

func (c *Cache) dropMaking() {
	for _, m := range c.states.making {
		c.mem.put(m.state)
	}
	c.states.making = c.states.making[:0]
}

// reserveStates makes room for states that the next pass makes: the one before the page on which it
// begins, and of those between the last state and that one the ones that are to be kept. Where it keeps no
// pending rows, no earlier pass has made them.
func (c *Cache) reserveStates(kept int) {
	if c.mem.StateBytes() == 0 {
		return
	}
	if kept == 0 {
		c.dropMaking()
	}
	if len(c.states.making) > 0 || c.pending == 0 {
		return
	}
	last := c.len / PageRows
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
}

// freeStates frees rows and states that no pass needs any more.
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

// slideStates drops pages [first, last) of a text that slides. If the last state is among them, what was
// read before is forgotten.
func (c *Cache) slideStates(first, last int) {
	s := &c.states
	c.dropMaking()
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

// row is the numbers that a recurrent layer keeps of a row, in slot order.
func (c *Cache) row(layer, slot int) []float32 {
	r := c.mem.kept
	g, layer := c.at(layer, slot/PageRows)
	o := layer*(r.Row+r.Column)*PageRows + slot%PageRows*r.Row
	return g.data[o : o+r.Row]
}

// columns is the numbers of page i that lie across it: Column × PageRows.
func (c *Cache) columns(layer, i int) []float32 {
	r := c.mem.kept
	g, layer := c.at(layer, i)
	o := (layer*(r.Row+r.Column) + r.Row) * PageRows
	return g.data[o : o+r.Column*PageRows]
}

// stateAt is the state of a layer in a page of states; nil: zeros.
func (c *Cache) stateAt(layer int, g *page) []float32 {
	if g == nil {
		return c.mem.zeros
	}
	size := c.mem.kept.State
	o := c.mem.place[layer].layer * size
	return g.data[o : o+size]
}

// firstState is the state of a layer that the next pass begins with: that before firstPage.
func (c *Cache) firstState(layer int) []float32 {
	if i := c.firstPage(); i < len(c.states.at) {
		return c.stateAt(layer, c.states.at[i])
	}
	return c.mem.zeros
}
