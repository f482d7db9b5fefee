package speculate

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sort"
	"time"

	"github.com/grovellm/grove/draft"
	"github.com/grovellm/grove/internal/kernels/fineclock"
	"github.com/grovellm/grove/internal/kernels/par"
	"github.com/grovellm/grove/internal/speculate/control"
)

// Controller decides, step by step, how much to speculate, from what it learns about the target and its drafters. It
// never changes a token, except under the rule Rejection. It belongs to one target on one machine. Loops of that target
// may share it, even concurrently: one generation begins with what another learned.
type Controller = control.Controller

// NewController returns a controller that knows nothing yet.
func NewController() *Controller { return control.New() }

// Options of a loop.
type Options struct {
	Chunk   int // most rows of a prompt in one pass; 0: DefaultChunk
	Context int // most tokens of a text, if fewer than the target's context; 0: the target's context

	Controller *Controller // decides how much to speculate; nil: the loop makes its own

	// Report is called once for every panic, and for drafters' errors that ended no sequence; nil: LogError
	Report func(error)

	// Defaults of requests: see Request.
	Budget       int
	Accept       string
	Uncontrolled bool
}

// Defaults of options that are 0.
const (
	DefaultBudget = 64  // an upper limit: the controller verifies only what pays
	DefaultChunk  = 512 // enough rows for products to run at their peak
)

// logitMemory limits the logits of a step in bytes, not counting those of roots. It holds 220 rows
// of a vocabulary of 152,000 tokens, four times the nodes of a usual tree.
const logitMemory = 128 << 20

// Loop runs sequences over one target. One goroutine uses it, and its sequences, at a time.
type Loop struct {
	target  Target
	drafter draft.Drafter // for requests that name none
	o       Options
	taps    []int
	pass    Pass
	control *Controller
	stats   Stats
	now     func() time.Time

	coupled, rejection, typical rule

	// The step under way.
	step    int
	live    []*Sequence // the sequences that take part
	reading []*Sequence // those whose prompts are being read
	groups  []*group
	plan    control.Plan
	turns   []*control.Turn  // of live
	parts   []*control.Group // of groups
	delta   Stats            // added by one sequence's round
	rows    []Rows
	masked  []float32 // logits of the tokens that a grammar allows

	promptRow float64 // seconds for each row of recent steps that only read prompts; 0: not known
	room      int     // most rows of such a step

	broken map[draft.Drafter]bool // drafters that panicked: their memory may be in any state
}

// New returns a loop. drafter drafts for requests that name no drafter; if it is nil they are decoded plainly.
func New(target Target, drafter draft.Drafter, o Options) (*Loop, error) {
	if o.Chunk < 0 {
		return nil, fmt.Errorf("speculate: Chunk is %d: want 1 or more, or 0 for the default of %d", o.Chunk, DefaultChunk)
	}
	o.Chunk, o.Budget = cmp.Or(o.Chunk, DefaultChunk), cmp.Or(o.Budget, DefaultBudget)
	o.Context = min(cmp.Or(o.Context, target.Context()), target.Context())
	o.Accept = cmp.Or(o.Accept, Coupled)
	if err := checkMethod(o.Budget, o.Accept); err != nil {
		return nil, err
	}
	l := &Loop{
		target: target, drafter: drafter, o: o, pass: target.NewPass(), control: o.Controller, now: fineclock.Now,
		coupled: coupledRule{}, rejection: newRejection(target.Vocab()),
		typical: &typical{probs: make([]float32, target.Vocab())},
	}
	if l.control == nil {
		l.control = NewController()
	}
	if l.o.Report == nil {
		l.o.Report = func(err error) { LogError("", err) }
	}
	if t, ok := target.(readsExperts); ok {
		l.control.ReadExperts(t.Experts())
	}
	l.plan.LogitRows = max(logitMemory/(4*target.Vocab()), 1)
	return l, nil
}

// checkMethod checks a request's budget and acceptance rule.
func checkMethod(budget int, accept string) error {
	switch {
	case budget < 0:
		return fmt.Errorf("speculate: Budget is %d: want 1 (plain decoding) or more, or 0 for the default", budget)
	case accept != Coupled && accept != Rejection && accept != Typical:
		return fmt.Errorf("speculate: Accept is %q: want %q or %q", accept, Coupled, Rejection)
	}
	return nil
}

// Stats returns the sums over all steps of the loop. A step's time counts once, however many sequences it had.
func (l *Loop) Stats() *Stats { return &l.stats }

// PlainTime returns how long a pass takes in which n sequences decode plainly; 0 while that is not known.
func (l *Loop) PlainTime(n int) time.Duration {
	return time.Duration(l.control.PassTime(n) * float64(time.Second))
}

