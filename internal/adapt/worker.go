package adapt

import (
	"errors"
	"log/slog"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/grovellm/grove/internal/drafters/learn"
	"github.com/grovellm/grove/internal/kernels/par"
)

// task is the worker's task for the texts of some queries.
type task struct {
	action  Action // the update; Skip: see judgeAndLearn
	texts   []*learn.Example
	queries int
	learn   bool // the account allows an update

	trend trend // see bandit.served
}

func (t *task) empty() bool { return len(t.texts) == 0 && t.trend == still }

// worker trains and judges. One goroutine uses it at a time: see Adapter.busy. It locks the adapter
// for the fields that the lock protects.
type worker struct {
	a       *Adapter
	rng     *rand.Rand
	student *learn.Student // made when first needed
	used    learn.State    // the student's state when it made the head in use, unless that is the first
	replay  []*learn.Example
	judged  judged
	slower  int // halvings of the learning rate, at most slowest
	good    *checkpoint
	updates int
}

// checkpoint is a head that did well, with the student's state.
type checkpoint struct {
	state learn.State
	head  learn.Head
}

// ready returns the student.
func (w *worker) ready() (*learn.Student, error) {
	if w.student != nil {
		return w.student, nil
	}
	s, err := learn.NewStudent(w.a.first, w.a.o.Threads)
	if err == nil {
		w.student = s
	}
	return s, err
}

func (w *worker) reset() error {
	w.replay = nil
	w.judged = judged{}
	w.good = nil
	w.slower = 0
	if w.student == nil {
		return nil
	}
	return w.student.Reset()
}

func (w *worker) close() {
	if w.student != nil {
		w.student.Close()
	}
}

// run does a task. An error ends learning, and decoding goes on with the head as it is. An error of the disk does not:
// the next save has everything.
func (w *worker) run(t task) {
	m, updates := startMeter(w.a), w.updates
	err := w.do(t)
	w.charge(m, w.updates > updates)
	if err == nil && w.updates > updates && w.updates%saveEvery == 0 {
		if err := w.a.save(); err != nil {
			slog.Error("adapt: what was learned could not be saved", "error", err)
		}
	}
	if err != nil {
		slog.Error("adapt: learning ends until the model is loaded again", "error", err)
		w.count(func(s *Stats) { s.Error = "adapt: " + err.Error() })
	}
}

// do runs a task. A panic becomes an error, which ends learning and nothing else.
func (w *worker) do(t task) (err error) {
	defer par.Recover("an update of the head", &err)
	s, err := w.ready()
	if err != nil {
		return err
	}
	if err := w.watch(s, t.trend); err != nil {
		return err
	}
	switch {
	case len(t.texts) == 0:
		return nil
	case t.action == Skip:
		return w.judgeAndLearn(s, t)
	}
	sound, err := w.update(s, t.action, t.texts)
	if err != nil {
		return err
	}
	if !sound {
		return w.restore(s)
	}
	h, err := s.Packed()
	if err == nil {
		w.use(s, h)
	}
	return err
}

// count updates the statistics.
func (w *worker) count(f func(*Stats)) {
	w.a.mu.Lock()
	defer w.a.mu.Unlock()
	f(&w.a.stats)
}

// charge books the cost of a task. updated says that it had an update.
func (w *worker) charge(m meter, updated bool) {
	a, j := w.a, &w.judged
	processors, lost := m.read(a)
	a.mu.Lock()
	defer a.mu.Unlock()
	a.stats.Seconds += processors
	a.stats.Gain = j.over.least()
	a.judging = j.candidate != nil && j.trials < fewest
	a.account.Lost += lost
	if updated {
		a.account.Price = max(lost, leastPrice)
	}
	if a.o.Wait {
		a.bandit.Before.Seconds += lost
	}
}

// saveEvery is the number of updates after which the state is saved.
const saveEvery = 16

// update makes the student learn from texts. If it returns false, the student's weights cannot be used.
func (w *worker) update(s *learn.Student, action Action, texts []*learn.Example) (sound bool, err error) {
	w.replay = w.a.keep(append(w.replay, texts...))
	w.replay = slices.Delete(w.replay, 0, max(0, len(w.replay)-w.a.o.Replay))
	err = w.train(s, action, texts)
	sound = err == nil
	if errors.Is(err, learn.ErrDiverged) {
		err = nil
	}
	now := s.State()
	sound = sound && now.Sound()
	w.updates++
	w.count(func(s *Stats) {
		s.Updates[action]++
		if err == nil && !sound {
			s.Refused++
		}
	})
	return sound, err
}

// train takes the steps of an update.
func (w *worker) train(s *learn.Student, action Action, texts []*learn.Example) error {
	o := w.study(action)
	for i := range w.a.o.Steps[action] {
		from := texts
		if i > 0 {
			from = w.replay
		}
		if err := s.Learn(learn.Draw(w.rng, from, w.a.o.Rounds), o); err != nil {
			return err
		}
	}
	return nil
}

// study returns the adapter's study, at the rate as halved by judgements.
func (w *worker) study(action Action) learn.Study {
	o := w.a.study(action)
	o.Rate = float32(math.Ldexp(float64(o.Rate), -w.slower))
	return o
}

// use puts the student's head into use.
func (w *worker) use(s *learn.Student, h learn.Head) {
	w.used = s.Save(w.used)
	w.a.use(h)
}

// restore gives the student the weights in use.
func (w *worker) restore(s *learn.Student) error {
	if w.a.now() == w.a.first {
		return s.Reset()
	}
	s.Load(w.used)
	return nil
}

// goBack puts a checkpoint into use, or the first head if the checkpoint is nil.
func (w *worker) goBack(s *learn.Student, c *checkpoint) error {
	if c == nil {
		w.a.use(w.a.first)
		return s.Reset()
	}
	s.Load(c.state)
	w.use(s, c.head)
	return nil
}

// watch is the paper's fail-safe (section 3.4), at the end of an interval. If accepted length fell as
// many consecutive times as it allows, the last good checkpoint comes back. That is the head of the
// interval from which it fell: none since did better.
func (w *worker) watch(s *learn.Student, now trend) error {
	a := w.a
	switch now {
	case held:
		if a.now() == a.first {
			w.good = nil
			return nil
		}
		if w.good == nil {
			w.good = new(checkpoint)
		}
		w.good.state, w.good.head = s.Save(w.good.state), a.now()
	case failed:
		a.mu.Lock()
		a.bandit.rolledBack()
		a.filled = [actions]filling{}
		a.stats.Rollbacks++
		a.mu.Unlock()
		w.replay = nil
		return w.goBack(s, w.good)
	}
	return nil
}
