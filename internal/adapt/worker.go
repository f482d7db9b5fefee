package adapt

import (
	"errors"
	"math/rand/v2"
	"slices"

	"github.com/grovellm/grove/internal/learn"
)

// task is what the worker is to do: judge an update, make one, or both.
type task struct {
	judge   *event
	judgeOn []*learn.Lesson

	update Action
	event  *event // the update's; nil: nobody judges it
	texts  []*learn.Lesson
	signal float64
}

func (t *task) empty() bool { return t.judge == nil && t.update == Skip }

// worker trains and judges. One goroutine uses it at a time: see Adapter.busy. It locks the adapter
// for the fields that the lock protects.
//
// Between tasks the student has the weights of the head in use: an update that is not used restores
// them.
type worker struct {
	a        *Adapter
	rng      *rand.Rand
	student  *learn.Student // made when first needed
	replay   []*learn.Lesson
	rollback rollback
	before   learn.State // of the update under way
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
	w.replay, w.rollback = nil, rollback{}
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

// run does a task. An error ends learning: decoding goes on with the head as it is.
func (w *worker) run(t task) {
	if err := w.do(t); err != nil {
		w.a.mu.Lock()
		w.a.stats.Error = "adapt: " + err.Error()
		w.a.mu.Unlock()
	}
}

func (w *worker) do(t task) error {
	began, wall := spent(), w.a.slow.now()
	s, err := w.ready()
	if err != nil {
		return err
	}
	if t.judge != nil {
		if err := w.judge(s, t.judge, t.judgeOn); err != nil {
			return err
		}
	}
	var worse comparison // zero: it was used
	if t.update != Skip {
		if worse, err = w.update(s, t.update, t.texts); err != nil {
			return err
		}
	}
	if w.account(t, worse, (spent() - began).Seconds(), w.a.slow.now().Sub(wall).Seconds()) {
		return w.a.save()
	}
	return nil
}

// account adds up what a task took, in seconds, and tells the bandit if its update was refused:
// worse says by how much. It reports whether the state is to be saved.
func (w *worker) account(t task, worse comparison, processor, clock float64) (save bool) {
	a := w.a
	a.mu.Lock()
	defer a.mu.Unlock()
	all := processor * float64(a.o.Threads)
	a.stats.Seconds += all
	if t.update == Skip {
		return false
	}
	a.stats.Updates[t.update]++
	if worse.gain < 0 {
		a.stats.Refused++
		if a.open == t.event {
			a.open = nil
		}
		a.bandit.reward(t.update, worse.gain, worse.error, t.signal)
	} else if t.event != nil {
		// Judging it will take about as long as judging the one before took.
		t.event.seconds = a.lost(all, clock)
		t.event.queries = 0
	}
	return (a.stats.Updates[Head]+a.stats.Updates[Full])%saveEvery == 0
}

// saveEvery is after how many updates the state is saved.
const saveEvery = 16

// update learns from texts and brings the new head into use. It refuses a head whose weights are
// not sound, or that does worse on the same texts: then worse says by how much, and the student's
// weights are restored, as they are after an error. OSD only asks for sound weights.
func (w *worker) update(s *learn.Student, action Action, texts []*learn.Lesson) (worse comparison, err error) {
	a := w.a
	w.replay = a.keep(append(w.replay, texts...))
	w.replay = slices.Delete(w.replay, 0, max(0, len(w.replay)-a.o.Replay))
	probe := learn.Draw(w.rng, texts, a.o.Judged)
	before, err := s.Score(a.now(), probe)
	if err != nil {
		return worse, err
	}
	w.before = s.Save(w.before)
	used := false
	defer func() {
		if !used {
			s.Load(w.before)
		}
	}()
	err = w.train(s, action, texts)
	if now := s.State(); errors.Is(err, learn.ErrDiverged) || err == nil && !now.Sound() {
		return comparison{gain: -1}, nil
	}
	if err != nil {
		return worse, err
	}
	h, err := s.Packed()
	if err != nil {
		return worse, err
	}
	after, err := s.Score(h, probe)
	if err != nil {
		return worse, err
	}
	if c := compare(after, before); c.surely(a.o.Minimum) && a.o.Policy != OSD {
		return c, nil
	}
	used = true
	a.use(h)
	return worse, nil
}

// train takes the steps of an update.
func (w *worker) train(s *learn.Student, action Action, texts []*learn.Lesson) error {
	o := w.a.study(action)
	for i := range w.a.o.Steps[action] {
		from := texts
		if i > 0 && w.a.o.Policy != OSD {
			from = w.replay
		}
		if err := s.Learn(learn.Draw(w.rng, from, w.a.o.Rounds), o); err != nil {
			return err
		}
	}
	return nil
}

// judge compares, on queries that followed an update, the head that it made with the one before and with the first, tells the bandit,
// and goes back where what was learned has made things worse. Without an update (Skip) it looks after a head that learned a while ago.
func (w *worker) judge(s *learn.Student, e *event, texts []*learn.Lesson) error {
	a := w.a
	b := learn.Draw(w.rng, texts, a.o.Judged)
	if b.Len() == 0 {
		return nil
	}
	score := func(h learn.Head) ([]float64, error) { return s.Score(h, b) }
	after, err := score(a.now())
	if err != nil {
		return err
	}
	first, err := score(a.first)
	if err != nil {
		return err
	}
	over := compare(after, first)
	if e.action != Skip {
		before, err := score(e.before)
		if err != nil {
			return err
		}
		a.mu.Lock()
		c := compare(after, before)
		a.bandit.Lasting.judged(c.gain, over.gain)
		share := a.bandit.Lasting.share()
		net := share*c.gain - e.seconds/(a.o.Horizon*max(a.pace, 1e-9))
		a.bandit.reward(e.action, net, share*c.error, e.signal)
		a.mu.Unlock()
	}
	a.mu.Lock()
	a.stats.Gain = over.gain
	a.mu.Unlock()
	return w.rollback.watch(w, s, over, score)
}
