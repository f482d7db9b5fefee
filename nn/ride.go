// Work beside a pass. A small network that chooses what a pass's last product computes should not wait for the pass, nor the pass
// for it. A region of its own would cost about as much as it does; so the pass's next region takes its tasks along.

package nn

import "github.com/grovellm/grove/internal/par"

// Ride has the first phase of the next region take tasks of j along. Land must follow.
func (e *Exec) Ride(tasks int, j par.Job) {
	e.rider = rideJob{rider: j, tasks: tasks}
}

// Land runs the tasks if no region took them along.
func (e *Exec) Land() {
	if e.rider.own == nil && e.rider.rider != nil {
		e.pool.Run(e.rider.tasks, e.rider.rider)
	}
	e.rider = rideJob{}
}

// rideJob is a phase's own tasks with those of a rider, which are spread over them so that each worker's share has some.
type rideJob struct {
	rider, own par.Job
	tasks, all int // the rider's; with the phase's own
}

// board adds the rider's tasks to a phase, unless they are done.
func (r *rideJob) board(phase *par.Phase) {
	if r.rider == nil || r.own != nil || r.tasks <= 0 {
		return
	}
	r.own, r.all = phase.Job, phase.Tasks+r.tasks
	*phase = par.Phase{Tasks: r.all, Job: r}
}

func (r *rideJob) Do(worker, task int) {
	before, after := task*r.tasks/r.all, (task+1)*r.tasks/r.all
	if before < after {
		r.rider.Do(worker, before)
	} else {
		r.own.Do(worker, task-before)
	}
}
