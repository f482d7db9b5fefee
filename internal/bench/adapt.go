// A drafter that learns while it serves, compared with the same one without learning (SpecBlock, Tables 1, 2 and 5).

package bench

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"

	"github.com/grovellm/grove/internal/adapt"
	"github.com/grovellm/grove/internal/drafters/learn"
	"github.com/grovellm/grove/internal/drafters/registry"
	"github.com/grovellm/grove/internal/kernels/fineclock"
	"github.com/grovellm/grove/internal/speculate"
	"github.com/grovellm/grove/sample"
)

// AdaptOptions say what to measure.
type AdaptOptions struct {
	Target           registry.Target
	Title, ModelName string

	Drafter  string
	Streams  []Stream
	Policies []string // Frozen and the policies of package adapt
	Epochs   int      // times that each stream is run through, while learning goes on; 0: once

	Sampling     sample.Params
	MaxTokens    int
	Chat         bool // lay questions out by the model's chat template
	Budget       int
	Uncontrolled bool
	Adapt        adapt.Options // except for Policy and Workers
	Progress     func(done, total int)
}

// Frozen is the policy that does not learn.
const Frozen = "frozen"

// adaptTurn is how many queries a policy runs before it is another's turn. An update still running
// at that point is waited for, and its remaining time counts as decoding time, in proportion to its
// share of the processors.
const adaptTurn = 10

// Adapt runs streams under policies. Each policy has its own drafter, controller and second copy of
// weights, and all decode the same queries, taking turns of several queries.
func Adapt(ctx context.Context, o AdaptOptions) (*AdaptReport, error) {
	if o.Target.Model == nil || o.Target.Model.Tokenizer == nil {
		return nil, fmt.Errorf("bench: there is no target with a tokenizer")
	}
	o.MaxTokens = cmp.Or(o.MaxTokens, DefaultMaxTokens)
	o.Epochs = max(o.Epochs, 1)
	r := &AdaptReport{
		Setting: NewSetting(o.Target.Model, o.Title, o.ModelName), Drafter: o.Drafter, Temperature: o.Sampling.Temperature,
		MaxTokens: o.MaxTokens, Epochs: o.Epochs, Chat: o.Chat, Wait: o.Adapt.Wait,
	}
	total, done := 0, 0
	for _, s := range o.Streams {
		total += len(s.Prompts) * o.Epochs * len(o.Policies)
	}
	step := func() {
		done++
		if o.Progress != nil {
			o.Progress(done, total)
		}
	}
	for _, s := range o.Streams {
		report, err := o.stream(ctx, s, step)
		if report != nil {
			r.Streams = append(r.Streams, *report)
		}
		if err != nil {
			r.Interrupted = ctx.Err() != nil
			return r, err
		}
	}
	return r, nil
}

// learning is the state of a policy.
type learning struct {
	policy  string
	loop    *speculate.Loop
	forced  *forcedTarget  // the loop's target
	adapter *adapt.Adapter // nil: frozen
	charged float64        // of the adapter's costs, if updates are waited for
	queries []queried
}

// queried is the result of a query.
type queried struct {
	kind              string
	tokens            []int32
	committed, rounds int
	seconds           float64 // of rounds, and of updates waited for
	draft             float64
}

func (o *AdaptOptions) learning(policy string) (*learning, error) {
	d, err := registry.New(o.Drafter, o.Target)
	if err != nil {
		return nil, err
	}
	l := &learning{policy: policy, forced: &forcedTarget{Target: speculate.Model(o.Target.Model)}}
	if policy != Frozen {
		learner, ok := d.(learn.Learner)
		if !ok {
			return nil, fmt.Errorf("drafter %q cannot learn: want one with a trained head", o.Drafter)
		}
		a := o.Adapt
		a.Policy, a.Workers = adapt.Policy(policy), o.Target.Model.Pool()
		if l.adapter, err = adapt.New(learner.Head(), o.Target.Vocab, a); err != nil {
			return nil, err
		}
		d = l.adapter.Wrap(learner)
	}
	l.loop, err = speculate.New(l.forced, d, speculate.Options{Budget: o.Budget, Uncontrolled: o.Uncontrolled})
	return l, err
}

// stream runs a stream under all policies.
func (o *AdaptOptions) stream(ctx context.Context, s Stream, step func()) (_ *AdaptStream, err error) {
	var all []*learning
	defer func() {
		for _, l := range all {
			if l.adapter != nil {
				if e := l.adapter.Close(); err == nil {
					err = e
				}
			}
		}
	}()
	for _, policy := range o.Policies {
		l, err := o.learning(policy)
		if err != nil {
			return nil, fmt.Errorf("policy %s: %w", policy, err)
		}
		all = append(all, l)
	}
	prompts, err := o.prompts(s)
	if err != nil {
		return nil, err
	}
	n := len(prompts)
	for from, turn := 0, 0; from < n*o.Epochs; from, turn = from+adaptTurn, turn+1 {
		for _, i := range order(len(all), turn) {
			l := all[i]
			runtime.GC()
			for k := from; k < min(from+adaptTurn, n*o.Epochs); k++ {
				q, err := l.decode(ctx, prompts[k%n], o)
				if err != nil {
					return o.report(s, all, from), fmt.Errorf("stream %s, policy %s: %w", s.Name, l.policy, err)
				}
				q.kind = s.Prompts[k%n].Kind
				l.queries = append(l.queries, q)
				step()
			}
			l.rest(o)
		}
	}
	return o.report(s, all, n*o.Epochs), nil
}

// prompts returns a stream's prompts as tokens.
func (o *AdaptOptions) prompts(s Stream) (list []encoded, err error) {
	b := bench{o: SpecOptions{Target: o.Target, MaxTokens: o.MaxTokens, Chat: o.Chat}}
	encode, err := b.encoder()
	if err != nil {
		return nil, err
	}
	rng := rand.New(rand.NewPCG(1, uint64(len(s.Prompts))))
	for _, p := range s.Prompts {
		if p.Random > 0 {
			tokens := make([]int32, p.Random)
			for i := range tokens {
				tokens[i] = rng.Int32N(int32(o.Target.Vocab))
			}
			list = append(list, encoded{prompt: tokens})
			continue
		}
		e, _, err := encode(p.Prompt)
		if err != nil {
			return nil, err
		}
		list = append(list, e)
	}
	return list, nil
}

// decode runs a query.
func (l *learning) decode(ctx context.Context, p encoded, o *AdaptOptions) (q queried, err error) {
	r := speculate.Request{Sampling: o.Sampling, MaxTokens: o.MaxTokens, End: o.Target.Model.Tokenizer.IsEOG}
	l.forced.write(p, &r)
	s, err := finish(ctx, l.loop, p.prompt, r)
	if err != nil {
		return q, err
	}
	defer s.Close()
	st := s.Stats()
	q = queried{tokens: slices.Clone(s.Output()), committed: st.Committed, rounds: st.Rounds,
		seconds: (st.Draft + st.Verify + st.Rest).Seconds(), draft: st.Draft.Seconds()}
	return q, nil
}

// rest waits for a running update, and charges the last query with the time that it, or updates
// waited for, would have cost decoding.
func (l *learning) rest(o *AdaptOptions) {
	if l.adapter == nil {
		return
	}
	began := fineclock.Now()
	l.adapter.Rest()
	q := &l.queries[len(l.queries)-1]
	if !o.Adapt.Wait {
		q.seconds += fineclock.Since(began).Seconds() * l.adapter.Share()
		return
	}
	lost := l.adapter.Stats().Lost
	q.seconds, l.charged = q.seconds+lost-l.charged, lost
}
