package textrank

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/grovellm/grove/draft"
	"github.com/grovellm/grove/internal/drafters/shortlist"
	"github.com/grovellm/grove/internal/kernels/simd"
	"github.com/grovellm/grove/internal/testing/cases"
	"github.com/grovellm/grove/sample"
	"github.com/grovellm/grove/tree"
	"pgregory.net/rapid"
)

// example draws what is known of a node.
func example(r *rapid.T) (n nodeFeatures, list []features) {
	n = nodeFeatures{depth: rapid.IntRange(1, 12).Draw(r, "depth"), hasRow: rapid.Bool().Draw(r, "row"),
		offTop: rapid.Bool().Draw(r, "off top"),
		class:  int8(rapid.IntRange(0, matchClasses-1).Draw(r, "class")),
		beyond: -rapid.Float32Range(0, 8).Draw(r, "beyond"), last: -rapid.Float32Range(0, 8).Draw(r, "last")}
	for token := range int32(rapid.IntRange(1, 6).Draw(r, "tokens")) {
		f := features{token: token, drafter: -rapid.Float32Range(0, 8).Draw(r, "drafter"),
			noise: rapid.Float32Range(-1, 3).Draw(r, "noise"),
			class: int8(rapid.IntRange(0, int(n.class)).Draw(r, "own")), latest: rapid.Bool().Draw(r, "latest"),
			lastTwice: rapid.Bool().Draw(r, "last twice")}
		f.root = rootProb(f.drafter)
		list = append(list, f)
	}
	return n, list
}

// loss returns minus the log-likelihood of a choice.
func (w *Weights) loss(n *nodeFeatures, list []features, choice int32) float64 {
	logits := w.logits(n, list, nil)
	at := len(list)
	if int(choice) < at {
		at = int(choice)
	}
	return float64(simd.LogSumExp(logits) - logits[at])
}

// The gradient is that of the loss, computed by differences.
func TestGradient(t *testing.T) {
	cases.Check(t, 40, func(r *rapid.T) {
		n, list := example(r)
		choice := rapid.Int32Range(0, int32(len(list))).Draw(r, "choice")
		m := &NewModel().sets[1]
		before := m.w
		var s Scratch
		m.learn(&n, list, choice, &s)
		for i, g := range s.gradient {
			up, down := before, before
			const step = 1e-2
			up[i] += step
			down[i] -= step
			want := (up.loss(&n, list, choice) - down.loss(&n, list, choice)) / (2 * step)
			if math.Abs(want-float64(g)) > 2e-2*(1+math.Abs(want)) {
				r.Fatalf("weight %d: gradient %g, by differences %g", i, g, want)
			}
			if math.Abs(float64(g)) > 1e-3 && m.w[i] == before[i] || float64(g)*float64(m.w[i]-before[i]) > 0 {
				r.Fatalf("weight %d with gradient %g went from %g to %g", i, g, before[i], m.w[i])
			}
		}
	})
}

// A target that always repeats what followed the latest occurrence, whatever the drafter says, is
// learned: its choices become probable.
func TestLearnsTheTarget(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	m := &NewModel().sets[0]
	var s Scratch
	one := func() (n nodeFeatures, list []features) {
		n = nodeFeatures{depth: 1, hasRow: true, class: 2, beyond: -3}
		for token := range int32(5) {
			f := features{token: token, drafter: -float32(token), class: 2, latest: token == 4, share: -2}
			f.drafter -= rng.Float32()
			list = append(list, f)
		}
		return n, list
	}
	n, list := one()
	before := m.w.loss(&n, list, 4)
	for range 300 {
		n, list := one()
		m.learn(&n, list, 4, &s)
	}
	if after := m.w.loss(&n, list, 4); after > 0.3 || after > before/4 {
		t.Errorf("the loss of the target's choice went from %g to %g", before, after)
	}
}

// Commits teach the weights by the nodes along the path, and by the text where there was no row. A
// prompt teaches nothing.
func TestCommitsTeach(t *testing.T) {
	m := NewModel()
	x := NewText(&sample.Params{}, m, nil)
	var c Commits
	text := []int32{1, 2, 3, 4, 1, 2, 3}
	c.Learn(x, nil, &draft.Rows{Tokens: text, Next: -1}, nil, nil)
	if m.sets[0] != NewModel().sets[0] {
		t.Error("a prompt changed the weights")
	}
	tr := tree.New(4)
	x.Keep(0, 4)
	row := Row{Top: []sample.Candidate{{Token: 9, LogProb: -.1}, {Token: 1, LogProb: -3}}, Depth: 1, Output: flat}
	var s Scratch
	x.Candidates(make([]sample.Candidate, 0, CandidatesMost), tr, 0, x.Match(x.End(), 4), &row, false, &s)
	c.Learn(x, tr, &draft.Rows{Tokens: []int32{4}, Next: 1}, nil, nil)
	set := &m.sets[0]
	if set.squares[wDrafterAt] == 0 || set.squares[wSeen+matchClasses+int(matchClass(4))] == 0 ||
		m.sets[1] != NewModel().sets[1] {
		t.Errorf("after a commit: %v", set.squares)
	}
}

// flat is a row in which no logit is known.
var flat = &Output{List: new(shortlist.List)}
