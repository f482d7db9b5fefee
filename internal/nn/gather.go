package nn

// Gather copies rows of src, possibly some of them several times, to the rows of dst: row i is row rows[i] of src.
func (e *Exec) Gather(src Mat, rows []int32, dst Mat) {
	if e.records != nil {
		e.records.Gather(src, rows, dst)
	}
	j := e.plan.gathers.next()
	*j = gatherJob{src, dst, rows}
	e.PerRow(len(rows), src.Cols, j)
}

type gatherJob struct {
	src, dst Mat
	rows     []int32
}

func (j *gatherJob) Do(_, i int) { copy(j.dst.Row(i), j.src.Row(int(j.rows[i]))) }
