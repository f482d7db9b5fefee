package adapt

import (
	"github.com/grovellm/grove/draft"
	"github.com/grovellm/grove/internal/drafters/learn"
	"github.com/grovellm/grove/internal/files/safetensors"
)

// BeforeWrites makes every write of the state file call f first, whose error is the write's.
func (a *Adapter) BeforeWrites(f func() error) {
	write := a.state.write
	a.state.write = func(path string, w *safetensors.Writer) error {
		if err := f(); err != nil {
			return err
		}
		return write(path, w)
	}
}

// FullRate is the learning rate of the next full update. Nothing may be learning meanwhile.
func (a *Adapter) FullRate() float32 { return a.work.study(Full).Rate }

// Save writes the state file now.
func (a *Adapter) Save() error { return a.exclusive(a.save) }

// Texts returns all texts that are kept to learn from, also those of running sequences. Nothing may
// be learning meanwhile.
func (a *Adapter) Texts(sequences []draft.State) map[*learn.Example]bool {
	all := map[*learn.Example]bool{}
	lists := [][]*learn.Example{a.work.replay, a.work.judged.fresh}
	for _, f := range a.filled {
		lists = append(lists, f.texts)
	}
	for _, s := range sequences {
		lists = append(lists, s.(*state).query.texts)
	}
	for _, list := range lists {
		for _, l := range list[:cap(list)] { // what an array still points to is kept too
			if l != nil {
				all[l] = true
			}
		}
	}
	return all
}

// Interval makes an update from texts, whose head then serves for an interval in which accepted length
// is as given. It returns that head.
func (a *Adapter) Interval(texts []*learn.Example, length int) learn.Head {
	a.work.run(task{action: Full, texts: texts})
	head := a.now()
	a.bandit.begun(Full, leastTrig)
	for range interval {
		t := a.bandit.served(&query{committed: 10 * length, rounds: 10, seconds: 1}, true)
		a.work.run(task{trend: t})
	}
	return head
}
