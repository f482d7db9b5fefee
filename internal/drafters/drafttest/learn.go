// Laws of heads that learn, common to all families.

package drafttest

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/grovellm/grove/draft"
	"github.com/grovellm/grove/internal/autograd"
	"github.com/grovellm/grove/internal/drafters/learn"
	"github.com/grovellm/grove/internal/heads/headfile"
	"github.com/grovellm/grove/internal/kernels/par"
	"github.com/grovellm/grove/internal/model"
	"github.com/grovellm/grove/internal/nn"
	"github.com/grovellm/grove/sample"
	"github.com/grovellm/grove/tensor"
	"github.com/grovellm/grove/tree"
	"pgregory.net/rapid"
)

// given is the probability that a drafter gave to a token at a place of a text in a round.
type given struct {
	round, place int
	token        int32
	p            float32
}

// example lets a drafter draft for a few rounds after a prompt. Of each tree a random node is accepted, or,
// if accepted is negative, what the target chooses. It returns what the rounds teach, and the probabilities
// that the drafter gave to tokens below the accepted node if at most accepted nodes were accepted.
func example(
	t Fataler, rng *rand.Rand, d learn.Learner, temperature float32, hidden, rounds, accepted int,
) (*learn.Example, []given) {
	c := Must(learn.NewCollector(len(d.Taps()), Vocab))(t)
	s := Begin(t, d, draft.Options{Sampling: sample.Params{Temperature: temperature}}, int(rng.Int32N(Vocab)))
	defer s.Close()
	prompt := make([]int32, 2+rng.IntN(40))
	for i := range prompt {
		prompt[i] = rng.Int32N(Vocab)
	}
	r := s.Prompt(prompt, hidden, true)
	c.Take(&r, nil)
	Commit(t, d, r)
	var all []given
	for n := range rounds {
		q := s.Request(2+rng.IntN(20), 12, nil)
		Propose(t, d, q)
		node, next := rng.IntN(q.Tree.Len()), rng.Int32N(Vocab)
		if accepted < 0 {
			says := func(node int) int32 { // the target's choice
				p := Pass{At: len(s.Text), Tree: q.Tree}
				return int32(slices.Index(p.Logits(0, node), liked))
			}
			node = 0
			for child := 0; child >= 0; child = q.Tree.Child(node, says(node)) {
				node = child
			}
			next = says(node)
		}
		row := s.Accept(q.Tree, node, next, hidden)
		at := learn.Round{Accepted: len(row.Nodes) - 1, Looked: len(row.Nodes) + 1}
		if at.Accepted <= accepted && q.Tree.Len() > 1 {
			for token := range int32(Vocab) {
				other := row
				other.Next = token
				if p, ok := d.Chance(&other); ok && p > 0 {
					all = append(all, given{n, len(s.Text), token, p})
				}
			}
		}
		_, at.Rejected = d.Chance(&row)
		c.Take(&row, &at)
		Commit(t, d, row)
	}
	return c.Finish(), all
}

// whole returns a batch of all rounds of an example, with its whole text.
func whole(l *learn.Example) *learn.Batch {
	b := &learn.Batch{Examples: []*learn.Example{l}, Rounds: [][]int{nil}}
	for i := range l.Rounds {
		b.Rounds[0] = append(b.Rounds[0], i)
	}
	return b
}

// Replays checks that the rows that a head computes to learn from a round are those that the
// drafter drafted with in that round, by comparing their probabilities, if at most accepted nodes
// were accepted. Above temperature 0 trees depend on the noise, but probabilities do not.
func Replays(t *testing.T, hidden, accepted int, drafter func(r *rapid.T) learn.Learner) {
	checked := 0
	rapid.Check(t, func(r *rapid.T) {
		d := drafter(r)
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(r, "text"), 0))
		temperature := rapid.SampledFrom([]float32{0, .4, 1}).Draw(r, "temperature")
		l, all := example(r, rng, d, temperature, hidden, 5, accepted)
		e := nn.NewExec(par.New(1))
		h := d.Head()
		x, rows := h.Run(e, whole(l))
		norm, head, tokens := h.Output()
		out := nn.NewMat(x.Rows, head.W.Out())
		e.Linear(nn.Source{X: x, Norm: norm}, nn.Proj{Linear: head, Dst: out})
		for _, g := range all {
			i := slices.IndexFunc(rows, func(x learn.Row) bool { return x.Example == 0 && x.Round == g.round && x.At == g.place })
			if i < 0 {
				if l.Rounds[g.round].Root > 0 {
					r.Fatalf("round %d: no row is of place %d", g.round, g.place)
				}
				continue
			}
			at := int(g.token)
			if tokens != nil {
				at = slices.Index(tokens, g.token)
			}
			sum := 0.0
			for _, v := range out.Row(i) {
				sum += math.Exp(float64(v - out.Row(i)[at]))
			}
			if p := 1 / sum; math.Abs(p-float64(g.p)) > 1e-4*p {
				r.Fatalf("round %d, place %d, token %d: drafted with %g, learned from with %g", g.round, g.place, g.token, g.p, p)
			}
			checked++
		}
	})
	if checked == 0 {
		t.Error("nothing was compared")
	}
}

