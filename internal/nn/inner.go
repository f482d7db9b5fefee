package nn

import "github.com/grovellm/grove/internal/kernels/gemm"

// innerRows describes what happens to the first products of an MLP: the worker that has the results
// at hand applies act and passes them to the intake of the last product, so they are not stored and
// need no phase of their own.
type innerRows struct {
	act    Activation
	xielu  *XIELU
	to     *Intake
	panels int // per unit, the columns of a task
	units  int
}

// groupPanels is the number of panels in a group of activations, which are quantised together; a unit is some groups.
const groupPanels = gemm.Group / gemm.Panel

// projectInner plans the products that make the inner rows of an MLP of src, and the product down of these.
// It reports whether it did: a few large tasks are not worthwhile if workers would wait for the last one.
func (e *Exec) projectInner(src Source, act Activation, down Proj, linears ...*Linear) bool {
	w := linears[0].W
	rows, threads := src.X.Rows, e.Threads()
	group := 0 // bytes of weights
	for _, l := range linears {
		group += gemm.PackedBytes(l.W.Type(), gemm.Group, l.W.In())
	}
	most := w.Panels() / groupPanels / (mostIdle * threads) // with more, there would be too few tasks
	panels := groupPanels * max(1, min(innerBytes/(group*(1+rows/8)), most))
	units := (w.Panels() + panels - 1) / panels
	// Parts of few rows even out, of many rows leave results in the second-level cache; but each reads the weights again.
	parts := max(1, min(rows/headRows, (innerTasks*threads+units-1)/units), rows/innerRowsMost)
	tasks := units * parts
	idle := (threads - tasks%threads) % threads
	if e.records != nil || rows == 1 || idle*mostIdle > tasks {
		return false
	}
	j, o := e.plan.linears.next(&e.plan), e.plan.linears.next(&e.plan)
	var projs [2]Proj
	for i, l := range linears {
		projs[i] = Proj{Linear: l, Dst: Mat{Rows: rows}} // its results are not stored
	}
	j.intake.Enter(e, src, j.ready(e, projs[:len(linears)]...), Mat{})
	o.intake.await(e, Source{X: Mat{Rows: rows, Cols: w.Out()}}, o.ready(e, down))
	j.inner, j.rowParts = innerRows{act: act, xielu: src.XIELU, to: &o.intake, panels: panels, units: units}, parts
	e.grow(scratchSizes{sums: len(linears) * (rows + parts - 1) / parts * panels * gemm.Panel})
	e.plan.product(j)
	e.plan.product(o)
	return true
}

const (
	innerBytes    = 512 << 10 // of a task's weights, with few rows
	innerTasks    = 8         // per worker, if there are enough rows
	innerRowsMost = 128
	mostIdle      = 16 // at most one in this many tasks may be idle time
)

// computeInner computes the columns of panels [from, to) of inner rows [r0, r1).
func (j *linearJob) computeInner(worker, r0, r1, from, to int, next gemm.Place) {
	s := &j.intake.e.scratch[worker]
	o0, o1 := from*gemm.Panel, min(to*gemm.Panel, j.projs[0].Linear.W.Out())
	var results [2]Mat
	sums := s.sums
	for i := range j.projs {
		l := j.projs[i].Linear
		a := gemm.Part{X: j.intake.Input(worker, l.W.Type()), From: r0, To: r1, P0: from, P1: to, Fetched: s.next, Next: next,
			Scratch: &s.products}
		if i+1 < len(j.projs) {
			a.Next = gemm.Place{M: j.projs[i+1].Linear.W, Panel: from}
		}
		s.next = a.Next
		results[i] = partMat(&a, o1-o0, sums)
		sums = sums[results[i].Rows*results[i].Stride:]
		l.part(&a, results[i])
	}
	all := Source{X: results[0].flat(), Act: j.inner.act, XIELU: j.inner.xielu, Up: results[1].flat()}
	all.Row(0, all.X.Data)
	for i := range results[0].Rows {
		j.inner.to.part(r0+i, o0, results[0].Row(i))
	}
}
