package nn

import "github.com/grovellm/grove/internal/kernels/simd"

// Gather copies rows of src, some of them perhaps several times, to the rows of dst: row i is src's row rows[i]. Under a tape
// their gradients are added back. rows must stay as they are until then.
func (e *Exec) Gather(src Mat, rows []int32, dst Mat) {
	if e.tape != nil {
		e.tape.record(&gatherRecord{src, dst, rows})
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

type gatherRecord struct {
	src, dst Mat
	rows     []int32
}

func (r *gatherRecord) backward(*Tape) {
	dx, ok := r.src.Grad()
	dy, ok2 := r.dst.Grad()
	if !ok || !ok2 {
		return
	}
	for i, row := range r.rows {
		simd.Add(dx.Row(int(row)), dy.Row(i))
	}
}