// Learns checks that a copy of a head learns what the target chooses, as a whole and only in its
// last part; that the head itself stays unchanged; and that the copy can be saved, restored and
// packed for drafting.
func Learns(t *testing.T, hidden int, d learn.Learner) {
	rng := rand.New(rand.NewPCG(5, 5))
	var examples []*learn.Example
	for range 2 {
		l, _ := example(t, rng, d, 0, hidden, 6, -1)
		examples = append(examples, l)
	}
	batch := func() *learn.Batch { return learn.Draw(rand.New(rand.NewPCG(1, 1)), examples, 12) }
	s, pool := Must(learn.NewStudent(d.Head(), 1))(t), par.New(1)
	defer pool.Close()
	defer s.Close()
	score := func(h learn.Head) (mean float64) {
		all := Must(s.Score(h, batch()))(t)
		for _, x := range all {
			mean += x / float64(len(all))
		}
		return mean
	}
	current := func() learn.Head { // in F32, the type in which it learns
		var means []tensor.Tensor
		for i, v := range s.Save(learn.State{}).Means {
			p := s.Params()[i]
			means = append(means, Must(tensor.FromFloat32s(p.Name, tensor.F32, p.Shape(), v))(t))
		}
		w := model.NewLoader(means, "")
		h := Must(d.Head().Rebuild(w))(t)
		if err := w.Pack(pool); err != nil {
			t.Fatal(err)
		}
		return h
	}
	values := func() (v [][]float32) { return s.Save(learn.State{}).Weights }
	before, began := score(d.Head()), s.Save(learn.State{})
	const steps = 40
	study := learn.Study{Gamma: 4, Keep: 0.01, AdamW: autograd.AdamW{Rate: 0.02, Beta1: .9, Beta2: .99, Eps: 1e-8}}
	for _, last := range []bool{true, false} {
		study.Last = last
		was := values()
		for range steps {
			if err := s.Learn(batch(), study); err != nil {
				t.Fatal(err)
			}
		}
		for i, p := range s.Params() {
			if same := slices.Equal(was[i], p.Data); last && same == d.Head().Last(p.Name) {
				t.Errorf("the last part learned alone, and %s is the same: %v", p.Name, same)
			}
		}
		if after := score(current()); after < before+map[bool]float64{true: 0.03, false: 0.2}[last] {
			t.Errorf("last part alone %v: %d steps brought a score of %.2f to %.2f", last, steps, before, after)
		}
	}
	means(t, s, study, batch)
	if again := score(d.Head()); again != before {
		t.Errorf("the head itself changed: %g, then %g", before, again)
	}
	learned := score(current())
	if p := score(Must(s.Packed())(t)); p < before+(learned-before)/2 {
		t.Errorf("packed to draft with, a score of %.2f became %.2f; it began at %.2f", learned, p, before)
	}
	saved := s.Save(learn.State{})
	s.Load(began)
	if back := score(current()); back >= learned {
		t.Errorf("put back, it scores %.2f; it had come to %.2f", back, learned)
	}
	s.Load(saved)
	if now := score(current()); now != learned {
		t.Errorf("saved at %g, loaded at %g", learned, now)
	}
	if err := s.Reset(); err != nil {
		t.Fatal(err)
	}
	for i, p := range s.Params() {
		if !slices.Equal(p.Data, began.Weights[i]) {
			t.Errorf("after a reset %s is not what it was at first", p.Name)
		}
	}
	d.Use(Must(s.Packed())(t)) // it can draft again
	o := Begin(t, d, draft.Options{}, 1)
	Commit(t, d, o.Prompt([]int32{1, 2, 3}, hidden, true))
	q := o.Request(8, 4, nil)
	Propose(t, d, q)
	if q.Tree.Len() < 2 {
		t.Error("nothing was drafted after a change of heads")
	}
	Commit(t, d, o.Accept(tree.New(o.Root), 0, 4, hidden))
}

// means checks that the weights used for drafting are the means that Study describes.
func means(t *testing.T, s *learn.Student, study learn.Study, batch func() *learn.Batch) {
	study.Mean, study.Last = .8, false
	for range 3 {
		want := s.Save(learn.State{}).Means
		if err := s.Learn(batch(), study); err != nil {
			t.Fatal(err)
		}
		now := s.Save(learn.State{})
		for i, w := range now.Weights {
			for k := range w {
				want[i][k] = w[k] + study.Mean*(want[i][k]-w[k])
			}
		}
		differ, vectors := false, map[string][]float32{}
		Must(s.Packed())(t).Tensors().Weights(func(w headfile.Weight) { vectors[w.Name] = w.Vector })
		for i, p := range s.Params() {
			if v := vectors[p.Name]; v != nil && !slices.Equal(v, want[i]) {
				t.Fatalf("%s is packed with other numbers than the mean", p.Name)
			}
			if !slices.Equal(now.Means[i], want[i]) {
				t.Fatalf("%s drafts with other numbers than the mean of those it had", p.Name)
			}
			differ = differ || !slices.Equal(want[i], now.Weights[i])
		}
		if !differ {
			t.Fatal("the means are the last weights")
		}
	}
}