// Limits bound a step.
type Limits struct {
	Rows int           // most rows of the pass; 0: no limit except Options.Chunk for each prompt
	Time time.Duration // longest expected time of a pass that reads prompts; 0: no limit
}

// Step takes every unfinished sequence one pass further, all in the same pass: a chunk of its prompt, or a round.
// Before the pass, drafters read rows that came with a cache, one chunk of each sequence. A sequence with more such
// rows takes no part in the pass. Sequence.Fresh has the new tokens. No sequence may be listed twice.
//
// When Step fails because ctx ended, or in verification, nothing has changed, and the next Step goes on from there. An
// error of one sequence or its drafter fails only that sequence: see Sequence.Err. A panic is such an error too. In the
// pass it fails the sequences of the pass, in a drafter those of the drafter, and in a request's function that
// request's sequence. A drafter that panicked is not used again: later sequences that name it are decoded plainly. A
// sequence whose text is complete does not fail because of its drafter.
func (l *Loop) Step(ctx context.Context, sequences []*Sequence) error {
	return l.StepWithin(ctx, sequences, Limits{})
}

// StepWithin is Step within limits. Every decoding sequence takes part at least with its root. Prompts share the
// remaining rows: see prepareChunks. Prompts that get none wait for a later step.
func (l *Loop) StepWithin(ctx context.Context, sequences []*Sequence, limits Limits) error {
	err := l.takeStep(ctx, sequences, limits)
	if l.panicked(err) {
		for _, s := range sequences {
			if s.finish == Running {
				s.fail(err)
			}
		}
		return nil
	}
	return err
}

func (l *Loop) takeStep(ctx context.Context, sequences []*Sequence, limits Limits) (err error) {
	defer par.Recover("speculate: the step", &err)
	began := l.now()
	if err := l.begin(ctx, sequences, limits); err != nil || len(l.live) == 0 {
		return err
	}
	l.plan.Begin(l.control, l.listTurns(), l.parts)
	for _, s := range l.live {
		s.ask()
	}
	drafting, err := l.propose(ctx)
	if err != nil || len(l.live) == 0 { // none are left if their drafters failed
		return err
	}
	l.plan.Cut(l.control, l.listTurns(), drafting.Seconds())
	l.rows = l.rows[:0]
	for _, s := range l.live {
		s.trim()
		s.list()
		l.rows = append(l.rows, Rows{Cache: s.cache, Tree: s.tree, Logits: s.asked})
	}
	verifying := l.now()
	if err := l.runPass(ctx); err != nil || len(l.live) == 0 { // none are left if the pass panicked
		return err
	}
	verified := l.now()
	for i, s := range l.live {
		s.fail(s.tryAccept(i))
	}
	for _, g := range l.groups {
		if err := g.commit(l.now); err != nil {
			l.failGroup(g, err)
		}
		drafting += g.committing
	}
	for _, s := range l.live {
		s.committed = s.cache.Len()
	}
	l.learn(verified.Sub(verifying), l.now().Sub(verified))
	l.time(drafting, verified.Sub(verifying), began)
	return nil
}

// begin prepares the sequences that take part.
func (l *Loop) begin(ctx context.Context, sequences []*Sequence, limits Limits) error {
	l.live = l.live[:0]
	l.step++
	for _, g := range l.groups {
		g.begin(l.pass)
	}
	for i, s := range sequences {
		if s.state != nil && l.broken[s.group.drafter] {
			s.Dismiss()
		}
		switch {
		case s.loop != l:
			return fmt.Errorf("speculate: sequence %d belongs to another loop, or is closed", i)
		case s.step == l.step:
			return fmt.Errorf("speculate: sequence %d is listed twice", i)
		}
		s.step = l.step
		s.fresh = 0
	}
	if err := l.tell(ctx, sequences); err != nil {
		return err
	}
	for _, s := range sequences {
		if s.finish == Running && !s.behind() && s.cache.Len() >= s.prompt {
			s.prepareRound()
			l.live = append(l.live, s)
		}
	}
	l.prepareChunks(sequences, l.promptRows(limits))
	return nil
}

// prepareChunks divides room rows among the prompts that are being read: half of them go to the
// prompt with the fewest rows left, the rest to the others in the order listed. So a short prompt does
// not wait for a long one, and the one listed first is read at half speed at least.
func (l *Loop) prepareChunks(sequences []*Sequence, room int) {
	reading := l.reading[:0]
	for _, s := range sequences {
		if s.finish == Running && !s.behind() && s.cache.Len() < s.prompt {
			reading = append(reading, s)
		}
	}
	l.reading = reading
	if len(reading) == 0 {
		return
	}
	prepare := func(s *Sequence, most int) {
		if most > 0 {
			room -= s.prepareChunk(min(most, l.o.Chunk))
			l.live = append(l.live, s)
		}
	}
	left := func(s *Sequence) int { return s.prompt - s.cache.Len() }
	shortest := slices.MinFunc(reading, func(a, b *Sequence) int { return cmp.Compare(left(a), left(b)) })
	if shortest == reading[0] {
		shortest = nil
	} else {
		half := room / 2
		if l.step%2 == 1 { // a single row goes to each in turn
			half = room - half
		}
		prepare(shortest, half)
	}
	for _, s := range reading {
		if s != shortest {
			prepare(s, room)
		}
	}
}

