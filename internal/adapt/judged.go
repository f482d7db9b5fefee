// The default policy: weights are judged before they serve.

package adapt

import (
	"math/rand/v2"

	"github.com/grovellm/grove/internal/drafters/learn"
)

// judged is the state of the default policy. The worker uses it.
//
// The student's weights are not those in use. Each query first judges the student, and then the
// student may learn from it. So it is judged on texts that it has not learned from.
type judged struct {
	candidate learn.Head // the student's weights; nil: the same as those in use
	over      comparison // of the head in use over the first one
	better    comparison // of the candidate over the head in use
	would     comparison // of the candidate over the first head

	fresh   []*learn.Example // texts since the last update
	since   int              // queries since the last update
	trials  int              // of these, how many judged the student
	updates int              // updates since the student came into use
}

// judgeAndLearn judges the student on the texts of so many queries. Then it learns from them if an
// update is due: after as many queries as updates were rejected, and fewest judgements.
func (w *worker) judgeAndLearn(s *learn.Student, t task) error {
	if err := w.judge(s, t.texts); err != nil {
		return err
	}
	a, j := w.a, &w.judged
	j.fresh = a.keep(append(j.fresh, t.texts...))
	j.since += t.queries
	if !t.learn || j.since < j.updates || j.candidate != nil && j.trials < fewest {
		return nil
	}
	if a.account.Price == 0 && a.o.Share < 1 { // the next task learns, if the account can pay for it
		return w.guessPrice(s, t.texts)
	}
	if gain, _ := j.better.gain(); j.candidate != nil && gain <= 0 { // and it is not likely to become better at this rate
		if err := w.returnStudent(s); err != nil {
			return err
		}
	}
	texts := j.fresh
	j.fresh = nil
	j.since = 0
	j.trials = 0
	j.updates++
	sound, err := w.update(s, Full, texts)
	if err != nil {
		return err
	}
	if !sound {
		return w.returnStudent(s)
	}
	j.candidate, err = s.Packed()
	return err
}

// guessPrice guesses the cost of the first update: it measures drafting a few rounds again, and assumes that learning
// from a round takes three times as long.
func (w *worker) guessPrice(s *learn.Student, texts []*learn.Example) error {
	a := w.a
	b := learn.Draw(rand.New(rand.NewPCG(0, 0)), texts, guessed)
	began := startMeter(a)
	if _, err := s.Score(a.now(), b); err != nil || b.Len() == 0 {
		return err
	}
	_, lost := began.read(a)
	a.mu.Lock()
	defer a.mu.Unlock()
	times := float64(3*a.o.Steps[Full]*a.o.Rounds+2*a.o.Judged) / float64(b.Len())
	a.account.Price = max(lost*times, leastPrice)
	return nil
}

// guessed is how many rounds are drafted again to guess a price.
const guessed = 8

// judge compares the student with the head in use, and that with the first one. It puts the better one into use.
func (w *worker) judge(s *learn.Student, texts []*learn.Example) error {
	a, j := w.a, &w.judged
	b := learn.Draw(w.rng, texts, a.o.Judged)
	now := a.now()
	if b.Len() == 0 || now == a.first && j.candidate == nil {
		return nil
	}
	used, err := s.Score(now, b)
	if err != nil {
		return err
	}
	first := used
	if now != a.first {
		if first, err = s.Score(a.first, b); err != nil {
			return err
		}
		j.over.add(used, first)
	}
	if j.candidate != nil {
		student, err := s.Score(j.candidate, b)
		if err != nil {
			return err
		}
		j.trials++
		j.better.add(student, used)
		j.would.add(student, first)
	}
	switch {
	case j.better.better() && !j.would.worse():
		w.use(s, j.candidate)
		j.candidate = nil
		j.over = j.would
		j.better = comparison{}
		j.updates = 0
		w.count(func(s *Stats) { s.Adopted++ })
	case j.over.worse():
		w.judged = judged{}
		w.replay = nil // the texts learned from
		w.count(func(s *Stats) { s.Rollbacks++ })
		return w.goBack(s, nil)
	case j.better.worse():
		return w.returnStudent(s)
	}
	return nil
}

// slowest is the most times that the learning rate is halved.
const slowest = 4

// returnStudent gives the student the weights in use again. From then on it learns at half the rate:
// the rate that suits a head depends on how far it has learned.
func (w *worker) returnStudent(s *learn.Student) error {
	j := &w.judged
	w.slower = min(w.slower+1, slowest)
	j.candidate = nil
	j.better = comparison{}
	j.would = j.over
	w.count(func(s *Stats) { s.Returned++ })
	return w.restore(s)
}
