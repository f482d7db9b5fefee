// Work beside a pass. A small network that chooses what a pass's last product computes should not wait for the pass, nor the pass
// for it. Regions of its own would cost about as much as it does; so the phases of the pass's next region take its phases along.

package nn

import "github.com/grovellm/grove/internal/par"

// Planned hands out what was put off since a Hold, which it ends, as phases for others to run. They are good until the next operation.
func (e *Exec) Planned() []par.Phase {
	e.plan.held--
	return e.plan.take()
}

// Ride has the next region take phases along, in their order. Land must follow.
func (e *Exec) Ride(phases []par.Phase) { e.rider.phases = phases }

// Land runs the phases if no region took them along.
func (e *Exec) Land() {
	if len(e.rider.phases) > 0 {
		e.pool.RunPhases(e.rider.phases)
		e.rider.phases = nil
	}
}

// rider is phases that wait for a region, and the phases made of its own and of those.
type rider struct {
	phases []par.Phase
	rides  slots[rideJob]
}

// board adds the phases that wait to those of a region, each to one after that of the phase before, and what is left over after them.
// Rows go with anything; what takes longer goes with a product, which takes longer still.
func (r *rider) board(p *plan) {
	r.rides.used = 0
	at := 0
	for i := range p.phases {
		if at == len(r.phases) {
			break
		}
		own := &p.phases[i]
		_, product := own.Job.(*linearJob)
		_, byRows := own.Job.(*strip)
		if _, rows := r.phases[at].Job.(*blockJob); !product && !byRows && !rows {
			continue
		}
		j := r.rides.next()
		*j = rideJob{own: own.Job, rider: r.phases[at].Job, tasks: r.phases[at].Tasks, all: own.Tasks + r.phases[at].Tasks, first: !byRows}
		*own = par.Phase{Tasks: j.all, Job: j}
		at++
	}
	p.phases = append(p.phases, r.phases[at:]...)
	r.phases = nil
}

// rideJob is a phase's own tasks with those of a rider, which are spread over them so that each worker's share has some. They come before
// own tasks that are many and short, since those even out what is left, and after those that are one a worker.
type rideJob struct {
	own, rider par.Job
	tasks, all int // the rider's; with the phase's own
	first      bool
}

func (r *rideJob) Do(worker, task int) {
	round := 0
	if r.first {
		round = r.all - 1
	}
	before, after := (task*r.tasks+round)/r.all, ((task+1)*r.tasks+round)/r.all
	if before < after {
		r.rider.Do(worker, before)
	} else {
		r.own.Do(worker, task-before)
	}
}
