package adapt

import (
	"math/rand/v2"

	"github.com/grovellm/grove/draft/learn"
)

// task is what the worker is to do: judge an update, make one, or both.
type task struct {
	judge *event
	heard []*learn.Lesson

	update  Action
	event   *event // the update's; nil: nobody judges it
	lessons []*learn.Lesson
	signal  float64
}

func (t *task) empty() bool { return t.judge == nil && t.update == Skip }

// worker does what takes long. Of the adapter it touches, but for its own, what the adapter's lock guards, with the lock.
type worker struct {
	a       *Adapter
	rng     *rand.Rand
	student *learn.Student // made when first needed
	replay  []*learn.Lesson
	guard   guard
	before  learn.State // of the update under way

	seconds float64 // a query decodes, on average; under the adapter's lock
}

// pace takes the time that a query's rounds took.
func (w *worker) pace(seconds float64) {
	if w.seconds == 0 {
		w.seconds = seconds
	}
	w.seconds += paceMemory * (seconds - w.seconds)
}

const paceMemory = .1

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
	w.replay, w.guard, w.seconds = nil, guard{}, 0
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
		if err := w.judge(s, t.judge, t.heard); err != nil {
			return err
		}
	}
	var worse comparison // zero: it was used
	if t.update != Skip {
		if worse, err = w.update(s, t.update, t.lessons); err != nil {
			return err
		}
	}
	a := w.a
	a.mu.Lock()
	defer a.mu.Unlock()
	all := (spent() - began).Seconds() * float64(a.o.Threads)
	a.stats.Seconds += all
	if t.update != Skip {
		a.stats.Updates[t.update]++
	}
	if worse.gain < 0 {
		a.stats.Refused++
		if a.open == t.event {
			a.open = nil
		}
		a.bandit.reward(t.update, worse.gain, worse.error, t.signal)
	} else if t.event != nil {
		// Judging it will take about as long as judging the one before took.
		t.event.seconds = a.lost(all, a.slow.now().Sub(wall).Seconds())
		t.event.queries = 0
	}
	if n := a.stats.Updates[Head] + a.stats.Updates[Full]; t.update != Skip && n%saveEvery == 0 {
		return a.save()
	}
	return nil
}

// saveEvery is after how many updates the state is saved.
const saveEvery = 16

// update learns from lessons and brings the outcome into use, unless it does worse on these very lessons: then the student goes back to what
// it was, and worse says by how much. OSD asks no questions.
func (w *worker) update(s *learn.Student, action Action, lessons []*learn.Lesson) (worse comparison, err error) {
	a, o := w.a, w.a.study(action)
	w.replay = append(w.replay, lessons...)
	w.replay = append([]*learn.Lesson(nil), w.replay[max(0, len(w.replay)-a.o.Replay):]...)
	probe := learn.Draw(w.rng, lessons, a.o.Judged)
	before, err := s.Score(a.now(), probe)
	if err != nil {
		return worse, err
	}
	w.before = s.Save(w.before)
	for i := range a.o.Steps[action] {
		from := lessons
		if i > 0 && a.o.Policy != OSD {
			from = w.replay
		}
		if err := s.Learn(learn.Draw(w.rng, from, a.o.Rounds), o); err != nil {
			return worse, err
		}
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
		s.Load(w.before)
		return c, nil
	}
	a.use(h)
	return worse, nil
}

// judge compares, on queries that followed an update, the head that it made with the one before and with the first, tells the bandit,
// and goes back where what was learned has made things worse. Without an update (Skip) it looks after a head that learned a while ago.
func (w *worker) judge(s *learn.Student, e *event, heard []*learn.Lesson) error {
	a := w.a
	b := learn.Draw(w.rng, heard, a.o.Judged)
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
		net := share*c.gain - e.seconds/(a.o.Horizon*max(w.seconds, 1e-9))
		a.bandit.reward(e.action, net, share*c.error, e.signal)
		a.mu.Unlock()
	}
	a.mu.Lock()
	a.stats.Gain = over.gain
	a.mu.Unlock()
	return w.guard.watch(w, s, over, score)
}
