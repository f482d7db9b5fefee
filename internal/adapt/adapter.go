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

// Policy is how it is decided when to learn.
type Policy string

const (
	Judged Policy = "judged" // weights serve once they were judged better, within an account: the default
	Bandit Policy = "bandit" // SpecBlock, section 3.4: Algorithm 1 with the numbers of its Appendix A.3
	// Online Speculative Decoding: an update of all every eight queries, from rejected positions
	OSD    Policy = "osd"
	Always Policy = "always" // an update of all after every query: SpecBlock, Table 2, without the bandit
)

var policies = []Policy{Judged, Bandit, OSD, Always}

// Options of an Adapter.
type Options struct {
	Policy  Policy
	Threads int    // workers of updates; 0: one
	Dir     string // folder that keeps what was learned over restarts, in a file for each head; empty: it is not kept
	Memory  int    // bytes of texts that are kept to learn from, at most; 0: DefaultMemory
	Seed    uint64

	// Wait makes the end of a query wait for the update that it begins: for studies of what
	// learning brings, whose outcome then does not depend on how fast the machine is.
	Wait bool

	// Workers are those that decode: as many of them as an update has workers of its own rest while
	// it runs, so that it has processors and decoding is not held up by workers that wait for one.
	// Nil: they do not.
	Workers Workers

	Tuning
}

// DefaultMemory is Options.Memory where that is 0. A row of an 8B target with five taps takes 80 KB.
const DefaultMemory = 1 << 30

const (
	mostCollecting = 4 // running sequences whose text is kept

	// textLists is the number of lists of texts. Each may use an equal part of Options.Memory. They
	// are: one for each running sequence, three buffers, texts judged but not learned from, older
	// texts, and one that the running task has taken over.
	textLists = mostCollecting + 6
)

// Workers are a pool; see package par.
type Workers interface {
	Threads() int
	Spare(processors int) // more than before, or, where negative, fewer
}

// Tuning is numbers that no paper gives. The zero value stands for those of DefaultTuning.
type Tuning struct {
	Steps    [actions]int     // of the optimiser in an update: the first on new texts, the others on older ones too
	Rate     [actions]float32 // of AdamW
	Rounds   int              // of a step
	Replay   int              // texts of older queries that are kept
	Keep     float32          // λ: the weight of the divergence from the head as it was at first
	Gamma    float64          // see learn.Study
	Mean     float32          // see learn.Study
	Judged   int              // rounds of a judgement, at most
	Share    float64          // of decoding time that learning may cost
	Reinvest float64          // the part of what the head in use gains that learning may cost besides
}

// DefaultTuning are the numbers in use.
func DefaultTuning() Tuning {
	return Tuning{
		Steps: [actions]int{Head: 3, Full: 4}, Rate: [actions]float32{Head: 2e-3, Full: 1.2e-3},
		Rounds: 64, Replay: 48, Keep: 0.01, Gamma: 4, Mean: .9, Judged: 96, Share: .01, Reinvest: .5,
	}
}

// Adapter is a drafter's head that learns. Any number of goroutines use it.
type Adapter struct {
	o     Options
	vocab int
	first learn.Head
	head  atomic.Pointer[learn.Head] // to draft with

	// mu protects the fields below. Decoding locks it, so nobody holds it while weights are
	// computed or a file is written.
	mu         sync.Mutex
	account    Account
	judging    bool // the student is to be judged before it learns again
	bandit     bandit
	rng        *rand.Rand
	frozen     bool
	collecting int // running sequences whose text is kept
	filled     [actions]filling
	stats      Stats
	closed     bool
	busy       bool      // one goroutine uses the worker; it sets busy back
	idle       sync.Cond // busy became false

	running atomic.Bool // an update, on workers of its own
	slow    slowdown

	work  worker
	state stateFile
}

// filling is the buffer of an action.
type filling struct {
	texts   []*learn.Example
	queries int
}

// Stats say what was learned and what it cost.
type Stats struct {
	Queries   int          `json:"queries"`
	Rejected  int          `json:"rejected"`  // positions
	Updates   [actions]int `json:"updates"`   // of the last part, and of all
	Refused   int          `json:"refused"`   // updates whose weights were not sound
	Adopted   int          `json:"adopted"`   // times that weights came into use because they were judged better
	Returned  int          `json:"returned"`  // times that weights were given up because they were judged worse
	Rollbacks int          `json:"rollbacks"` // times that weights in use were taken out of use
	Seconds   float64      `json:"seconds"`   // of processors that learning took
	Slowdown  float64      `json:"slowdown"`  // share of its time that decoding loses while a task runs
	// expected accepted length over the first head's, less its standard error; 0 or more
	Gain float64 `json:"gain"`

	Account

	Value [actions]float64 `json:"value"`           // v of the bandit
	Error string           `json:"error,omitempty"` // what ended learning, if anything did
}

// New makes an adapter that begins with a head. Where Options.Dir has a state of that head, it goes
// on from there. The adapter locks that state until Close: New fails where another has it.
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

// Head is what drafters draft with now.
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

// Freeze stops learning, and goes on with it: what was learned stays in use.
func (a *Adapter) Freeze(frozen bool) {
	a.mu.Lock()
	a.frozen = frozen
	a.mu.Unlock()
}

// Stats are those so far.
func (a *Adapter) Stats() Stats {
	a.mu.Lock()
	defer a.mu.Unlock()
	s := a.stats
	s.Value, s.Account = a.bandit.Value, a.account
	s.Slowdown = a.slow.share(a.Share())
	return s
}

// exclusive waits until nobody uses the worker, then runs f, which may use it. Decoding goes on.
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

// Reset forgets all that was learned, in the state file too.
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

// Export writes the head that is in use as a GGUF file of its family. A head opened from that file
// drafts the same to the bit.
func (a *Adapter) Export(path, name string) error { return learn.Write(path, name, a.now()) }

// Close waits for the update under way, if there is one, and saves the state. Drafters can go on
// with the head as it then is.
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

// spare leaves processors to an update, or takes them back; see par.Pool.
func (a *Adapter) spare(processors int) {
	if a.o.Workers != nil {
		a.o.Workers.Spare(processors)
	}
}

// Rest waits for the update under way, if there is one.
func (a *Adapter) Rest() { _ = a.exclusive(func() error { return nil }) }

// lost is the decoding time that work costs which takes so many seconds of processors, and of the clock.
func (a *Adapter) lost(processors, clock float64) float64 {
	if a.o.Wait { // nothing was decoded beside it
		return processors / float64(a.o.Threads) * a.Share()
	}
	return clock * a.slow.share(a.Share())
}

// Share is the share of decoding's speed that an update is taken to cost before it was measured:
// that of its workers among those that decode.
func (a *Adapter) Share() float64 {
	if a.o.Workers == nil {
		return 1
	}
	return min(1, float64(a.o.Threads)/float64(a.o.Workers.Threads()))
}

// study is how an action's update learns. OSD has neither the divergence from the first head nor
// the mean of weights, which are SpecBlock's and grove's.
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
