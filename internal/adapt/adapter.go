package adapt

import (
	"cmp"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/grovellm/grove/internal/autograd"
	"github.com/grovellm/grove/internal/drafters/learn"
	"github.com/grovellm/grove/internal/kernels/fineclock"
)

// Policy decides when to learn.
type Policy string

const (
	Judged Policy = "judged" // weights serve once they are judged better, within an account: the default
	Bandit Policy = "bandit" // SpecBlock, section 3.4: Algorithm 1 with the numbers of its Appendix A.3
	// Online Speculative Decoding: an update of all weights every eight queries, from rejected positions
	OSD    Policy = "osd"
	Always Policy = "always" // an update of all weights after every query: SpecBlock, Table 2, without the bandit
)

var policies = []Policy{Judged, Bandit, OSD, Always}

// Options of an Adapter.
type Options struct {
	Policy  Policy
	Threads int    // workers of updates; 0: one
	Dir     string // folder that keeps what was learned across restarts, one file per head; empty: it is not kept
	Memory  int    // most bytes of texts that are kept to learn from; 0: DefaultMemory
	Seed    uint64

	// Wait makes the end of a query wait for the update that it begins. In studies of learning, the
	// results then do not depend on how fast the machine is.
	Wait bool

	// Workers are those that decode. While an update runs, as many of them rest as it has workers of
	// its own: it then has processors, and decoding is not held up by workers that wait for one.
	// Nil: none rest.
	Workers Workers

	Tuning
}

// DefaultMemory is the default of Options.Memory. A row of an 8B target with five taps takes 80 KB.
const DefaultMemory = 1 << 30

const (
	mostCollecting = 4 // running sequences whose text is kept

	// textLists is the number of lists of texts. Each may use an equal part of Options.Memory. There
	// is one for each running sequence, three buffers, texts judged but not learned from, older
	// texts, and one that the running task has taken over.
	textLists = mostCollecting + 6
)

// Workers are a pool; see package par.
type Workers interface {
	Threads() int
	Spare(processors int) // spare so many more than before, or fewer if negative
}

// Tuning has numbers that no paper gives. The zero value stands for DefaultTuning.
type Tuning struct {
	Steps    [actions]int     // of the optimiser in an update: the first on new texts, the others on older ones too
	Rate     [actions]float32 // of AdamW
	Rounds   int              // of a step
	Replay   int              // texts of older queries that are kept
	Keep     float32          // λ: the weight of the divergence from the original head
	Gamma    float64          // see learn.Study
	Mean     float32          // see learn.Study
	Judged   int              // most rounds of a judgement
	Share    float64          // of decoding time that learning may cost
	Reinvest float64          // the part of the gain of the head in use that learning may cost in addition
}

// DefaultTuning returns the numbers in use.
func DefaultTuning() Tuning {
	return Tuning{
		Steps: [actions]int{Head: 3, Full: 4}, Rate: [actions]float32{Head: 2e-3, Full: 1.2e-3},
		Rounds: 64, Replay: 48, Keep: 0.01, Gamma: 4, Mean: .9, Judged: 96, Share: .01, Reinvest: .5,
	}
}

// Adapter is a drafter's head that learns. Any number of goroutines may use it.
type Adapter struct {
	o     Options
	vocab int
	first learn.Head
	head  atomic.Pointer[learn.Head] // to draft with

	// mu protects the fields below. Decoding locks it, so it must not be held while weights are
	// computed or a file is written.
	mu         sync.Mutex
	account    Account
	judging    bool // the student must be judged before it learns again
	bandit     bandit
	rng        *rand.Rand
	frozen     bool
	collecting int // running sequences whose text is kept
	filled     [actions]filling
	stats      Stats
	closed     bool
	busy       bool      // a goroutine uses the worker; it resets busy
	idle       sync.Cond // busy became false

	running atomic.Bool // an update is running, on workers of its own
	slow    slowdown

	work  worker
	state stateFile
}

// filling is the buffer of an action.
type filling struct {
	texts   []*learn.Example
	queries int
}

// Stats describe what was learned and what it cost.
type Stats struct {
	Queries   int          `json:"queries"`
	Rejected  int          `json:"rejected"`  // positions
	Updates   [actions]int `json:"updates"`   // of the last part, and of all weights
	Refused   int          `json:"refused"`   // updates whose weights were not sound
	Adopted   int          `json:"adopted"`   // times that weights came into use because they were judged better
	Returned  int          `json:"returned"`  // times that weights were given up because they were judged worse
	Rollbacks int          `json:"rollbacks"` // times that weights in use were taken out of use
	Seconds   float64      `json:"seconds"`   // processor time of learning
	Slowdown  float64      `json:"slowdown"`  // share of its time that decoding loses while a task runs
	// relative gain of expected accepted length over the first head's, less its standard error; 0 or more
	Gain float64 `json:"gain"`

	Account

	Value [actions]float64 `json:"value"`           // v of the bandit
	Error string           `json:"error,omitempty"` // what ended learning, if anything did
}