// listTurns lists the turns of the live sequences for the plan.
func (l *Loop) listTurns() []*control.Turn {
	l.turns = l.turns[:0]
	for _, s := range l.live {
		s.turn.Tree, s.turn.Forced = s.tree, s.form.drafted
		l.turns = append(l.turns, &s.turn)
	}
	return l.turns
}

// learn gives the controller the step's times and results.
func (l *Loop) learn(verify, rest time.Duration) {
	for _, s := range l.live {
		s.turn.Path, s.turn.Emitted = s.path, s.Fresh()
	}
	for _, g := range l.groups {
		g.measure()
	}
	took := control.Pass{Verify: verify.Seconds(), Rest: rest.Seconds()}
	if p, ok := l.pass.(countsExperts); ok {
		took.Experts = p.ExpertsRead()
	}
	l.plan.Learn(l.control, l.listTurns(), l.parts, took)
}

const (
	// firstRows is how many rows of prompts a step reads while too little is known.
	firstRows = 128

	// reads is how many times the time to read the weights a step that only reads prompts may take. They are read once
	// in a pass: at 8 that is an eighth of its time at most, and nothing on two cores, where passes of 16 rows or more
	// compute for longer than they read. At 4 it is up to a quarter; at 16 steps of large models last twice as long.
	reads = 8
)

// promptRows returns how many rows of prompts a step may read within limits: at least 1 if the limit
// is of time, or if there is nothing else to do. Without rounds, passes may take longer than the limit
// if shorter ones would mostly read weights.
func (l *Loop) promptRows(limits Limits) int {
	rounds, room := len(l.live), int(^uint(0)>>1)
	if limits.Rows > 0 {
		room = max(limits.Rows-rounds, 0)
	}
	if rounds == 0 && limits.Time > 0 {
		room = min(room, l.o.Chunk)
		read, most := l.control.ReadTime(room), 0.
		if l.promptRow > 0 {
			most = max(limits.Time.Seconds(), reads*read) / l.promptRow
		}
		if read == 0 || most == 0 {
			most = max(most, firstRows)
		}
		room = int(min(most, float64(room)))
	} else if limits.Time > 0 && room > 0 {
		// Little is known about passes with more than twice the rows of any measured one.
		room = min(room, l.o.Chunk, max(2*l.control.MeasuredRows()-rounds, 1))
		room = sort.Search(room-1, func(n int) bool { return l.control.PassTime(rounds+n+2) > limits.Time.Seconds() }) + 1
	}
	if rounds == 0 {
		room = max(room, 1)
		l.room = room
	}
	return room
}

// propose asks every drafter once for the proposals of all its sequences, and returns the time that this took.
func (l *Loop) propose(ctx context.Context) (took time.Duration, err error) {
	for _, g := range l.groups {
		if err := g.propose(ctx, l.now); err != nil {
			if ctx.Err() != nil {
				return 0, errors.Join(ctx.Err(), err)
			}
			l.failGroup(g, err)
		}
		took += g.proposing
	}
	n := 0
	for _, s := range l.live {
		if s.err == nil {
			s.fail(s.tryPrepare())
		}
		if s.err == nil {
			l.live[n] = s
			n++
		}
	}
	l.live = l.live[:n]
	return took, nil
}

// time charges the step to the sequences that waited for it, and once to the loop.
func (l *Loop) time(draft, verify time.Duration, began time.Time) {
	now := l.now()
	all := now.Sub(began)
	rounds := false
	for _, s := range l.live {
		s.clock(now)
		if s.prefilling {
			s.stats.Prefill += all
			continue
		}
		s.stats.time(draft, verify, all)
		rounds = true
	}
	if rounds {
		l.stats.time(draft, verify, all)
	} else {
		l.stats.Prefill += all
		l.timePrompts(all.Seconds())
	}
}

// timePrompts learns from the time of a step that only read prompts. The rest of a prompt says little: a pass of few
// rows spends its time reading weights.
func (l *Loop) timePrompts(seconds float64) {
	rows := 0
	for _, s := range l.live {
		rows += s.turn.Rows
	}
	if rows < min(l.room, firstRows/4) {
		return
	}
	row := seconds / float64(rows)
	if l.promptRow > 0 {
		row = (row + l.promptRow) / 2
	}
	l.promptRow = row
}
