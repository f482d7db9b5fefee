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