// New makes an adapter that begins with a head. If Options.Dir has a state of that head, it goes on
// from there. The adapter locks that state until Close: New fails if another adapter has it.
func New(first learn.Head, vocab int, o Options) (*Adapter, error) {
	o.Policy = cmp.Or(o.Policy, Judged)
	switch {
	case !slices.Contains(policies, o.Policy):
		return nil, fmt.Errorf("adapt: Policy is %q: want one of %q", o.Policy, policies)
	case o.Threads < 0:
		return nil, fmt.Errorf("adapt: Threads is %d: want 1 or more, or 0 for one", o.Threads)
	case o.Memory < 0:
		return nil, fmt.Errorf("adapt: Memory is %d bytes: want 1 or more, or 0 for %d", o.Memory, DefaultMemory)
	}
	if o.Tuning == (Tuning{}) {
		o.Tuning = DefaultTuning()
	}
	o.Threads, o.Memory = max(o.Threads, 1), cmp.Or(o.Memory, DefaultMemory)
	a := &Adapter{o: o, vocab: vocab, first: first, bandit: newBandit(),
		rng: rand.New(rand.NewPCG(o.Seed, 0x6164617074))}
	a.head.Store(&first)
	a.idle.L = &a.mu
	a.slow.now = fineclock.Now
	a.work.a, a.work.rng = a, rand.New(rand.NewPCG(o.Seed, 0x776f726b))
	if o.Dir == "" {
		return a, nil
	}
	err := a.state.open(o.Dir, first)
	if err == nil {
		err = a.load()
	}
	if err != nil {
		a.work.close()
		return nil, errors.Join(err, a.state.close())
	}
	return a, nil
}

// Head returns the head that drafters now draft with.
func (a *Adapter) Head() learn.Head { return a.now() }

func (a *Adapter) now() learn.Head { return *a.head.Load() }

// use brings a head into use.
func (a *Adapter) use(h learn.Head) { a.head.Store(&h) }

// collect reports whether the text of a query that begins now is kept. If it is, collected must follow.
func (a *Adapter) collect() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.frozen || a.closed || a.stats.Error != "" || a.collecting == mostCollecting ||
		a.o.Policy == Judged && a.account.left() <= 0 {
		return false
	}
	a.collecting++
	return true
}

func (a *Adapter) collected() {
	a.mu.Lock()
	a.collecting--
	a.mu.Unlock()
}

// Freeze stops learning, or resumes it. What was learned stays in use.
func (a *Adapter) Freeze(frozen bool) {
	a.mu.Lock()
	a.frozen = frozen
	a.mu.Unlock()
}

// Stats returns the statistics so far.
func (a *Adapter) Stats() Stats {
	a.mu.Lock()
	defer a.mu.Unlock()
	s := a.stats
	s.Value, s.Account = a.bandit.Value, a.account
	s.Slowdown = a.slow.share(a.Share())
	return s
}

// exclusive waits until no one uses the worker, then runs f, which may use it. Decoding goes on.
func (a *Adapter) exclusive(f func() error) error {
	a.mu.Lock()
	for a.busy {
		a.idle.Wait()
	}
	a.busy = true
	a.mu.Unlock()
	defer a.release()
	return f()
}

// release ends the use of the worker.
func (a *Adapter) release() {
	a.mu.Lock()
	a.busy = false
	a.mu.Unlock()
	a.idle.Broadcast()
}

// Reset forgets everything learned, in the state file too.
func (a *Adapter) Reset() error {
	return a.exclusive(func() error {
		a.mu.Lock()
		closed := a.closed
		if !closed {
			a.bandit = newBandit()
			a.account = Account{}
			a.stats = Stats{}
			a.filled = [actions]filling{}
			a.judging = false
			a.use(a.first)
		}
		a.mu.Unlock()
		if closed {
			return errors.New("adapt: Reset of an adapter that is closed: open the model again")
		}
		return errors.Join(a.work.reset(), a.save())
	})
}

// Export writes the head in use as a GGUF file of its family. A head opened from that file drafts
// the same, bit for bit.
func (a *Adapter) Export(path, name string) error { return learn.Write(path, name, a.now()) }

// Close waits for the current update, if there is one, and saves the state. Drafters can go on with
// the head as it then is.
func (a *Adapter) Close() error {
	return a.exclusive(func() error {
		a.mu.Lock()
		closed, failed := a.closed, a.stats.Error
		a.closed = true
		a.mu.Unlock()
		if closed {
			return nil
		}
		err := errors.Join(a.save(), a.state.close())
		a.work.close()
		if failed != "" {
			err = errors.Join(err, errors.New(failed))
		}
		return err
	})
}

// spare gives processors to an update, or takes them back; see par.Pool.
func (a *Adapter) spare(processors int) {
	if a.o.Workers != nil {
		a.o.Workers.Spare(processors)
	}
}

// Rest waits for the current update, if there is one.
func (a *Adapter) Rest() { _ = a.exclusive(func() error { return nil }) }

// lost returns the decoding time that work costs, from the seconds of processors and of the clock that it takes.
func (a *Adapter) lost(processors, clock float64) float64 {
	if a.o.Wait { // nothing was decoded meanwhile
		return processors / float64(a.o.Threads) * a.Share()
	}
	return clock * a.slow.share(a.Share())
}

// Share returns the share of decoding's speed that an update is assumed to cost before it is measured:
// the number of its workers over that of decoding's.
func (a *Adapter) Share() float64 {
	if a.o.Workers == nil {
		return 1
	}
	return min(1, float64(a.o.Threads)/float64(a.o.Workers.Threads()))
}

// study returns how an action's update learns. OSD has neither the divergence from the first head nor
// the mean of weights, which come from SpecBlock and grove.
func (a *Adapter) study(action Action) learn.Study {
	o := learn.Study{
		Last: action == Head, Keep: a.o.Keep, Gamma: a.o.Gamma, Mean: a.o.Mean,
		AdamW: autograd.AdamW{Rate: a.o.Rate[action], Beta1: .9, Beta2: .99, Eps: 1e-8},
	}
	if a.o.Policy == OSD {
		o.Rejected = true
		o.Keep = 0
		o.Mean = 0
	}
	return o
}
