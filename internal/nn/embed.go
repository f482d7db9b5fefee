package nn

// Table is a matrix whose rows are looked up, by several goroutines at a time: token embeddings, or
// a packed output head tied to them.
type Table interface {
	Row(dst []float32, i int) // widens row i into dst
}

// Embed writes the table's row of each token to the rows of dst.
func (e *Exec) Embed(t Table, tokens []int32, dst Mat) {
	if e.records != nil && e.records.Embed(t, tokens, dst) {
		return
	}
	j := e.plan.embeds.next(&e.plan)
	*j = embedJob{t, tokens, dst}
	e.OwnRows(len(tokens), rowCost*dst.Cols, j)
}

// AddPositions adds the table's row of each row's position to the rows of x. The last of the table's rows stands for
// all later positions, which only nodes of a tree can have: no text is that long.
func (e *Exec) AddPositions(t Table, rows int, f *Forest, x Mat, m *BlockBuffers) {
	m.positions = grow(m.positions, len(f.rows))
	for i := range f.rows {
		m.positions[i] = int32(min(f.rows[i].position, rows-1))
	}
	y := e.Mat(&m.perLayer, x.Rows, x.Cols)
	e.Embed(t, m.positions, y)
	e.Add(x, y)
}

// rowCost is the cost of an element of a table's row relative to that of a copied element.
const rowCost = 4

type embedJob struct {
	table  Table
	tokens []int32
	dst    Mat
}

func (j *embedJob) Do(_, i int) { j.table.Row(j.dst.Row(i), int(j.tokens[i])) }

// Gather copies rows of src, possibly some of them several times, to the rows of dst: row i is row rows[i] of src.
func (e *Exec) Gather(src Mat, rows []int32, dst Mat) {
	if e.records != nil {
		e.records.Gather(src, rows, dst)
	}
	j := e.plan.gathers.next(&e.plan)
	*j = gatherJob{src, dst, rows}
	e.PerRow(len(rows), src.Cols, j)
}

type gatherJob struct {
	src, dst Mat
	rows     []int32
}

func (j *gatherJob) Do(_, i int) { copy(j.dst.Row(i), j.src.Row(int(j.rows[i]))) }
