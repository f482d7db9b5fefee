// Work beside a pass. A small network that chooses what a pass's last product computes should not wait for the pass, nor the pass
// for it. A region for each of its few products would cost about as much as they do; so the pass's own regions take its tasks along.

package nn

import "github.com/grovellm/grove/internal/par"

// Rider is work of several stages.
type Rider interface {
	// Stage readies the next stage, whose tasks may run on any workers, and says how many there are; 0: all stages are done. Those of the
	// stage before are.
	Stage() (tasks int, j par.Job)
}

// Ride has each of the next regions of products and attention take a stage of r along. Land must follow.
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

// region runs tasks of j, and a stage of the rider with them.
func (e *Exec) region(tasks int, j par.Job) {
	if e.rider != nil {
		n, r := e.rider.Stage()
		if n > 0 {
			e.rideJob = rideJob{r, j, n}
			e.pool.Run(n+tasks, &e.rideJob)
			return
		}
		e.rider = nil
	}
	e.pool.Run(tasks, j)
}

// rideJob is first the rider's tasks, then the region's own.
type rideJob struct {
	rider, own par.Job
	tasks      int // the rider's
}

func (r *rideJob) Do(worker, task int) {
	if task < r.tasks {
		r.rider.Do(worker, task)
	} else {
		r.own.Do(worker, task-r.tasks)
	}
}
