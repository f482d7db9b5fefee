package nn

// walk is the order in which layers with a state compute the rows of a forest: for each sequence, first the
// pages that have filled up since its last state, then the rows of its tree, page by page. After a page,
// the tree may have several branches; each has its own state there, made from the page's rows on its path.
type walk struct {
	steps  []walkStep
	first  []int // for each segment, its first step
	rows   []walkRow
	slots  []int32
	states int // the number needed at a time, besides the cache's own
}

// walkStep makes a state, or takes one, and computes the rows that begin with it. States are
// numbered; 0 is the cache's own.
type walkStep struct {
	from, to   int // state to is made from state from, unless both are 0
	fold       int // and from the rows of walk.slots from there on, as many as a page has; −1: from none
	page       int // the page before which the cache gets the state, if it needs one there
	row0, row1 int // the rows of walk.rows
}

// walkRow is a row and the slots of its ancestors on its page, in order of position; the last is its own.
type walkRow struct{ row, at, n int }

// walk returns the walk of the forest, made once.
func (f *Forest) walk() *walk {
	w := &f.walked
	if len(w.first) > 0 {
		return w
	}
	for s := range f.segs {
		g := &f.segs[s]
		w.first = append(w.first, len(w.steps))
		state, last := 0, g.Base/PageRows
		for page := g.Cache.firstPage(); page < last; page++ {
			step := walkStep{from: state, to: 1, fold: len(w.slots), page: page + 1}
			for i := range PageRows {
				w.slots = append(w.slots, int32(page*PageRows+i))
			}
			w.steps = append(w.steps, step)
			state = 1
			w.states = max(w.states, 1)
		}
		rows := make([]int32, g.Rows)
		for i := range rows {
			rows[i] = int32(g.Row + i)
		}
		w.visit(f, g, last, walkStep{from: state, to: state, fold: -1}, rows)
	}
	w.first = append(w.first, len(w.steps))
	return w
}

// visit adds the steps of rows on a page and after it, which begin with the state that step makes.
func (w *walk) visit(f *Forest, g *Segment, page int, step walkStep, rows []int32) {
	step.row0 = len(w.rows)
	var behind []int32
	for _, i := range rows {
		r := f.rows[i]
		if own := g.end(r) - 1; own/PageRows > page {
			behind = append(behind, i)
		} else {
			at := len(w.slots)
			w.slots = g.appendSlots(f, r, page*PageRows, own+1, w.slots)
			w.rows = append(w.rows, walkRow{int(i), at, len(w.slots) - at})
		}
	}
	step.row1 = len(w.rows)
	w.steps = append(w.steps, step)
	for len(behind) > 0 {
		r := f.rows[behind[0]]
		last := g.slotOf(f, r, (page+1)*PageRows-1)
		var branch, others []int32
		for _, i := range behind {
			if g.slotOf(f, f.rows[i], (page+1)*PageRows-1) == last {
				branch = append(branch, i)
			} else {
				others = append(others, i)
			}
		}
		next := walkStep{from: step.to, to: step.to + 1, fold: len(w.slots)}
		if len(others) == 0 && step.to > 0 { // nothing needs it any longer
			next.to = step.to
		}
		w.states = max(w.states, next.to)
		w.slots = g.appendSlots(f, r, page*PageRows, (page+1)*PageRows, w.slots)
		w.visit(f, g, page+1, next, branch)
		behind = others
	}
}

// appendSlots appends the slots of positions [from, to) that row r sees.
func (s *Segment) appendSlots(f *Forest, r forestRow, from, to int, slots []int32) []int32 {
	for position := from; position < to; position++ {
		slots = append(slots, int32(s.slotOf(f, r, position)))
	}
	return slots
}

// reset empties the walk.
func (w *walk) reset() {
	w.steps = w.steps[:0]
	w.first = w.first[:0]
	w.rows = w.rows[:0]
	w.slots = w.slots[:0]
	w.states = 0
}
