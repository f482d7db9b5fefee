// Work beside a pass. A small network that chooses what a pass's last product computes should not wait for the pass, nor the pass
// for it. A phase for each of its few products would cost about as much as they do; so the pass's own phases take its tasks along.

package nn

import "github.com/grovellm/grove/internal/par"

// Rider is work of several stages.
type Rider interface {
	// Stage readies the next stage, whose tasks may run on any workers, and says how many there are; 0: all stages are done. Those of the
	// stage before are. It may be called by a worker, and must not use the pool.
	Stage() (tasks int, j par.Job)
}

// Ride has the phases of the next regions take the stages of r along. Land must follow.
func (e *Exec) Ride(r Rider) { e.rider = r }

// Land runs the stages that no region took along.
func (e *Exec) Land() {
	if e.rider != nil {
		RunRider(e.pool, e.rider)
		e.rider = nil
	}
}

// RunRider runs what there is left of a rider's stages.
func RunRider(pool *par.Pool, r Rider) {
	for {
		tasks, j := r.Stage()
		if tasks == 0 {
			return
		}
		pool.Run(tasks, j)
	}
}

// board has every other phase planned take a stage of the rider along: the first what the caller readies, then each the one that a task of
// the phase between readied.
func (e *Exec) board() {
	phases := e.plan.phases
	for i := range phases {
		r := e.plan.rides.next()
		*r = rideJob{e: e, own: phases[i].Job}
		if r.readies = i%2 == 1 && i+1 < len(phases); r.readies {
			r.tasks = 1
			phases[i].Tasks++
		}
		phases[i].Job = r
	}
	e.plan.rides.all[0].ready(&phases[0], e)
	for i := 1; i+1 < len(phases); i += 2 {
		e.plan.rides.all[i].next, e.plan.rides.all[i].phase = e.plan.rides.all[i+1], &phases[i+1]
	}
}

// rideJob is a phase's own tasks after those of a rider: a stage, or one that readies the stage of the next phase.
type rideJob struct {
	e       *Exec
	own     par.Job
	tasks   int     // the rider's
	stage   par.Job // what does them
	readies bool
	next    *rideJob
	phase   *par.Phase // of next
}

// ready has the job take along a stage, if there is one more.
func (r *rideJob) ready(phase *par.Phase, e *Exec) {
	if e.rider == nil {
		return
	}
	if r.tasks, r.stage = e.rider.Stage(); r.tasks == 0 {
		e.rider = nil
	}
	phase.Tasks += r.tasks
}

func (r *rideJob) Do(worker, task int) {
	switch {
	case task >= r.tasks:
		r.own.Do(worker, task-r.tasks)
	case r.readies:
		r.next.ready(r.phase, r.e)
	default:
		r.stage.Do(worker, task)
	}
}
