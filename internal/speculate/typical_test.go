package speculate

import (
	"context"
	"math"
	"slices"
	"testing"

	"github.com/grovellm/grove/draft"
	"github.com/grovellm/grove/sample"
	"github.com/grovellm/grove/tree"
	"pgregory.net/rapid"
)

// Of all paths of a tree whose every token is probable enough, the longest is taken; of equally
// long ones, the likeliest.
func TestTypicalPath(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		const vocab = 6
		sampler, err := sample.New(sample.Params{Temperature: rapid.SampledFrom([]float32{0.5, 1, 2}).Draw(r,
			"temperature")}, vocab)
		if err != nil {
			r.Fatal(err)
		}
		s := &Sequence{tree: tree.New(0), sampler: sampler}
		var logits [][]float32
		for range rapid.IntRange(1, 25).Draw(r, "nodes") {
			logits = append(logits, rapid.SliceOfN(rapid.Float32Range(-3, 6), vocab, vocab).Draw(r, "logits"))
			s.tree.Append(rapid.IntRange(0, s.tree.Len()-1).Draw(r, "parent"),
				rapid.Int32Range(0, vocab-1).Draw(r, "token"), -1)
		}
		for len(logits) < s.tree.Len() {
			logits = append(logits, logits[0])
		}
		rule := &typical{probs: make([]float32, vocab), path: []int32{9, 9}}
		rule.plan(s, func(node int) []float32 { return logits[node] })

		var want []int32
		best := math.Inf(-1)
		worths := map[int]float64{} // of the path to each node
		for node := range s.tree.Len() {
			path := s.tree.Path(node, nil)
			likelihood := 0.0
			for i, n := range path[1:] {
				row := logits[path[i]]
				sum := 0.0
				entropy := 0.0
				temperature := float64(s.sampler.Params().Temperature)
				for _, v := range row {
					sum += math.Exp(float64(v) / temperature)
				}
				for _, v := range row {
					p := math.Exp(float64(v)/temperature) / sum
					entropy -= p * math.Log(p+1e-5)
				}
				p := math.Exp(float64(row[s.tree.Token[n]])/temperature) / sum
				least := min(0.09, 0.3*math.Exp(-entropy))
				if math.Abs(p-least) < 1e-6 {
					r.Skip("a probability at the limit")
				}
				if p <= least {
					likelihood = math.Inf(-1)
				}
				likelihood += math.Log(p)
			}
			worths[node] = float64(len(path))*1e3 + likelihood
			if worths[node] > best {
				best, want = worths[node], path[1:]
			}
		}
		last := 0
		if n := len(rule.path); n > 0 {
			last = int(rule.path[n-1])
		}
		if equal := best-worths[last] < 1e-4; equal && slices.Equal(rule.path, s.tree.Path(last, nil)[1:]) {
			want = rule.path // it is equally likely
		}
		if !slices.Equal(rule.path, want) {
			r.Fatalf("path %v of %v, want %v", rule.path, s.tree, want)
		}
		for _, node := range want {
			if token, err := rule.next(s, nil, []int32{0}); err != nil || token != s.tree.Token[node] {
				r.Fatalf("token %d, %v: want %d", token, err, s.tree.Token[node])
			}
		}
	})
}

// noting is a drafter that records how it was begun, and proposes nothing.
type noting struct {
	draft.Base
	begun draft.Options
}

func (d *noting) Begin(o draft.Options) (draft.State, error) {
	d.begun = o
	return d, nil
}

func (d *noting) Propose(_ context.Context, requests []draft.Request) ([]draft.Proposal, error) {
	return make([]draft.Proposal, len(requests)), nil
}

func (d *noting) Commit([]draft.Rows) error { return nil }
func (d *noting) Close()                    {}

// The rule changes the text, so no request may ask for it. Under it a drafter looks for what is
// probable, not for what the noise will choose.
func TestTypicalIsForMeasurements(t *testing.T) {
	for rule, temperature := range map[string]float32{Typical: 0, Coupled: 1} {
		d := new(noting)
		l, err := New(newLaw(1), d, Options{Accept: rule})
		if err != nil {
			t.Fatal(err)
		}
		s, err := l.Start([]int32{0}, Request{Sampling: sample.Params{Temperature: 1}})
		if err != nil {
			t.Fatal(err)
		}
		if d.begun.Sampling.Temperature != temperature {
			t.Errorf("%s: the drafter ranks at temperature %g, want %g", rule, d.begun.Sampling.Temperature,
				temperature)
		}
		s.Close()
		if _, err := l.Start([]int32{0}, Request{Accept: Typical}); err == nil {
			t.Error("a request has a rule that changes the text")
		}
	}
}
